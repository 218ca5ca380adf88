// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "optimisers.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../values/vectorised.h"

#define APPLY_ARGUMENTS                                                                                                     \
  float *restrict values, float *restrict state, const float *restrict gradient, uint64_t count, const double *numbers,    \
      uint64_t step

VECTORISED static void apply_sum(APPLY_ARGUMENTS) {
  (void)state, (void)numbers, (void)step;
  for (uint64_t i = 0; i < count; i++) values[i] += gradient[i];
}

VECTORISED static void apply_sgd(APPLY_ARGUMENTS) {
  (void)state, (void)step;
  float rate = (float)numbers[0];
  for (uint64_t i = 0; i < count; i++) values[i] -= rate * gradient[i];
}

VECTORISED static void apply_momentum(APPLY_ARGUMENTS) {
  (void)step;
  float rate = (float)numbers[0], momentum = (float)numbers[1];
  for (uint64_t i = 0; i < count; i++) {
    state[i] = momentum * state[i] + gradient[i];
    values[i] -= rate * state[i];
  }
}

VECTORISED static void apply_adagrad(APPLY_ARGUMENTS) {
  (void)step;
  float rate = (float)numbers[0], epsilon = (float)numbers[1];
  for (uint64_t i = 0; i < count; i++) {
    state[i] += gradient[i] * gradient[i];
    values[i] -= rate * gradient[i] / (sqrtf(state[i]) + epsilon);
  }
}

// By squaring, as the C libraries' own differ in last bits.
static double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

VECTORISED static void apply_adam(APPLY_ARGUMENTS) {
  float rate = (float)(numbers[0] / (1 - power(numbers[1], step))), root = (float)sqrt(1 - power(numbers[2], step));
  float new_mean = (float)(1 - numbers[1]), old_square = (float)numbers[2], new_square = (float)(1 - numbers[2]);
  float epsilon = (float)numbers[3], *restrict squares = state + count;
  for (uint64_t i = 0; i < count; i++) {
    state[i] += new_mean * (gradient[i] - state[i]);
    squares[i] = old_square * squares[i] + new_square * (gradient[i] * gradient[i]);
    values[i] -= rate * state[i] / (sqrtf(squares[i]) / root + epsilon);
  }
}

VECTORISED static void apply_ftrl(APPLY_ARGUMENTS) {
  (void)step;
  float alpha = (float)numbers[0], beta = (float)numbers[1], l1 = (float)numbers[2], l2 = (float)numbers[3];
  float *restrict squares = state + count;
  for (uint64_t i = 0; i < count; i++) {
    float square = squares[i] + gradient[i] * gradient[i], root = sqrtf(square);
    state[i] += gradient[i] - (root - sqrtf(squares[i])) / alpha * values[i];
    squares[i] = square;
    float beyond = fabsf(state[i]) - l1;
    beyond = beyond > 0 ? beyond : 0;
    values[i] = copysignf(beyond, -state[i]) / ((beta + root) / alpha + l2);
  }
}

static const optimiser_t OPTIMISERS[] = {
    {"sum", 0, apply_sum},         {"sgd", 0, apply_sgd},   {"momentum", 1, apply_momentum},
    {"adagrad", 1, apply_adagrad}, {"adam", 2, apply_adam}, {"ftrl", 2, apply_ftrl},
};

const optimiser_t *optimiser_find(const char *name) {
  for (size_t i = 0; i < sizeof OPTIMISERS / sizeof *OPTIMISERS; i++) {
    if (!strcmp(OPTIMISERS[i].name, name)) return &OPTIMISERS[i];
  }
  return NULL;
}

uint32_t optimiser_states(const optimiser_t *optimiser) { return optimiser->num_states; }

void optimiser_apply(const optimiser_t *optimiser, const double *numbers, float *values, float *state, const float *gradient,
                     uint64_t count, uint64_t step) {
  optimiser->apply(values, state, gradient, count, numbers, step);
}
