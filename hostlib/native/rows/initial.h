// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Values of new rows. They depend on seed, key and position alone: neither on the order in which rows are made, nor on the
// table that holds a row. Additions, multiplications, divisions and square roots of IEEE 754 are all that it takes, so
// every machine makes the same bits.
#ifndef SWITCHFOLD_INITIAL_H
#define SWITCHFOLD_INITIAL_H

#include <stdint.h>

typedef enum {
  INITIAL_ZEROS,
  INITIAL_UNIFORM, // low + (high - low) * k / 2^24 in float32, with k from 0 to 2^24 - 1
  INITIAL_NORMAL,  // deviation times a normal number by Marsaglia's polar method in float64, rounded to float32
} initial_kind_t;

typedef struct {
  uint64_t seed;
  uint32_t kind;         // initial_kind_t
  float low, high;       // of INITIAL_UNIFORM
  float deviation;       // of INITIAL_NORMAL
} initial_t;

void initial_fill(const initial_t *, int64_t key, float *values, uint32_t width);

#endif
