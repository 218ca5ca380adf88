// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimisers: how a gradient changes the values of a row, or of a dense array. All of it is in float32, each operation
// rounded, with the numbers of the optimiser rounded to float32 first.
//
// g is the gradient, p the values, and the states are zeros before the first step:
//
//   sum       p += g
//   sgd       p -= rate g
//   momentum  v = momentum v + g; p -= rate v
//   adagrad   s = s + g g; p -= rate g / (sqrt(s) + epsilon)
//   adam      m = m + (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g g;
//             p -= rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon), at step t;
//             the factors of t in float64, then rounded
//   ftrl      s = n + g g; z = z + (g - (sqrt(s) - sqrt(n)) / alpha p); n = s;
//             p = -sign(z) max(|z| - l1, 0) / ((beta + sqrt(n)) / alpha + l2)    (McMahan et al., 2013)
#ifndef SWITCHFOLD_OPTIMISERS_H
#define SWITCHFOLD_OPTIMISERS_H

#include <stdint.h>

#define OPTIMISER_NUMBERS 4u

// Apply a gradient of `count` values. `state` has the states one after the other. `numbers` are those of the optimiser in
// the order above: rate, then momentum, epsilon or beta1, beta2, epsilon; of ftrl alpha, beta, l1, l2. `step` counts from 1.
typedef void optimiser_apply_t(float *values, float *state, const float *gradient, uint64_t count, const double *numbers,
                               uint64_t step);

typedef struct {
  const char *name;
  uint32_t num_states; // floats for each value
  optimiser_apply_t *apply;
} optimiser_t;

const optimiser_t *optimiser_find(const char *name); // NULL: none has this name

// For callers that know only the handle.
uint32_t optimiser_states(const optimiser_t *);
void optimiser_apply(const optimiser_t *, const double *numbers, float *values, float *state, const float *gradient,
                     uint64_t count, uint64_t step);

#endif
