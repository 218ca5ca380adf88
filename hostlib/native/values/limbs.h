// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Floats as limbs, the signed digits of a wide fixed-point number: integer sums of limbs are exact sums of floats.
//
//     number = sum of limb[i] * 2^(low + i * bits)        |limb[i]| < 2^bits, all with the sign of the number
//
// Two more lanes, if a number has them, count +infinity and -infinity; NaN counts as both. Numbers lie limb by limb: lane i
// of number v is at i * width + v. All arithmetic is on the bits of floats: no mode of the processor changes a result.
#ifndef SWITCHFOLD_LIMBS_H
#define SWITCHFOLD_LIMBS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "quantization.h"

#define SPECIAL_LANES 2u
#define RANGE_LANES 3u
#define NUMBERS_AT_ONCE 64u // their intermediate results stay in the nearest cache

// A binary format of IEEE 754, or one like it.
typedef struct {
  uint32_t bytes;            // of a number in memory: 2, 4 or 8
  uint32_t unused_bits;      // the lowest ones of these, which are 0
  uint32_t significand_bits; // with the leading one
  int32_t lowest_bit;        // exponent of the smallest positive number
  int32_t high;              // all finite numbers are below 2^high
} float_format_t;

typedef struct {
  uint32_t bits;  // magnitude bits of a limb, 15 to 31
  uint32_t count; // limbs of a number
  int32_t low;    // exponent of the lowest bit
  bool has_specials;
} limbs_t;

// int32 lanes, which need no alignment.
typedef struct {
  uint8_t *at;
  uint32_t width; // numbers that lie side by side
  byte_order_t order;
} lanes_t;

static inline uint32_t limbs_lanes(const limbs_t *limbs) {
  return limbs->count + (limbs->has_specials ? SPECIAL_LANES : 0);
}

static inline int64_t format_fraction_bits(const float_format_t *format) { return (int64_t)format->significand_bits - 1; }

// The exponent field of infinity and NaN.
static inline int64_t format_special_field(const float_format_t *format) {
  return (int64_t)format->high - format->lowest_bit - format->significand_bits + 2;
}

static inline int32_t lane_order(int32_t value, byte_order_t order) {
  return order == NETWORK_ORDER ? (int32_t)__builtin_bswap32((uint32_t)value) : value;
}

static inline int32_t lane_get(const lanes_t *lanes, uint32_t lane, uint32_t number) {
  int32_t value;
  memcpy(&value, lanes->at + 4 * ((size_t)lane * lanes->width + number), sizeof value);
  return lane_order(value, lanes->order);
}

// What the workers agree on for each of `count` groups of numbers, three lanes each: the smallest `high` with |x| < 2^high,
// -`low` such that each x is a multiple of 2^low, and 1 if some are infinite or NaN. Twice ZERO_EXPONENT: no finite number
// but 0. The numbers need no alignment.
void limbs_ranges(const uint8_t *numbers, const float_format_t *, uint32_t numbers_per_group, uint32_t count, int32_t *ranges);

// Write the lanes first .. end - 1 of `count` numbers; lane `first` goes to the beginning. Numbers that leave the range of
// the limbs give some int32 values.
void limbs_split(const uint8_t *numbers, const float_format_t *, uint32_t count, const limbs_t *, uint32_t first, uint32_t end,
                 const lanes_t *);

#endif
