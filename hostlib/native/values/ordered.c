// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "ordered.h"

#include <stdbool.h>

#include "vectorised.h"

#define INFINITY_WORD 0x7f800000

// The complement of an int32 reverses the order, and has a place for every number, the least one included.
static inline uint32_t flip_of(winner_t winner) { return winner == SMALLER_WINS ? UINT32_MAX : 0; }

// Of float words as signed integers, those with a sign are in the reverse order: their other bits are flipped. This is
// its own inverse, as the sign stays.
static inline uint32_t in_order(uint32_t word) { return word ^ ((uint32_t)((int32_t)word >> 31) >> 1); }

VECTORISED void int32_to_ordered(const int32_t *restrict numbers, winner_t winner, uint8_t *restrict values, uint32_t count,
                                 byte_order_t bytes) {
  uint32_t flip = flip_of(winner);
  for (uint32_t i = 0; i < count; i++) word_put(values, i, (int32_t)((uint32_t)numbers[i] ^ flip), bytes);
}

VECTORISED void int32_from_ordered(const uint8_t *restrict values, winner_t winner, int32_t *restrict numbers,
                                   uint32_t count, byte_order_t bytes) {
  uint32_t flip = flip_of(winner);
  for (uint32_t i = 0; i < count; i++) numbers[i] = (int32_t)((uint32_t)word_get(values, i, bytes) ^ flip);
}

VECTORISED void float32_to_ordered(const uint32_t *restrict words, winner_t winner, uint8_t *restrict values, uint32_t count,
                                   byte_order_t bytes) {
  uint32_t flip = flip_of(winner);
  for (uint32_t i = 0; i < count; i++) {
    bool is_nan = (words[i] & 0x7fffffff) > INFINITY_WORD;
    word_put(values, i, is_nan ? NAN_VALUE : (int32_t)(in_order(words[i]) ^ flip), bytes);
  }
}

VECTORISED void float32_from_ordered(const uint8_t *restrict values, winner_t winner, uint32_t *restrict words,
                                     uint32_t count, byte_order_t bytes) {
  uint32_t flip = flip_of(winner);
  for (uint32_t i = 0; i < count; i++) {
    int32_t value = word_get(values, i, bytes);
    words[i] = value > INFINITY_WORD ? NAN_VALUE : in_order((uint32_t)value ^ flip);
  }
}
