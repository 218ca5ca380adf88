// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "initial.h"

#include <math.h>
#include <string.h>

#include "mixing.h"

#define LOGARITHM_OF_2 0x1.62e42fefa39efp-1
#define SERIES_END 23 // of terms below 2^-53

// Of 0 < number < 1. The C libraries' own differ in last bits: log m = 2 artanh((m - 1) / (m + 1)), as a series.
static double logarithm(double number) {
  int exponent;
  double m = frexp(number, &exponent);
  if (m < 0.7071) {
    m *= 2;
    exponent--;
  }
  double s = (m - 1) / (m + 1), sum = 0;
  for (int k = SERIES_END; k > 0; k -= 2) sum = sum * (s * s) + 1.0 / k;
  return 2 * s * sum + exponent * LOGARITHM_OF_2;
}

static double normal(uint64_t start) {
  for (uint64_t i = 0;; i++) {
    uint64_t bits = draw(start, i);
    double x = (double)(int32_t)(uint32_t)(bits >> 32) * 0x1p-31, y = (double)(int32_t)(uint32_t)bits * 0x1p-31;
    double square = x * x + y * y;
    if (square > 0 && square < 1) return x * sqrt(-2 * logarithm(square) / square);
  }
}

void initial_fill(const initial_t *initial, int64_t key, float *values, uint32_t width) {
  // Mixed twice, so that the sequences of two rows do not overlap where keys or seeds are neighbours.
  uint64_t start = mix64(draw(initial->seed, 0) ^ draw((uint64_t)key, 1));
  float span = initial->high - initial->low;
  switch (initial->kind) {
  case INITIAL_UNIFORM:
    for (uint32_t i = 0; i < width; i++) values[i] = initial->low + span * ((float)(draw(start, i) >> 40) * 0x1p-24f);
    return;
  case INITIAL_NORMAL:
    for (uint32_t i = 0; i < width; i++) values[i] = (float)(initial->deviation * normal(draw(start, i)));
    return;
  default: memset(values, 0, 4 * (size_t)width); return;
  }
}
