// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "packets.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

packet_t *pool_take(pool_t *pool) {
  packet_t *packet = pool->free;
  if (packet) {
    pool->free = packet->next;
    if (pool->free) __builtin_prefetch(pool->free, 1); // its links, for the next call
  } else {
    if (pool->allocated >= pool->limit) return NULL;
    packet = malloc(sizeof *packet);
    if (!packet) return NULL;
    pool->allocated++;
  }
  packet->next = NULL;
  packet->bytes = 0;
  return packet;
}

packet_t *pool_copy(pool_t *pool, const uint8_t *data, uint32_t bytes) {
  packet_t *packet = bytes <= FRAME_BYTES_MAX ? pool_take(pool) : NULL;
  if (!packet) return NULL;
  memcpy(packet->data, data, bytes);
  packet->bytes = bytes;
  return packet;
}

void pool_give(pool_t *pool, packet_t *packet) {
  packet->next = pool->free;
  pool->free = packet;
}

void pool_destroy(pool_t *pool) {
  while (pool->free) {
    packet_t *packet = pool->free;
    pool->free = packet->next;
    free(packet);
  }
}

void packet_list_append(packet_list_t *list, packet_t *packet) {
  packet->next = NULL;
  if (list->tail) {
    list->tail->next = packet;
  } else {
    list->head = packet;
  }
  list->tail = packet;
  list->count++;
}

packet_t *packet_list_pop(packet_list_t *list) {
  packet_t *packet = list->head;
  if (!packet) return NULL;
  list->head = packet->next;
  if (!list->head) list->tail = NULL;
  list->count--;
  packet->next = NULL;
  return packet;
}
