// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers to and from int32 values whose signed maximum stands for the maximum, or the minimum, of the numbers. No number
// is rounded: every value stands for one number, but for NaN. docs/protocol.md has the mapping.
#ifndef SWITCHFOLD_ORDERED_H
#define SWITCHFOLD_ORDERED_H

#include <stdint.h>

#include "value_words.h"

// Which of two numbers has the larger value.
typedef enum { LARGER_WINS, SMALLER_WINS } winner_t;

// The value of every NaN, above those of all numbers in both orders; results have these bits.
#define NAN_VALUE 0x7fc00000

void int32_to_ordered(const int32_t *numbers, winner_t, uint8_t *values, uint32_t count, byte_order_t);
void int32_from_ordered(const uint8_t *values, winner_t, int32_t *numbers, uint32_t count, byte_order_t);

// -0 is below +0. Words are the bits of float32 numbers.
void float32_to_ordered(const uint32_t *words, winner_t, uint8_t *values, uint32_t count, byte_order_t);
void float32_from_ordered(const uint8_t *values, winner_t, uint32_t *words, uint32_t count, byte_order_t);

#endif
