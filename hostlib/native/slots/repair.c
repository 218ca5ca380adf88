// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "repair.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define MAX_LEVEL 0xffffu // levels of switches have 16 bits in a FLUSH; no tree is as deep

static uint32_t least(uint32_t left, uint32_t right) { return left < right ? left : right; }

// Send slots again. Returns how many the transport took, or -errno.
static int send_again(stream_t *stream, slot_t *const *slots, uint32_t count, double now_s, bool is_probe) {
  uint8_t *datagrams[BATCH];
  uint32_t done = 0;
  while (done < count) {
    uint32_t part = least(count - done, BATCH);
    for (uint32_t i = 0; i < part; i++) datagrams[i] = stream_datagram(stream, slots[done + i]);
    int sent = stream->transport->send(stream->transport, datagrams, part);
    if (sent < 0) return sent;
    for (int i = 0; i < sent; i++) recovery_start_again(&stream->recovery, slots[done + (uint32_t)i], now_s, is_probe);
    done += (uint32_t)sent;
    if (sent < (int)part) break;
  }
  stream->counters.retransmitted += done;
  return (int)done;
}

// Close the rounds of slots: with the contributors that are there, or with all but those that were paid for.
static int send_flushes(stream_t *stream, slot_t *const *slots, uint32_t count) {
  if (!count) return 0;
  uint8_t *copies = malloc((size_t)BATCH * stream->datagram_bytes), *datagrams[BATCH];
  if (!copies) return -ENOMEM;
  int sent = 0;
  for (uint32_t done = 0; done < count && sent >= 0; done += BATCH) {
    uint32_t part = least(count - done, BATCH);
    for (uint32_t i = 0; i < part; i++) {
      slot_t *slot = slots[done + i];
      uint8_t *at = datagrams[i] = copies + (size_t)i * stream->datagram_bytes;
      memcpy(at, stream_datagram(stream, slot), stream->datagram_bytes);
      at[OPERATION_AT] = FLUSH;
      at[PRIORITY_AT] = (uint8_t)stream->options.control_priority;
      store16(at + FLAGS_AT, 0);
      at[EXPONENT_AT] = 0;
      const closers_t *closers = &stream->closers[slot->tree];
      store16(at + CONTRIBUTORS_AT, (uint16_t)(slot->paid ? closers->level : slot->level));
      at[EXPECTED_AT] = slot->paid && closers->is_root ? (uint8_t)(tolerance_members(closers) - slot->paid) : 0;
      if (!slot->paid && slot->level < MAX_LEVEL) slot->level++;
    }
    sent = stream->transport->send(stream->transport, datagrams, part);
    if (sent > 0) stream->counters.flushed += (uint64_t)sent;
  }
  free(copies);
  return sent < 0 ? sent : 0;
}

// Close rounds that may be closed. Keep in `slots` those that are to be sent again, and return how many, or -errno.
static int close_tolerated(stream_t *stream, slot_t **slots, uint32_t count, double now_s, sign_t sign) {
  uint32_t num_again = 0, num_closing = 0;
  for (uint32_t i = 0; i < count; i++) {
    stale_remedy_t stale = stale_remedy(stream, slots[i], now_s, sign == BY_RESULTS);
    if (stale == STALE_KEEP) stream_keep_stale(stream, &slots[i], 1, now_s);
    if (stale != STALE_REPAIR) continue;
    remedy_t remedy = closing_remedy(stream, slots[i], now_s, sign);
    if (remedy == SEND_AGAIN) slots[num_again++] = slots[i];
    if (remedy == CLOSE) stream->to_close[num_closing++] = slots[i];
  }
  int error = send_flushes(stream, stream->to_close, num_closing);
  return error < 0 ? error : (int)num_again;
}

// Send again at once what later results show to be lost, unless it may be let go.
int repair_lost(stream_t *stream, double now_s) {
  uint32_t num_new = 0;
  int count = (int)recovery_lost(&stream->recovery, now_s, stream->scratch);
  if (count > 0) count = close_tolerated(stream, stream->scratch, (uint32_t)count, now_s, BY_RESULTS);
  if (count <= 0) return count;
  for (int i = 0; i < count; i++) num_new += !stream->scratch[i]->is_again;
  if (num_new) congestion_on_loss(&stream->window, stream->outstanding, num_new);
  int sent = send_again(stream, stream->scratch, (uint32_t)count, now_s, false);
  if (sent < 0) return sent;
  stream->counters.fast_retransmitted += (uint64_t)sent;
  return 0;
}

double stream_next_s(const stream_t *stream) {
  double closing_s = fmin(stream->closing.held_s, stream->closing.late_s);
  return fmin(fmin(recovery_next_s(&stream->recovery), stream->straggler.next_s), closing_s);
}

// Timers have run out: send again, and close what may be closed.
static int send_expired(stream_t *stream, double now_s) {
  uint32_t outrun, count = recovery_expired(&stream->recovery, now_s, stream->scratch, &outrun);
  if (outrun) congestion_on_loss(&stream->window, stream->outstanding, outrun);
  return send_again(stream, stream->scratch, count, now_s, false);
}

// No result came for a while: ask for some.
static int send_probes(stream_t *stream, double now_s) {
  bool has_progress = stream->recovery.has_progress;
  uint32_t count = recovery_silent(&stream->recovery, now_s, stream->scratch);
  // Without any result since the first chunks left, another worker may be late, and nothing is lost.
  int left = (int)count;
  if (count && has_progress) left = close_tolerated(stream, stream->scratch, count, now_s, BY_SILENCE);
  if (left <= 0) return left;
  int sent = send_again(stream, stream->scratch, (uint32_t)left, now_s, true);
  if (sent > 0) stream->counters.probe_retransmitted += (uint64_t)sent;
  return sent;
}

// Look again at chunks that were held for a while.
static int end_holds(stream_t *stream, double now_s) {
  uint32_t count = closing_due(stream, now_s, stream->scratch);
  int left = close_tolerated(stream, stream->scratch, count, now_s, BY_HOLD);
  if (left <= 0) return left;
  congestion_on_loss(&stream->window, stream->outstanding, (uint32_t)left);
  return send_again(stream, stream->scratch, (uint32_t)left, now_s, false);
}

int stream_keep_time(stream_t *stream, double now_s) {
  int sent = 0;
  if (now_s >= recovery_next_s(&stream->recovery)) {
    sent = repair_lost(stream, now_s);
    if (sent == 0) sent = send_expired(stream, now_s);
    if (sent == 0) sent = send_probes(stream, now_s);
  }
  if (sent >= 0 && now_s >= stream->closing.held_s) sent = end_holds(stream, now_s);
  if (sent >= 0 && now_s >= stream->closing.late_s) {
    uint32_t num_late = closing_late(stream, now_s, stream->to_close);
    sent = send_flushes(stream, stream->to_close, num_late);
  }
  if (sent < 0 || now_s < stream->straggler.next_s) return sent < 0 ? sent : 0;
  uint32_t count = straggler_due(&stream->straggler, stream->slots, stream->slot_count, now_s, stream->scratch);
  return send_flushes(stream, stream->scratch, count);
}
