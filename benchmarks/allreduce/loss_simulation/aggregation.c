// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "aggregation.h"

#include <string.h>

#include "network.h"
#include "settings.h"

typedef struct {
  uint32_t round, bitmap;
  int32_t value;
  bool is_marked, is_closed, is_flushed;
} copy_t;

static copy_t copies[MAX_JOBS][SLOTS][2];

uint32_t slot_of(const uint8_t *datagram) {
  uint32_t local = load32(datagram + SLOT_AT);
  return settings.is_transposed ? local * settings.num_workers + root_of(datagram) : local;
}

static void answer(const copy_t *copy, uint32_t job, uint32_t worker, const uint8_t *contribution, bool is_replay) {
  uint8_t result[PACKET_BYTES];
  memcpy(result, contribution, PACKET_BYTES);
  result[OPERATION_AT] = RESULT;
  uint16_t flags = load16(contribution + FLAGS_AT) & LAST;
  if (is_replay) flags |= REPLAY;
  if (copy->is_marked) flags |= ECN_ECHO;
  if (copy->is_flushed) flags |= FLUSHED;
  store16(result + FLAGS_AT, flags);
  store32(result + BITMAP_AT, copy->bitmap);
  store16(result + CONTRIBUTORS_AT, (uint16_t)__builtin_popcount(copy->bitmap));
  store32(result + HEADER_BYTES, (uint32_t)copy->value);
  network_send(AT_WORKER, job, worker, result);
}

static void close_round(copy_t *copy, uint32_t job, const uint8_t *contribution) {
  copy->is_closed = true;
  for (uint32_t i = 0; i < settings.num_workers; i++) answer(copy, job, i, contribution, false);
}

// Tell a worker that its round is over, and its result gone.
static void notify(const copy_t *copy, const event_t *event) {
  uint8_t notice[PACKET_BYTES];
  memcpy(notice, event->datagram, PACKET_BYTES);
  notice[OPERATION_AT] = NOTICE;
  store32(notice + ROUND_AT, copy->round);
  network_send(AT_WORKER, event->job, event->worker, notice);
}

static void flush(copy_t *copy, const event_t *event) {
  const uint8_t *at = event->datagram;
  if (load32(at + ROUND_AT) > copy->round) return;
  if (copy->is_closed) {
    answer(copy, event->job, event->worker, at, true);
  } else if ((uint32_t)__builtin_popcount(copy->bitmap) >= at[EXPECTED_AT]) {
    copy->is_flushed = true;
    close_round(copy, event->job, at);
  }
}

void aggregation_take(const event_t *event) {
  const uint8_t *at = event->datagram;
  uint32_t round = load32(at + ROUND_AT), bit = 1u << event->worker, all = (uint32_t)((1ull << settings.num_workers) - 1);
  copy_t *copy = &copies[event->job][slot_of(at)][round & 1];
  if (round < copy->round) {
    if (settings.tolerated > 0) notify(copy, event);
    return;
  }
  if (at[OPERATION_AT] == FLUSH && settings.tolerated > 0) {
    flush(copy, event);
    return;
  }
  if (at[OPERATION_AT] != AGGREGATE_ADD) fail("the switch got what no worker sends");
  if (round > copy->round) *copy = (copy_t){.round = round};
  copy->is_marked = copy->is_marked || event->is_marked;
  if (copy->is_closed) {
    answer(copy, event->job, event->worker, at, true);
    return;
  }
  if (copy->bitmap & bit) return;
  copy->bitmap |= bit;
  copy->value += (int32_t)load32(at + HEADER_BYTES);
  if (copy->bitmap == all) close_round(copy, event->job, at);
}
