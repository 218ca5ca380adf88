// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "stale.h"

#include <math.h>
#include <stdlib.h>

#include "stream.h"

#define STATEMENT_BITS 8u // of the header's exponent
// A statement is about chunks that are 7/24, 8/24, ... 14/24 of the slots behind. Nearer ones would often have no result
// yet; if it is about farther ones, its own result comes when their slots are needed.
#define PARTS 24u
#define FIRST_PART 7u
// At most this part of the slots is in flight, so that a statement comes in time. Measured in simulated time, with a third
// instead of a quarter, 10 % loss of results takes 1.34 of the lossless time instead of 1.15.
#define WINDOW_SHARE 4u
// A worker that waits sends so much of its window more: it hears nothing as long as it is the last one to contribute.
#define AHEAD_SHARE 8u
#define WAIT_TRIPS 3.0  // round trips that a late chunk waits at most
#define TIMER_SHARE 0.9 // of the retransmission timer, likewise
#define SMOOTHING (1.0 / 8)
#define LEAST_ALONE 0.5 // least share for which a worker waits

bool stale_init(stale_t *stale, uint32_t slot_count) {
  *stale = (stale_t){.aside = calloc(slot_count, sizeof(slot_t *)), .alone_share = 1};
  return stale->aside;
}

void stale_close(stale_t *stale) { free(stale->aside); }

uint32_t stale_window(const stream_t *stream, uint32_t window) {
  if (!stream->options.has_statements || stream->stale.alone_share < LEAST_ALONE) return window;
  uint32_t limit = stream->slot_count / WINDOW_SHARE;
  window = limit < 1 ? 1 : limit < window ? limit : window;
  return stream->stale.num_aside ? window + window / AHEAD_SHARE + 1 : window;
}

static uint64_t place_of(const slot_t *slot) { return slot->source->start + slot->chunk; }

// How far a chunk is behind the one whose contribution states that its round is over.
static uint64_t lag_of(const stream_t *stream, uint32_t bit) {
  return (uint64_t)stream->slot_count * (FIRST_PART + bit) / PARTS;
}

uint8_t stale_statement(const stream_t *stream, uint64_t place) {
  uint8_t statement = 0;
  for (uint32_t i = 0; i < STATEMENT_BITS; i++) {
    uint64_t lag = lag_of(stream, i);
    // What is prepared and not sent is not under way either.
    if (!lag || place < lag || place - lag >= stream->next_chunk) continue;
    bool is_over = place - lag < stream->base || !stream->slots[(place - lag) % stream->slot_count].is_busy;
    statement |= (uint8_t)(is_over << i);
  }
  return statement;
}

void stale_note_result(stream_t *stream, const slot_t *slot, uint8_t statement) {
  uint64_t place = place_of(slot);
  for (uint32_t i = 0; statement && i < STATEMENT_BITS; i++) {
    uint64_t lag = lag_of(stream, i);
    if (!(statement >> i & 1) || !lag || place < stream->base + lag) continue;
    // A busy slot carries the chunk of its place from `base` on, and nothing is as far as all slots ahead of that.
    slot_t *about = &stream->slots[(place - lag) % stream->slot_count];
    if (about->is_busy) about->is_over = true;
  }
}

void stale_learn(stream_t *stream, bool is_alone) {
  stream->stale.alone_share += SMOOTHING * (is_alone - stream->stale.alone_share);
}

// Whether other chunks are to be sent, whose results may show more, until the slot is needed.
static bool has_time(const stream_t *stream, const slot_t *slot) {
  uint64_t needed = place_of(slot) + stream->slot_count;
  return stream->sending && needed > stream->next_chunk && needed - stream->next_chunk > stream->outstanding;
}

static void set_aside(stale_t *stale, slot_t *slot) {
  slot->source->stale_left--;
  slot->is_set_aside = true;
  slot->aside_at = stale->num_aside;
  stale->aside[stale->num_aside++] = slot;
}

static void take_back(stale_t *stale, slot_t *slot) {
  slot_t *last = stale->aside[--stale->num_aside];
  stale->aside[slot->aside_at] = last;
  last->aside_at = slot->aside_at;
  slot->is_set_aside = false;
}

stale_remedy_t stale_remedy(stream_t *stream, slot_t *slot, double now_s, bool is_shown_late) {
  if (!slot->source->may_be_stale) return STALE_REPAIR;
  if (slot->is_set_aside && now_s < slot->hold_s) return STALE_WAIT;
  if (slot->is_set_aside) stale_stop(stream, slot);
  bool is_first = slot->signs++ == 0;
  if (!slot->source->stale_left) return STALE_REPAIR;
  if (slot->is_over) {
    set_aside(&stream->stale, slot);
    return STALE_KEEP;
  }
  if (!is_first || !is_shown_late || stream->stale.alone_share < LEAST_ALONE || !has_time(stream, slot)) return STALE_REPAIR;
  set_aside(&stream->stale, slot);
  double timeout_s = slot->deadline_s - slot->sent_s; // the retransmission timer is to find nothing
  slot->hold_s = fmin(now_s + WAIT_TRIPS * stream->rtt.prompt_s, slot->sent_s + TIMER_SHARE * timeout_s);
  stream->closing.held_s = fmin(stream->closing.held_s, slot->hold_s);
  return STALE_WAIT;
}

// Whether a result can still show that a chunk's round is over.
static bool may_show(const stream_t *stream, const slot_t *slot) {
  if (!stream->sending) return false; // to wait would hold up the tensor
  for (uint32_t i = 0; i < STATEMENT_BITS; i++) {
    uint64_t place = place_of(slot) + lag_of(stream, i);
    const slot_t *later = &stream->slots[place % stream->slot_count];
    if (place >= stream->next_chunk || (later->is_busy && !later->is_set_aside)) return true;
  }
  return false;
}

uint32_t stale_due(stream_t *stream, slot_t **out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < stream->stale.num_aside; i++) {
    slot_t *slot = stream->stale.aside[i];
    if (slot->is_over) out[count++] = slot;
    else if (!may_show(stream, slot)) stream->closing.held_s = slot->hold_s = 0;
  }
  return count;
}

void stale_keep(stream_t *stream, slot_t *slot) {
  stale_learn(stream, true);
  take_back(&stream->stale, slot);
}

void stale_stop(stream_t *stream, slot_t *slot) {
  slot->source->stale_left++;
  slot->hold_s = INFINITY;
  take_back(&stream->stale, slot);
}
