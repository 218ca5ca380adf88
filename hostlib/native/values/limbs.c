// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "limbs.h"

#include "vectorised.h"

typedef struct {
  uint64_t significands[NUMBERS_AT_ONCE]; // 0: infinite or NaN
  int32_t shifts[NUMBERS_AT_ONCE];        // from the limbs' lowest bit to that of the significand
  int32_t signs[NUMBERS_AT_ONCE];         // 0 or -1
  int32_t specials[NUMBERS_AT_ONCE];      // 1: counts as +infinity, 2: as -infinity, 3: both
} parts_t;

typedef struct {
  int64_t largest, before_smallest, ones; // of magnitudes: maximum, minimum but 0, less 1; bits that are 1 in any
  bool has_specials;
} extremes_t;

VECTORISED static void widen16(const uint8_t *restrict numbers, uint32_t count, uint64_t *restrict words) {
  for (uint32_t i = 0; i < count; i++) {
    uint16_t word;
    memcpy(&word, numbers + 2 * (size_t)i, sizeof word);
    words[i] = word;
  }
}

VECTORISED static void widen32(const uint8_t *restrict numbers, uint32_t count, uint64_t *restrict words) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t word;
    memcpy(&word, numbers + 4 * (size_t)i, sizeof word);
    words[i] = word;
  }
}

static void widen(const uint8_t *numbers, uint32_t bytes, uint32_t count, uint64_t *words) {
  switch (bytes) {
  case 2: widen16(numbers, count, words); return;
  case 4: widen32(numbers, count, words); return;
  default: memcpy(words, numbers, (size_t)8 * count); return;
  }
}

static uint32_t at_once(uint32_t left) { return left < NUMBERS_AT_ONCE ? left : NUMBERS_AT_ONCE; }

VECTORISED static void note_extremes(const uint64_t *words, uint32_t count, uint64_t magnitude_mask, int64_t infinity,
                                     extremes_t *extremes) {
  int64_t largest = extremes->largest, smallest = extremes->before_smallest, ones = extremes->ones, specials = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t magnitude = (int64_t)(words[i] & magnitude_mask);
    int64_t is_special = magnitude >= infinity ? -1 : 0;
    specials |= is_special;
    magnitude &= ~is_special;
    ones |= magnitude;
    largest = magnitude > largest ? magnitude : largest;
    int64_t before = (magnitude - 1) & INT64_MAX; // that of 0 is the largest
    smallest = before < smallest ? before : smallest;
  }
  extremes->largest = largest;
  extremes->before_smallest = smallest;
  extremes->ones = ones;
  extremes->has_specials = extremes->has_specials || specials;
}

// Denormals have the exponent field 0, and the scale of field 1.
static int32_t scale_of(int64_t magnitude, int64_t fraction_bits) {
  int64_t field = magnitude >> fraction_bits;
  return (int32_t)(field > 1 ? field : 1);
}

void limbs_ranges(const uint8_t *numbers, const float_format_t *format, uint32_t numbers_per_group, uint32_t count,
                  int32_t *ranges) {
  uint64_t words[NUMBERS_AT_ONCE], mask = (UINT64_C(1) << (8 * format->bytes - 1)) - 1;
  int64_t fraction_bits = format_fraction_bits(format);
  int64_t infinity = format_special_field(format) << fraction_bits;
  for (uint32_t group = 0; group < count; group++) {
    extremes_t extremes = {.before_smallest = INT64_MAX};
    for (uint32_t done = 0, part; done < numbers_per_group; done += part) {
      part = at_once(numbers_per_group - done);
      widen(numbers, format->bytes, part, words);
      note_extremes(words, part, mask, infinity, &extremes);
      numbers += (size_t)part * format->bytes;
    }
    int32_t *range = ranges + (size_t)RANGE_LANES * group;
    range[0] = range[1] = ZERO_EXPONENT;
    range[2] = extremes.has_specials;
    if (extremes.largest == 0) continue;
    int64_t fraction = extremes.ones & ((INT64_C(1) << fraction_bits) - 1);
    int32_t zeros = fraction ? __builtin_ctzll((uint64_t)fraction) : (int32_t)fraction_bits;
    int32_t lowest = format->lowest_bit - 1; // of scale 0
    range[0] = scale_of(extremes.largest, fraction_bits) + lowest + (int32_t)format->significand_bits;
    range[1] = -(scale_of(extremes.before_smallest + 1, fraction_bits) + lowest + zeros);
  }
}

VECTORISED static void take_apart(const uint64_t *restrict words, uint32_t count, const float_format_t *format, int32_t low,
                                  parts_t *restrict parts) {
  uint64_t fraction_bits = (uint64_t)format_fraction_bits(format), leading = UINT64_C(1) << fraction_bits;
  uint64_t special = (uint64_t)format_special_field(format);
  uint32_t sign_at = 8 * format->bytes - 1;
  int32_t offset = format->lowest_bit - low;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t sign = words[i] >> sign_at & 1;
    uint64_t field = words[i] >> fraction_bits & special, fraction = words[i] & (leading - 1);
    uint64_t is_special = field == special ? UINT64_MAX : 0;
    uint64_t significand = field ? fraction | leading : fraction;
    int32_t scale = (int32_t)field;
    parts->significands[i] = significand & ~is_special;
    parts->shifts[i] = (scale > 1 ? scale - 1 : 0) + offset;
    parts->signs[i] = -(int32_t)sign;
    parts->specials[i] = (int32_t)((fraction ? 3 : sign + 1) & is_special);
  }
}

// Write the limbs whose lowest bit is `shift` above that of all limbs.
VECTORISED static void put_limbs(const parts_t *restrict parts, uint32_t count, int32_t shift, uint32_t bits,
                                 uint8_t *restrict at, byte_order_t order) {
  uint64_t mask = (UINT64_C(1) << bits) - 1;
  for (uint32_t i = 0; i < count; i++) {
    int32_t up = parts->shifts[i] - shift, down = -up;
    up = up < 0 ? 0 : up > 31 ? 31 : up; // by 31 no bit stays in the limb
    down = down < 0 ? 0 : down > 63 ? 63 : down;
    int32_t limb = (int32_t)(parts->significands[i] << up >> down & mask);
    limb = lane_order((limb ^ parts->signs[i]) - parts->signs[i], order);
    memcpy(at + 4 * (size_t)i, &limb, sizeof limb);
  }
}

VECTORISED static void put_specials(const parts_t *restrict parts, uint32_t count, uint32_t is_minus, uint8_t *restrict at,
                                    byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t number = lane_order(parts->specials[i] >> is_minus & 1, order);
    memcpy(at + 4 * (size_t)i, &number, sizeof number);
  }
}

void limbs_split(const uint8_t *numbers, const float_format_t *format, uint32_t count, const limbs_t *limbs, uint32_t first,
                 uint32_t end, const lanes_t *lanes) {
  uint64_t words[NUMBERS_AT_ONCE];
  parts_t parts;
  for (uint32_t done = 0, part; done < count; done += part) {
    part = at_once(count - done);
    widen(numbers + (size_t)done * format->bytes, format->bytes, part, words);
    take_apart(words, part, format, limbs->low, &parts);
    for (uint32_t lane = first; lane < end; lane++) {
      uint8_t *at = lanes->at + 4 * ((size_t)(lane - first) * lanes->width + done);
      if (lane < limbs->count) put_limbs(&parts, part, (int32_t)(lane * limbs->bits), limbs->bits, at, lanes->order);
      else put_specials(&parts, part, lane - limbs->count, at, lanes->order);
    }
  }
}
