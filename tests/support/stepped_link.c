// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One stage of the runtime's impairments with a clock that the test steps. Packets are numbered.
#include <stdlib.h>
#include <string.h>

#include "impairments.h"

#define POOL_PACKETS 4096u

typedef struct {
  pool_t pool;
  impairment_stage_t stage;
  uint64_t counters[IMPAIRMENT_COUNTERS];
  priority_queue_t queues[];
} link_t;

link_t *link_create(uint32_t queues, const impairments_t *settings) {
  link_t *link = calloc(1, sizeof *link + queues * sizeof link->queues[0]);
  if (!link) return NULL;
  link->pool.limit = POOL_PACKETS;
  link->stage.queue_count = queues;
  link->stage.queues = link->queues;
  link->stage.counters = link->counters;
  impairments_set(&link->stage, settings, 0);
  return link;
}

void link_destroy(link_t *link) {
  impairments_drop_all(&link->stage, &link->pool);
  pool_destroy(&link->pool);
  free(link);
}

void link_set(link_t *link, const impairments_t *settings) { impairments_set(&link->stage, settings, 0); }

void link_push(link_t *link, uint32_t serial, uint32_t bytes, uint32_t priority, uint64_t now_ns) {
  packet_t *packet = pool_take(&link->pool);
  if (!packet) abort();
  packet->bytes = bytes;
  memcpy(packet->data, &serial, sizeof serial);
  impairments_push(&link->stage, &link->pool, packet, priority, now_ns, false);
}

void link_advance(link_t *link, uint64_t now_ns) { impairments_advance(&link->stage, now_ns); }

// The number of the next packet that has left, or -1.
int64_t link_pop(link_t *link) {
  uint32_t serial;
  packet_t *packet = impairments_pop(&link->stage);
  if (!packet) return -1;
  memcpy(&serial, packet->data, sizeof serial);
  pool_give(&link->pool, packet);
  return serial;
}

uint32_t link_queued(link_t *link, uint32_t priority, uint64_t now_ns) {
  return impairments_queued(&link->stage, priority, now_ns);
}

uint64_t link_deadline(const link_t *link) { return impairments_deadline(&link->stage); }
uint64_t link_counter(const link_t *link, uint32_t index) { return link->counters[index]; }
