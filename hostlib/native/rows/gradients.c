// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "gradients.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../values/vectorised.h"

#define EXPONENT_BITS UINT32_C(0x7f800000) // all 1: NaN or infinity

VECTORISED static bool is_finite(const float *numbers, size_t count) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    found |= (bits & EXPONENT_BITS) == EXPONENT_BITS;
  }
  return !found;
}

VECTORISED static void add(float *restrict sum, const float *restrict gradient, uint32_t width) {
  for (uint32_t i = 0; i < width; i++) sum[i] += gradient[i];
}

// The sums lie one after the other from `next` on.
static void collect(gradients_t *gradients, const key_batch_t *batch, const float *rows, uint32_t width, float *next) {
  memset(gradients->by_key, 0, batch->num_keys * sizeof *gradients->by_key);
  for (uint32_t i = 0; i < batch->count; i++, rows += width) {
    uint32_t number = batch->numbers[i];
    if (batch->times[number] == 1) {
      gradients->by_key[number] = rows;
    } else if (!gradients->by_key[number]) {
      memcpy(next, rows, 4 * (size_t)width);
      gradients->by_key[number] = next;
      next += width;
    } else {
      add((float *)gradients->by_key[number], rows, width); // one of the sums
    }
  }
}

row_status_t gradients_open(gradients_t *gradients, const key_batch_t *batch, const float *rows, uint32_t width,
                            uint32_t *position) {
  if (!is_finite(rows, (size_t)batch->count * width)) {
    for (*position = 0; is_finite(rows + (size_t)*position * width, width);) ++*position;
    return ROWS_NOT_FINITE;
  }
  size_t pointers = batch->num_keys * sizeof *gradients->by_key, sums = (size_t)batch->num_repeated * width;
  gradients->by_key = malloc(pointers + 4 * sums + 1);
  if (!gradients->by_key) return ROWS_NO_MEMORY;
  float *first_sum = (float *)(gradients->by_key + batch->num_keys);
  collect(gradients, batch, rows, width, first_sum);
  if (is_finite(first_sum, sums)) return ROWS_DONE;
  uint32_t number = 0;
  while (is_finite(gradients->by_key[number], width)) number++;
  *position = batch->first[number];
  gradients_close(gradients);
  return ROWS_SUM_NOT_FINITE;
}

void gradients_close(gradients_t *gradients) { free(gradients->by_key); }
