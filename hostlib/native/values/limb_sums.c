// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "limb_sums.h"

#include "vectorised.h"

// Leading bits that rounding looks at. The last one is also 1 if any bit below is: no format keeps it.
#define WINDOW_BITS 62u

// Lower limbs change only the last bits of so large a sum of higher ones, to which 128 bits can add one more.
#define ENOUGH ((__int128)1 << 94)

#define ZERO_SCALE (-(1 << 20)) // exponent of 0, below all others

typedef struct {
  uint64_t windows[NUMBERS_AT_ONCE];  // the first of WINDOW_BITS bits is 1, or all are 0
  int32_t exponents[NUMBERS_AT_ONCE]; // of the last bit
  int32_t signs[NUMBERS_AT_ONCE];     // 0 or 1
} leading_t;

// (high + (low + part) / 2^64) * 2^exponent; the first bit of `high` is 1 unless all are 0.
typedef struct {
  uint64_t high, low;
  bool is_inexact; // the part of 1 is not 0
  int32_t exponent;
} magnitude_t;

span_t span_join(span_t left, span_t right) {
  if (!left.end) return right;
  if (!right.end) return left;
  return (span_t){left.first < right.first ? left.first : right.first, left.end > right.end ? left.end : right.end};
}

// Without branches, as signs and lengths of sums are random.
static inline magnitude_t magnitude_of(unsigned __int128 total, bool is_inexact, int32_t exponent) {
  uint64_t high = (uint64_t)(total >> 64), low = (uint64_t)total, is_long = high ? UINT64_MAX : 0;
  high |= low & ~is_long;
  low &= is_long;
  exponent += 64 & (int32_t)is_long;
  int32_t room = __builtin_clzll(high | 1);
  high = high << room | low >> 1 >> (63 - room);
  return (magnitude_t){high, low << room, is_inexact, exponent - room};
}

// Long division by an integer from 2 to 65535.
static inline magnitude_t divided(magnitude_t number, uint64_t divisor) {
  uint64_t high = number.high / divisor, rest = number.high % divisor << 48 | number.low >> 16;
  uint64_t next = rest / divisor; // 48 bits more
  int32_t room = __builtin_clzll(high | 1), spare = 48 - room;
  if (!high) return number; // 0
  bool is_inexact = number.is_inexact || number.low & 0xffff || rest % divisor || next & ((UINT64_C(1) << spare) - 1);
  return (magnitude_t){high << room | next >> spare, 0, is_inexact, number.exponent - room};
}

static inline void note(leading_t *leading, uint32_t i, bool is_negative, magnitude_t number, uint32_t divisor) {
  if (divisor > 1) number = divided(number, divisor);
  uint64_t lost = number.high & ((UINT64_C(1) << (64 - WINDOW_BITS)) - 1);
  leading->windows[i] = number.high >> (64 - WINDOW_BITS) | ((lost | number.low | number.is_inexact) != 0);
  leading->exponents[i] = number.high ? number.exponent + (int32_t)(64 - WINDOW_BITS) : ZERO_SCALE;
  leading->signs[i] = is_negative;
}

// The number that the limbs first .. end - 1 are, at most two.
static inline int64_t pair(const lanes_t *lanes, uint32_t first, uint32_t end, const limbs_t *limbs, uint32_t i) {
  int64_t number = 0;
  if (first < end) number = lane_get(lanes, first, i);
  if (first + 1 < end) number += lane_get(lanes, first + 1, i) * (INT64_C(1) << limbs->bits);
  return number;
}

static void lead_two(const lanes_t *lanes, uint32_t count, const limbs_t *limbs, int32_t low, uint32_t divisor,
                     leading_t *leading) {
  for (uint32_t i = 0; i < count; i++) {
    int64_t total = pair(lanes, 0, limbs->count, limbs, i);
    uint64_t sign = total < 0 ? UINT64_MAX : 0;
    note(leading, i, total < 0, magnitude_of(((uint64_t)total ^ sign) - sign, false, low), divisor);
  }
}

static void lead_four(const lanes_t *lanes, uint32_t count, const limbs_t *limbs, int32_t low, uint32_t divisor,
                      leading_t *leading) {
  for (uint32_t i = 0; i < count; i++) {
    unsigned __int128 total = (unsigned __int128)pair(lanes, 2, limbs->count, limbs, i) << 2 * limbs->bits;
    total += (unsigned __int128)pair(lanes, 0, limbs->count, limbs, i);
    unsigned __int128 sign = -(total >> 127);
    note(leading, i, sign != 0, magnitude_of((total ^ sign) - sign, false, low), divisor);
  }
}

static void lead_many(const lanes_t *lanes, uint32_t count, const limbs_t *limbs, int32_t low, uint32_t divisor,
                      leading_t *leading) {
  int64_t mask = (INT64_C(1) << limbs->bits) - 1;
  for (uint32_t i = 0; i < count; i++) {
    __int128 total = 0;
    uint32_t place = limbs->count;
    while (place && total < ENOUGH && total > -ENOUGH) {
      place--;
      total = (__int128)((unsigned __int128)total << limbs->bits) + lane_get(lanes, place, i);
    }
    // The limbs below: what they carry, and whether anything else is left, which is positive.
    int64_t carry = 0, rest = 0;
    for (uint32_t lower = 0; lower < place; lower++) {
      carry += lane_get(lanes, lower, i);
      rest |= carry & mask;
      carry >>= limbs->bits;
    }
    total += carry;
    unsigned __int128 magnitude = (unsigned __int128)total;
    if (total < 0) magnitude = -magnitude - (rest != 0);
    note(leading, i, total < 0, magnitude_of(magnitude, rest != 0, low + (int32_t)(place * limbs->bits)), divisor);
  }
}

// Bits of floats: half to even.
VECTORISED static void round_bits(const leading_t *restrict leading, uint32_t count, const float_format_t *format,
                                  uint64_t *restrict words) {
  int32_t precise = (int32_t)WINDOW_BITS - (int32_t)format->significand_bits, lowest = format->lowest_bit;
  int32_t special = (int32_t)format_special_field(format);
  uint64_t fraction_bits = (uint64_t)format_fraction_bits(format), infinity = (uint64_t)special << fraction_bits;
  uint32_t sign_at = 8 * format->bytes - 1;
  for (uint32_t i = 0; i < count; i++) {
    // The kept bits are counted in units of 2^(lowest + scale); scale 0 is that of denormals.
    int32_t scale = leading->exponents[i] + precise - lowest;
    scale = scale < 0 ? 0 : scale;
    int32_t dropped = lowest + scale - leading->exponents[i] - 1; // bits below the first that is not kept
    dropped = dropped > 62 ? 62 : dropped; // the window rounds to 0
    uint64_t window = leading->windows[i], upper = window >> dropped, kept = upper >> 1;
    uint64_t is_above = upper << dropped == window ? 0 : 1;
    kept += upper & (kept | is_above) & 1;
    // The leading one of a significand adds 1 to the exponent field, and so does one that rounding carries.
    uint64_t word = ((uint64_t)scale << fraction_bits) + kept;
    word = scale < special - 1 ? word : infinity;
    words[i] = word << format->unused_bits | (uint64_t)leading->signs[i] << sign_at;
  }
}

static span_t put_specials(const lanes_t *lanes, uint32_t count, uint32_t first, const float_format_t *format,
                           uint64_t *words) {
  span_t span = {0, 0};
  uint64_t infinity = (uint64_t)format_special_field(format) << format_fraction_bits(format);
  uint64_t quiet = UINT64_C(1) << (format_fraction_bits(format) - 1);
  for (uint32_t i = 0; i < count; i++) {
    bool is_above = lane_get(lanes, first, i) > 0, is_below = lane_get(lanes, first + 1, i) > 0;
    if (!is_above && !is_below) continue;
    span = span_join(span, (span_t){i, i + 1});
    words[i] = (is_above && is_below ? infinity | quiet : infinity) << format->unused_bits;
    if (!is_above) words[i] |= UINT64_C(1) << (8 * format->bytes - 1);
  }
  return span;
}

VECTORISED static void narrow16(const uint64_t *restrict words, uint32_t count, uint8_t *restrict numbers) {
  for (uint32_t i = 0; i < count; i++) {
    uint16_t number = (uint16_t)words[i];
    memcpy(numbers + 2 * (size_t)i, &number, sizeof number);
  }
}

VECTORISED static void narrow32(const uint64_t *restrict words, uint32_t count, uint8_t *restrict numbers) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t number = (uint32_t)words[i];
    memcpy(numbers + 4 * (size_t)i, &number, sizeof number);
  }
}

static void narrow(const uint64_t *words, uint32_t count, uint32_t bytes, uint8_t *numbers) {
  switch (bytes) {
  case 2: narrow16(words, count, numbers); return;
  case 4: narrow32(words, count, numbers); return;
  default: memcpy(numbers, words, (size_t)8 * count); return;
  }
}

span_t limb_sums_round(const lanes_t *lanes, uint32_t count, const limbs_t *limbs, uint32_t divisor,
                       const float_format_t *format, uint8_t *numbers) {
  leading_t leading;
  uint64_t words[NUMBERS_AT_ONCE];
  span_t specials = {0, 0};
  // Only the odd part of the divisor takes a division.
  int32_t halvings = __builtin_ctz(divisor), low = limbs->low - halvings;
  divisor >>= halvings;
  for (uint32_t done = 0, part; done < count; done += part) {
    part = count - done < NUMBERS_AT_ONCE ? count - done : NUMBERS_AT_ONCE;
    lanes_t these = {lanes->at + 4 * (size_t)done, lanes->width, lanes->order};
    if (limbs->count <= 2) lead_two(&these, part, limbs, low, divisor, &leading);
    else if (limbs->count <= 4) lead_four(&these, part, limbs, low, divisor, &leading);
    else lead_many(&these, part, limbs, low, divisor, &leading);
    round_bits(&leading, part, format, words);
    if (limbs->has_specials) {
      span_t span = put_specials(&these, part, limbs->count, format, words);
      specials = span_join(specials, (span_t){done + span.first, span.end ? done + span.end : 0});
    }
    narrow(words, part, format->bytes, numbers + (size_t)done * format->bytes);
  }
  return specials;
}
