// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A randomised Hadamard transform of floats, in place. Each number is spread over R = 2^k places that lie equally far apart,
// so over as many packets, and none of them within one packet. R is the largest power of two, up to 2^log2_spread, by which
// the distance is HADAMARD_DISTANCE or more. The numbers are rows of a matrix of R rows; each column is multiplied by signs
// and by an orthonormal Walsh-Hadamard matrix. What is left at the end, fewer numbers than R, is transformed likewise by
// itself; fewer than 2 * HADAMARD_DISTANCE stay but for their signs. So the length stays as it is. The signs come from a seed
// and the place in the array.
#ifndef SWITCHFOLD_HADAMARD_H
#define SWITCHFOLD_HADAMARD_H

#include <stdint.h>

#define HADAMARD_DISTANCE 256
#define HADAMARD_MOST_LOG2 12
#define HADAMARD_COLUMNS 16 // transformed together: a line of the cache

// Of numbers, that a call needs besides.
#define HADAMARD_SCRATCH (HADAMARD_COLUMNS << HADAMARD_MOST_LOG2)

void hadamard_forward(float *numbers, uint64_t count, uint32_t log2_spread, uint64_t seed, float *scratch);
void hadamard_inverse(float *numbers, uint64_t count, uint32_t log2_spread, uint64_t seed, float *scratch);

#endif
