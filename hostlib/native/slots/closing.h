// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a worker does about a late chunk of a tensor that may lack contributions: close it, wait for the worker that may, or
// send the chunk again. A chunk of large values is only sent again: what is tolerated is for the others.
//
// A late chunk lacks a contribution, which its closer lets go; or this worker alone has not got the result, which nobody
// else notices. In the first case, to wait for the closer saves a packet of each worker; in the second, it costs a round
// trip. So a worker waits only while closers do close late chunks, and while the wait holds up nothing: the slot of a late
// chunk must not be needed before the wait has ended and a repetition has had its round trip. Free slots make that time.
// So the window leaves two thirds of the slots free while chunks are late, if a round trip needs no more of them.
//
// Where no later result shows a loss, a worker may be slow. See tail.h for how long a chunk waits then. Its closer pays for
// it after that time, and the one behind it after twice the time.
#ifndef SWITCHFOLD_CLOSING_H
#define SWITCHFOLD_CLOSING_H

#include <stdint.h>

#include "../timing/rtt.h"
#include "slot.h"
#include "tail.h"

struct stream;

typedef struct {
  double closed_share;   // of late chunks that another worker may close: those that lack somebody, smoothed
  uint64_t results_left; // as many results without a late chunk end the limit of the window; 0: there is none
  double held_s;         // no slot is held until an earlier time
  tail_t tail;
  double late_s; // no chunk is late before
} closing_t;

typedef enum { SEND_AGAIN, CLOSE, WAIT } remedy_t;

// Why a chunk is looked at.
typedef enum { BY_RESULTS, BY_SILENCE, BY_HOLD } sign_t; // later results show a loss; no result comes; its wait is over

// With `is_adaptive`, chunks that nothing shows to be lost are late after the tail's time, not after silence.
closing_t closing_new(bool is_adaptive);

// What to do about a chunk whose result is late. CLOSE has been paid for; WAIT sets the slot's time.
remedy_t closing_remedy(struct stream *, slot_t *, double now_s, sign_t);

// A chunk was sent for the first time.
void closing_start(struct stream *, slot_t *);

// The last chunk has been sent: those without result are late sooner.
void closing_hurry(closing_t *);

// Write the slots to `out` that have taken too long and that this worker has paid for now, and return how many.
uint32_t closing_late(struct stream *, double now_s, slot_t **out);

// A result came for a slot; `absent`: the workers below this switch that it lacks.
void closing_note_result(closing_t *, const slot_t *, const closers_t *, uint32_t absent);

// How many chunks may be without result, of a window and so many slots.
uint32_t closing_window(const closing_t *, uint32_t window, uint32_t slot_count, const rtt_t *);

// Write the slots whose wait is over to `out`, and return how many.
uint32_t closing_due(struct stream *, double now_s, slot_t **out);

#endif
