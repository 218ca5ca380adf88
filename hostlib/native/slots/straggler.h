// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// When a worker stops waiting for late ones and closes the rounds of its slots.
//
// The clock runs per tensor, from its first chunk: once a tensor has waited `deadline_s`, its later chunks wait only for
// a share of it, and at least a round trip. Otherwise a lost worker would cost the deadline once per window.
#ifndef SWITCHFOLD_STRAGGLER_H
#define SWITCHFOLD_STRAGGLER_H

#include "slot.h"

typedef struct {
  double deadline_s; // infinite: wait for all
  double maximum_s;  // longest pause between flushes, which doubles from one to the next
  double next_s;     // no flush is due before
} straggler_t;

straggler_t straggler_new(double deadline_s, double maximum_s);

// A chunk was contributed now, the first of its tensor at `since_s`; its result takes `margin_s`.
void straggler_start(straggler_t *, slot_t *, double since_s, double now_s, double margin_s);
void straggler_stop(slot_t *); // its result is there

// Write the slots to flush now to `out`, and return how many. Each is due again after a longer pause.
uint32_t straggler_due(straggler_t *, slot_t *slots, uint32_t slot_count, double now_s, slot_t **out);

#endif
