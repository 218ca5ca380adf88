// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a tensor may lack, and who lets contributions go.
//
// A closed round never reopens, so what it lacks must be paid for before it closes. Of the contributions of n workers to
// the C chunks of a tensor, a share may be missing; each worker may pay for an n-th of them, in the chunks that it
// closes. At each switch with workers, one of them closes chunk k: it pays for one missing contribution, and sends a
// FLUSH that the switch ignores while more are missing. If no result comes, it pays for one more. A switch below the root
// passes the number that a FLUSH expects on to its parent, as if the root were to close with so few. So there it pays at
// once for all but one, and the FLUSH expects no number. So the bound holds without a message of its own. What was paid and
// was not missing comes back with the result.
#ifndef SWITCHFOLD_TOLERANCE_H
#define SWITCHFOLD_TOLERANCE_H

#include <stdbool.h>
#include <stdint.h>

#define BITMAP_WORKERS 32u // bits of a header's bitmap

// One tensor at one worker.
typedef struct {
  uint32_t left;  // contributions that it may still let go
  uint32_t limit; // chunks that it closes and that may lack the same worker
  uint32_t open;  // chunks that it has paid for, and that have no result
  uint32_t missing[BITMAP_WORKERS]; // of those with a result: how many lack the worker
} tolerance_t;

// The workers that close chunks at one switch: those in a tree whose packets it gets first.
typedef struct {
  uint32_t count;   // of these workers; 0: contributions cannot be let go
  uint32_t own;     // this worker's place among them
  uint32_t members; // bitmap of the workers in the sum of this switch: these, and all under lower switches
  uint32_t level;   // of this switch
  uint32_t is_root; // whether this switch closes rounds for all
} closers_t;

// How many workers the sum of this switch may lack, and one more.
uint32_t tolerance_members(const closers_t *);

// How many others have to leave a chunk to this worker: 0, it closes it; 1, if its closer does not; ...
uint32_t tolerance_turn(const closers_t *, uint32_t chunk);

// Pay for `more` contributions, at least one, to a chunk for which `paid` were paid. Returns false if that would break a
// bound.
bool tolerance_pay(tolerance_t *, uint32_t paid, uint32_t more);

// A chunk for which `paid` were paid has a result without the workers `absent`.
void tolerance_settle(tolerance_t *, uint32_t paid, uint32_t absent);

#endif
