// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "closing.h"

#include <math.h>

#include "stream.h"

#define SMOOTHING (1.0 / 8) // weight of a chunk in the share that is closed
// Least share for which a worker waits. Where all send again at once, every other flush comes too late to count.
#define LEAST_CLOSED 0.25
#define SPARE_TRIPS 2u // round trips until a slot is needed: one to wait, one for a repetition

// Of the slots, while chunks are late, at least: measured in simulated time, with a half instead of a third, 5 % loss of
// contributions takes 1.15 of the lossless time instead of 1.09, and 5 % loss of all packets 1.36 instead of 1.18.
#define LEAST_SHARE 3.0
#define MOST_SHARE 2.0 // and at most, as after losses without tolerance
#define TRIP_MARGIN 1.25 // chunks of a window over those of a round trip without queues
#define CALM_ROUNDS 16u  // rounds of all slots without a late chunk, until the window is as it was

closing_t closing_new(bool is_adaptive) {
  return (closing_t){.closed_share = 1, .held_s = INFINITY, .tail.is_adaptive = is_adaptive, .late_s = INFINITY};
}

// A round trip until a chunk that another worker may close is sent again. Measured in simulated time: with a quarter more, a
// worker that lost a result keeps the others waiting. Its timer begins again: it would run out first where queues are long.
static void hold(stream_t *stream, slot_t *slot, double now_s) {
  slot->hold_s = now_s + stream->rtt.prompt_s;
  stream->closing.held_s = fmin(stream->closing.held_s, slot->hold_s);
  slot->deadline_s = fmax(slot->deadline_s, now_s + rtt_timeout_s(&stream->rtt));
}

// Whether a chunk can wait: there are others to send until its slot is needed.
static bool has_time(const stream_t *stream, const slot_t *slot) {
  uint64_t needed = slot->source->start + slot->chunk + stream->slot_count;
  if (!stream->sending || needed <= stream->next_chunk) return false;
  return needed - stream->next_chunk > (uint64_t)SPARE_TRIPS * stream->outstanding;
}

static bool may_close(const stream_t *stream, const slot_t *slot) {
  bool is_whole = slot->source->start + slot->chunk >= stream->lenient_from;
  return is_whole && slot->paid + 1 < tolerance_members(&stream->closers[slot->tree]);
}

static bool pay(stream_t *stream, slot_t *slot, double now_s) {
  const closers_t *closers = &stream->closers[slot->tree];
  uint32_t more = closers->is_root ? 1 : tolerance_members(closers) - 1 - slot->paid; // a chunk has somebody
  if (!may_close(stream, slot) || !tolerance_pay(slot->source->tolerance, slot->paid, more)) return false;
  slot->paid += more;
  hold(stream, slot, now_s);
  return true;
}

// When a chunk is late; the worker behind the closer waits for as long again.
static double late_s(const stream_t *stream, const slot_t *slot) {
  double wait_s = tail_wait_s(&stream->closing.tail, &stream->rtt, !stream->sending);
  return slot->begun_s + wait_s * (1 + tolerance_turn(&stream->closers[slot->tree], slot->chunk));
}

void closing_start(stream_t *stream, slot_t *slot) {
  const closers_t *closers = &stream->closers[slot->tree];
  slot->may_be_late = stream->closing.tail.is_adaptive && slot->source->tolerance && !slot->is_withheld && !slot->is_large &&
                      closers->count && !slot->has_lacked && tolerance_turn(closers, slot->chunk) <= 1;
  if (slot->may_be_late) stream->closing.late_s = fmin(stream->closing.late_s, late_s(stream, slot));
}

void closing_hurry(closing_t *closing) {
  if (closing->tail.is_adaptive) closing->late_s = 0;
}

uint32_t closing_late(stream_t *stream, double now_s, slot_t **out) {
  uint32_t count = 0;
  stream->closing.late_s = INFINITY;
  for (uint32_t i = 0; i < stream->slot_count; i++) {
    slot_t *slot = &stream->slots[i];
    if (!slot->is_busy || !slot->may_be_late) continue;
    double at_s = late_s(stream, slot);
    if (at_s > now_s) {
      stream->closing.late_s = fmin(stream->closing.late_s, at_s);
      continue;
    }
    slot->may_be_late = false;
    if (slot->hold_s == INFINITY && pay(stream, slot, now_s)) out[count++] = slot;
  }
  return count;
}

remedy_t closing_remedy(stream_t *stream, slot_t *slot, double now_s, sign_t sign) {
  closing_t *closing = &stream->closing;
  tolerance_t *tolerance = slot->source->tolerance;
  const closers_t *closers = &stream->closers[slot->tree];
  if (!tolerance || slot->is_withheld || slot->is_large || closers->count == 0 || !stream->rtt.has_sample) return SEND_AGAIN;
  if (slot->hold_s < INFINITY && now_s < slot->hold_s) return WAIT;
  slot->hold_s = INFINITY;
  if (sign == BY_SILENCE && closing->tail.is_adaptive) return SEND_AGAIN; // closing_late lets it go in time
  if (sign == BY_RESULTS || !closing->tail.is_adaptive) closing->results_left = (uint64_t)CALM_ROUNDS * stream->slot_count;
  uint32_t turn = tolerance_turn(closers, slot->chunk);
  bool is_turn = turn == 0 || (turn == 1 && slot->signs > 1);
  bool is_first = slot->signs++ == 0;
  if (is_turn && pay(stream, slot, now_s)) return CLOSE;
  if (is_first && turn != 0 && closing->closed_share >= LEAST_CLOSED && has_time(stream, slot)) {
    hold(stream, slot, now_s);
    return WAIT;
  }
  return SEND_AGAIN;
}

void closing_note_result(closing_t *closing, const slot_t *slot, const closers_t *closers, uint32_t absent) {
  closing->results_left -= closing->results_left > 0;
  if (!slot->signs || !tolerance_turn(closers, slot->chunk)) return;
  closing->closed_share += SMOOTHING * ((absent != 0) - closing->closed_share);
}

uint32_t closing_window(const closing_t *closing, uint32_t window, uint32_t slot_count, const rtt_t *rtt) {
  if (!closing->results_left) return window;
  double trip = TRIP_MARGIN * window * rtt->least_s / rtt->prompt_s;
  double limit = fmin(fmax(trip, slot_count / LEAST_SHARE), slot_count / MOST_SHARE);
  return limit < 1 ? 1 : limit < window ? (uint32_t)limit : window;
}

uint32_t closing_due(stream_t *stream, double now_s, slot_t **out) {
  uint32_t count = 0;
  stream->closing.held_s = INFINITY;
  for (uint32_t i = 0; i < stream->slot_count; i++) {
    slot_t *slot = &stream->slots[i];
    if (!slot->is_busy) continue;
    if (slot->hold_s <= now_s) out[count++] = slot;
    else stream->closing.held_s = fmin(stream->closing.held_s, slot->hold_s);
  }
  return count;
}
