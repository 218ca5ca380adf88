// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A float tensor that is summed exactly: its groups of numbers, cut into chunks of limbs.
//
// The numbers of a group have the same limbs. A chunk holds all limbs of the numbers in it, so that all limbs of a number
// have the same contributors. Groups of more limbs have fewer numbers in a chunk, and more chunks. Where a number has more
// lanes than a chunk, it takes several chunks.
#ifndef SWITCHFOLD_EXACT_H
#define SWITCHFOLD_EXACT_H

#include "limb_sums.h"

// A unit is what chunks hold as a whole.
typedef struct {
  limbs_t limbs;
  uint32_t width;       // numbers of a unit; the last unit of a group may have fewer
  uint32_t unit_chunks; // more than 1: the unit is one number
  uint64_t first_chunk; // of the tensor
} limb_group_t;

// The arrays stay the caller's.
typedef struct {
  const limb_group_t *groups;
  uint32_t num_groups;
  uint32_t numbers_per_group; // the last group may have fewer
  uint32_t num_numbers;
  uint32_t lanes_per_chunk;
  float_format_t dtype;    // of numbers and sums in memory
  float_format_t round_to; // of sums
  const uint8_t *numbers;
  uint8_t *sums;                // as many as numbers
  const uint16_t *contributors; // by chunk
  span_t specials;              // of sums that some worker's infinity or NaN is in
  uint32_t num_taken;           // chunks that exact_take has seen
  bool is_mean;
} exact_t;

// Lay out the groups of `num_numbers`, so many in each but the last, on all workers the same. `full` are limbs for every
// number of the dtype. `ranges`: what the workers agreed on for each group, see limbs_ranges; NULL: all groups have full
// limbs. Returns the number of chunks.
uint64_t exact_layout(const int32_t *ranges, const limbs_t *full, uint32_t num_numbers, uint32_t numbers_per_group,
                      uint32_t lanes_per_chunk, limb_group_t *groups);

// Write the lanes of a chunk.
void exact_fill(const exact_t *, uint32_t chunk, uint8_t *lanes, byte_order_t order);

// Round the sums of all units whose last chunks are first .. end - 1. `results` has those of all chunks.
void exact_round(exact_t *, uint32_t first, uint32_t end, uint8_t *results, byte_order_t order);

// The same as parts of the results become final in any order, of `num_chunks` in all.
void exact_take(exact_t *, uint32_t first, uint32_t end, uint32_t num_chunks, uint8_t *results, byte_order_t order);

#endif
