// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// How many chunks a worker has under way towards each root, so that the workers together do not overflow the queues before
// the roots.
//
// Queues that mark nothing show only losses, as links do that lose packets at random. What tells them apart is whether the
// number under way matters. So a worker tries other limits now and then. It keeps a lower one if fewer chunks are sent again
// with it, and chunks take no longer. It keeps a higher one unless more are sent again. Otherwise it goes back, and waits
// longer until the next trial.
//
// A chunk's result needs all workers, so the worker with the lowest limit sets the pace. All workers count the same results,
// and trials begin at multiples of a count. So they try at about the same time, and see the same.
//
// Chunks go to the roots in turn. So the limit is of all chunks under way, the same number for each root. A limit of each
// root's own would hold up the chunks for all others whenever one root's chunks wait for repairs: measured in simulated time,
// three chunks towards each of 8 roots then take three times as long.
#ifndef SWITCHFOLD_INCAST_H
#define SWITCHFOLD_INCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "slot.h"

// Some results.
typedef struct {
  double results, again; // all, and those of chunks that were sent again
  double busy_s;         // in which they came
} incast_sample_t;

typedef struct {
  uint32_t num_roots;
  uint32_t limit, most; // chunks under way towards each root
  uint32_t before;      // the limit before the trial; 0: none is under way
  uint32_t to_skip;     // results still to come of chunks that were sent before the limit changed
  uint64_t num_results;
  uint64_t cut_at, raise_at;           // no trial before so many results
  uint32_t cuts_failed, raises_failed; // in a row
  uint64_t num_trials;                 // begun
  incast_sample_t usual, trial;
  double result_s; // when the latest results came; infinite: none since a pause
} incast_t;

incast_t incast_new(uint32_t slot_count, uint32_t num_roots);

// How many chunks may be under way, of a window.
uint32_t incast_window(const incast_t *, uint32_t window);

// Results of one batch came, whose slots still tell whether their chunks were sent again. `window` chunks could be under way
// without this limit, and `under_way` are still.
void incast_on_results(incast_t *, slot_t *const *slots, uint32_t count, double now_s, uint32_t window, uint32_t under_way);

#endif
