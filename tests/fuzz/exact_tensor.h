// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Exact tensors: random limbs of random numbers, some of which do not fit.
#ifndef SWITCHFOLD_FUZZ_EXACT_TENSOR_H
#define SWITCHFOLD_FUZZ_EXACT_TENSOR_H

#include "values/exact.h"

// Draw dtype, groups and limbs, so that four workers' sums stay in int32. Returns the number of chunks, at most
// `most_chunks`.
uint32_t exact_draw(exact_t *, uint32_t lanes_per_chunk, uint32_t most_chunks);

// Draw a worker's numbers, for the limbs of `layout`, and add their lanes to `expected`.
exact_t *exact_part(const exact_t *layout, uint32_t num_chunks, const uint16_t *contributors, int32_t *expected);
void exact_part_free(exact_t *);

// Whether the sums are those of these lanes.
bool exact_is_right(const exact_t *, uint32_t num_chunks, int32_t *lanes);

#endif
