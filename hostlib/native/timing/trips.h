// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Round trips of one tree, learned from the results of its chunks.
//
// The result of a round comes once all workers have contributed. So it tells a round trip if this worker has sent the chunk
// once (Karn's rule), and one that is too long if another worker had to repair its contribution. If links lose much, most do:
// then everybody would wait longer for the others, and learn still longer round trips from that. The answer to a repetition
// waits for nobody. It tells the round trip since the repetition if the chunk was sent twice, and at most the time since then
// if it was sent more often. Only the switch that closes rounds for all tells so; another one on the path is nearer.
//
// Any result tells how long a round trip takes at most: the time since the first transmission, or since the second if it is
// such an answer. Where nearly all chunks are sent again, few results come without a repair. The fastest of some results then
// bounds round trips, and what seems longer than they were is the others' repair.
#ifndef SWITCHFOLD_TRIPS_H
#define SWITCHFOLD_TRIPS_H

#include <stdbool.h>
#include <stdint.h>

#include "rtt.h"
#include "../slots/slot.h"

// What a result answers: a flush, or what cannot be told; the contribution of whoever was the last one; a repetition of this
// worker's own, by the switch that closes rounds.
typedef enum { TELLS_NOTHING, ANSWERS_ALL, ANSWERS_AGAIN } answer_t;

typedef struct {
  rtt_t rtt;
  // Of a batch's results: when the first of their chunks was sent, and when the first of their repetitions; infinite: there
  // are none.
  double oldest_s, again_s;
  // Since the last sample: results that tell none, and the least time that a round trip may have taken in one.
  uint32_t num_ambiguous;
  double least_s;
  // Of the results since the last look at them: how many, and the most that a round trip has taken in the fastest of them.
  uint32_t num_results;
  double bound_s;
} tree_trips_t;

tree_trips_t trips_new(const rtt_t *);

// A result came for a slot that was sent.
void trips_note(tree_trips_t *, const slot_t *, answer_t, double now_s);

// The batch is over. Returns whether it has told a round trip. With `is_severe`, nearly all chunks are sent again.
bool trips_learn(tree_trips_t *, double now_s, bool is_severe);

#endif
