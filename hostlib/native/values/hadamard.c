// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "hadamard.h"

#include <math.h>
#include <string.h>

#include "vectorised.h"

#define SIGNS_PER_WORD 64

static inline uint64_t signs_of(uint64_t seed, uint64_t word) {
  uint64_t mixed = seed + (word + 1) * UINT64_C(0x9e3779b97f4a7c15); // splitmix64
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ mixed >> 31;
}

VECTORISED static void flip_signs(float *numbers, uint64_t count, uint64_t seed) {
  for (uint64_t first = 0; first < count; first += SIGNS_PER_WORD) {
    uint64_t signs = signs_of(seed, first / SIGNS_PER_WORD);
    uint64_t left = count - first < SIGNS_PER_WORD ? count - first : SIGNS_PER_WORD;
    for (uint64_t i = 0; i < left; i++) {
      uint32_t bits;
      memcpy(&bits, numbers + first + i, sizeof bits);
      bits ^= (uint32_t)(signs >> i & 1) << 31;
      memcpy(numbers + first + i, &bits, sizeof bits);
    }
  }
}

// Of pairs of rows at two distances, `half` and twice that, in one pass.
static inline void transform_two(float *restrict p, float *restrict q, float *restrict r, float *restrict s, uint64_t half) {
  for (uint64_t i = 0; i < half; i++) {
    float sum0 = p[i] + q[i], difference0 = p[i] - q[i], sum1 = r[i] + s[i], difference1 = r[i] - s[i];
    p[i] = sum0 + sum1;
    q[i] = difference0 + difference1;
    r[i] = sum0 - sum1;
    s[i] = difference0 - difference1;
  }
}

static inline void transform_one(float *restrict p, float *restrict q, uint64_t half) {
  for (uint64_t i = 0; i < half; i++) {
    float sum = p[i] + q[i], difference = p[i] - q[i];
    p[i] = sum;
    q[i] = difference;
  }
}

// Of all columns of a matrix with HADAMARD_COLUMNS.
VECTORISED static void transform_columns(float *matrix, uint32_t log2_rows) {
  uint64_t size = (uint64_t)HADAMARD_COLUMNS << log2_rows, half = HADAMARD_COLUMNS;
  for (; 4 * half <= size; half *= 4)
    for (float *at = matrix; at < matrix + size; at += 4 * half)
      transform_two(at, at + half, at + 2 * half, at + 3 * half, half);
  if (2 * half <= size) transform_one(matrix, matrix + half, half);
}

static void transform_matrix(float *numbers, uint32_t log2_rows, uint64_t columns, float *scratch) {
  uint64_t rows = UINT64_C(1) << log2_rows;
  float scale = ldexpf(log2_rows % 2 ? 0x1.6a09e6p-1f : 1.0f, -(int)(log2_rows / 2)); // 2^-1/2 of an odd power
  for (uint64_t first = 0; first < columns; first += HADAMARD_COLUMNS) {
    uint64_t width = columns - first < HADAMARD_COLUMNS ? columns - first : HADAMARD_COLUMNS;
    for (uint64_t row = 0; row < rows; row++) {
      float *copy = scratch + row * HADAMARD_COLUMNS;
      const float *from = numbers + row * columns + first;
      for (uint64_t i = 0; i < width; i++) copy[i] = from[i] * scale;
      for (uint64_t i = width; i < HADAMARD_COLUMNS; i++) copy[i] = 0;
    }
    transform_columns(scratch, log2_rows);
    for (uint64_t row = 0; row < rows; row++)
      memcpy(numbers + row * columns + first, scratch + row * HADAMARD_COLUMNS, width * sizeof *numbers);
  }
}

static void transform(float *numbers, uint64_t count, uint32_t log2_spread, float *scratch) {
  while (count >= 2 * HADAMARD_DISTANCE) {
    uint32_t log2_rows = 0;
    while (log2_rows < log2_spread && count >> (log2_rows + 1) >= HADAMARD_DISTANCE) log2_rows++;
    uint64_t columns = count >> log2_rows;
    transform_matrix(numbers, log2_rows, columns, scratch);
    numbers += columns << log2_rows;
    count -= columns << log2_rows;
  }
}

void hadamard_forward(float *numbers, uint64_t count, uint32_t log2_spread, uint64_t seed, float *scratch) {
  flip_signs(numbers, count, seed);
  transform(numbers, count, log2_spread, scratch);
}

void hadamard_inverse(float *numbers, uint64_t count, uint32_t log2_spread, uint64_t seed, float *scratch) {
  transform(numbers, count, log2_spread, scratch);
  flip_signs(numbers, count, seed);
}
