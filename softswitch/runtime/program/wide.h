// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Exact integers of any size for generated code. A number is an array of 64-bit limbs, least significant first, in two's
// complement; a field of more than 64 bits is a string of (width + 7) / 8 big-endian bytes whose spare high bits are 0.
// Functions return `to`, which must not overlap their operands; n counts its limbs. Results are modulo 2**(64 n): the
// generator chooses n so that nothing is lost. Nothing here allocates.
#ifndef SOFTSWITCH_WIDE_H
#define SOFTSWITCH_WIDE_H

#include "packet.h"

// Room for a number, alive until the end of the enclosing block.
#define WIDE(n) ((uint64_t[n]){0})

#define WIDE_FUNCTION P4_UNUSED static inline const uint64_t *

// ---- bytes ----

P4_UNUSED static inline uint32_t bytes_of_width(uint32_t width) { return (width + 7) / 8; }

P4_UNUSED static inline void clear_spare_bits(uint8_t *bytes, uint32_t width) {
  if (width % 8 != 0) bytes[0] &= (uint8_t)(0xffu >> (8 - width % 8));
}

// The field that starts `offset` bits after `from`.
P4_UNUSED static inline void extract_bits(uint8_t *to, const uint8_t *from, uint32_t offset, uint32_t width) {
  const uint32_t size = bytes_of_width(width);
  const uint32_t end = offset + width;
  if (end % 8 == 0) {
    memcpy(to, from + end / 8 - size, size);
  } else {
    uint32_t at = end;
    for (uint32_t i = size; i-- > 0; at -= 8) {
      const uint32_t bits = at - offset < 8 ? at - offset : 8;
      to[i] = (uint8_t)load_bits(from, at - bits, bits);
    }
  }
  clear_spare_bits(to, width);
}

// OR a field into bytes that are zero there.
P4_UNUSED static inline void insert_bits(uint8_t *to, uint32_t offset, const uint8_t *from, uint32_t width) {
  const uint32_t first = (width - 1) % 8 + 1;
  or_bits(to, offset, first, from[0]);
  for (uint32_t at = first, i = 1; at < width; at += 8, i++) or_bits(to, offset + at, 8, from[i]);
}

P4_UNUSED static inline bool bytes_match(const uint8_t *key, const char *value, const char *mask, uint32_t size) {
  uint8_t differ = 0;
  for (uint32_t i = 0; i < size; i++) differ |= (uint8_t)((key[i] ^ (uint8_t)value[i]) & (uint8_t)mask[i]);
  return differ == 0;
}

// Number of 9 to 16 bytes.
P4_UNUSED static inline wide_uint_t load_be_128(const uint8_t *from, uint32_t bytes) {
  return (wide_uint_t)load_be(from, bytes - 8) << 64 | load_be64(from + bytes - 8);
}

P4_UNUSED static inline wide_int_t sign_extend_128(wide_uint_t value, uint32_t width) {
  const uint32_t gap = 128 - width;
  return (wide_int_t)(value << gap) >> gap;
}

// The low bits of a number into a field of more than 64 bits.
P4_UNUSED static inline void store_128(uint8_t *to, uint32_t width, wide_uint_t value) {
  const uint32_t size = bytes_of_width(width);
  uint32_t at = size;
  for (; at > 0 && at + 16 > size; value >>= 8) to[--at] = (uint8_t)value;
  memset(to, 0, at);
  clear_spare_bits(to, width);
}

// ---- conversions ----

WIDE_FUNCTION wide_fill(uint64_t *to, uint32_t n, uint32_t from, bool is_negative) {
  for (uint32_t i = from; i < n; i++) to[i] = is_negative ? UINT64_MAX : 0;
  return to;
}

WIDE_FUNCTION wide_from_64(uint64_t *to, uint32_t n, int64_t value) {
  to[0] = (uint64_t)value;
  return wide_fill(to, n, 1, value < 0);
}

WIDE_FUNCTION wide_from_128(uint64_t *to, uint32_t n, wide_int_t value) {
  to[0] = (uint64_t)value;
  to[1] = (uint64_t)((wide_uint_t)value >> 64);
  return wide_fill(to, n, 2, value < 0);
}

WIDE_FUNCTION wide_from_unsigned_128(uint64_t *to, uint32_t n, wide_uint_t value) {
  to[0] = (uint64_t)value;
  to[1] = (uint64_t)(value >> 64);
  return wide_fill(to, n, 2, false);
}

// Extend a number of fewer limbs.
WIDE_FUNCTION wide_extend(uint64_t *to, uint32_t n, const uint64_t *from, uint32_t limbs) {
  for (uint32_t i = 0; i < limbs; i++) to[i] = from[i];
  return wide_fill(to, n, limbs, from[limbs - 1] >> 63 != 0);
}

WIDE_FUNCTION wide_load(uint64_t *to, uint32_t n, const uint8_t *from, uint32_t width) {
  uint32_t left = bytes_of_width(width);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t taken = left < 8 ? left : 8;
    left -= taken;
    to[i] = load_be(from + left, taken);
  }
  return to;
}

// The low bits of a number as a signed number.
WIDE_FUNCTION wide_sign_extend(uint64_t *to, uint32_t n, const uint64_t *from, uint32_t width) {
  const uint32_t last = (width - 1) / 64;
  const uint32_t gap = (last + 1) * 64 - width;
  for (uint32_t i = 0; i < last && i < n; i++) to[i] = from[i];
  if (last >= n) return to;
  to[last] = (uint64_t)((int64_t)(from[last] << gap) >> gap);
  return wide_fill(to, n, last + 1, to[last] >> 63 != 0);
}

WIDE_FUNCTION wide_load_signed(uint64_t *to, uint32_t n, const uint8_t *from, uint32_t width) {
  wide_load(to, n, from, width);
  const uint32_t last = (width - 1) / 64;
  const uint32_t gap = (last + 1) * 64 - width;
  if (last >= n) return to;
  to[last] = (uint64_t)((int64_t)(to[last] << gap) >> gap);
  return wide_fill(to, n, last + 1, to[last] >> 63 != 0);
}

// The low bits of a number into a field; reads (width + 63) / 64 limbs.
P4_UNUSED static inline void wide_store(uint8_t *to, uint32_t width, const uint64_t *from) {
  const uint32_t size = bytes_of_width(width);
  for (uint32_t i = 0; i < size / 8; i++) store_be64(to + size - 8 * (i + 1), from[i]);
  uint64_t rest = size % 8 != 0 ? from[size / 8] : 0;
  for (uint32_t at = size % 8; at-- > 0; rest >>= 8) to[at] = (uint8_t)rest;
  clear_spare_bits(to, width);
}

P4_UNUSED static inline uint64_t wide_low_64(const uint64_t *from) { return from[0]; }

P4_UNUSED static inline wide_uint_t wide_low_128(const uint64_t *from) { return (wide_uint_t)from[1] << 64 | from[0]; }

// Distance of a shift, or index: too large ones and negative ones become UINT64_MAX.
P4_UNUSED static inline uint64_t wide_distance(const uint64_t *from, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (from[i] != 0) return UINT64_MAX;
  return from[0];
}

// ---- comparisons ----

P4_UNUSED static inline bool wide_is_zero(const uint64_t *from, uint32_t n) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < n; i++) bits |= from[i];
  return bits == 0;
}

// Negative, 0 or positive, as left is less than, equal to or greater than right.
P4_UNUSED static inline int wide_compare(const uint64_t *left, const uint64_t *right, uint32_t n) {
  const int64_t left_top = (int64_t)left[n - 1];
  const int64_t right_top = (int64_t)right[n - 1];
  if (left_top != right_top) return left_top < right_top ? -1 : 1;
  for (uint32_t i = n - 1; i-- > 0;)
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

WIDE_FUNCTION wide_clamp(const uint64_t *value, const uint64_t *low, const uint64_t *high, uint32_t n) {
  if (wide_compare(value, low, n) < 0) return low;
  return wide_compare(value, high, n) > 0 ? high : value;
}

// ---- arithmetic: operands have as many limbs as the result ----

WIDE_FUNCTION wide_add(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  uint64_t carry = 0;
  for (uint32_t i = 0; i < n; i++) {
    const wide_uint_t sum = (wide_uint_t)left[i] + right[i] + carry;
    to[i] = (uint64_t)sum;
    carry = (uint64_t)(sum >> 64);
  }
  return to;
}

WIDE_FUNCTION wide_subtract(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  uint64_t borrow = 0;
  for (uint32_t i = 0; i < n; i++) {
    const wide_uint_t difference = (wide_uint_t)left[i] - right[i] - borrow;
    to[i] = (uint64_t)difference;
    borrow = (uint64_t)(difference >> 64) & 1;
  }
  return to;
}

WIDE_FUNCTION wide_multiply(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t carry = 0;
    for (uint32_t k = 0; i + k < n; k++) {
      const wide_uint_t sum = (wide_uint_t)left[i] * right[k] + to[i + k] + carry;
      to[i + k] = (uint64_t)sum;
      carry = (uint64_t)(sum >> 64);
    }
  }
  return to;
}

WIDE_FUNCTION wide_and(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = left[i] & right[i];
  return to;
}

WIDE_FUNCTION wide_or(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = left[i] | right[i];
  return to;
}

WIDE_FUNCTION wide_xor(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = left[i] ^ right[i];
  return to;
}

WIDE_FUNCTION wide_not(uint64_t *to, const uint64_t *from, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = ~from[i];
  return to;
}

// Shifts by any distance; a negative distance counts as too far.
WIDE_FUNCTION wide_shift_left(uint64_t *to, const uint64_t *from, uint32_t n, wide_int_t distance) {
  const bool is_far = distance < 0 || distance >= (wide_int_t)n * 64;
  const uint32_t limbs = is_far ? n : (uint32_t)distance / 64;
  const uint32_t bits = is_far ? 0 : (uint32_t)distance % 64;
  for (uint32_t i = n; i-- > limbs;) {
    const uint64_t below = bits != 0 && i > limbs ? from[i - limbs - 1] >> (64 - bits) : 0;
    to[i] = from[i - limbs] << bits | below;
  }
  for (uint32_t i = 0; i < limbs; i++) to[i] = 0;
  return to;
}

WIDE_FUNCTION wide_shift_right(uint64_t *to, const uint64_t *from, uint32_t n, wide_int_t distance) {
  const bool is_negative = from[n - 1] >> 63 != 0;
  const uint64_t sign = is_negative ? UINT64_MAX : 0;
  const bool is_far = distance < 0 || distance >= (wide_int_t)n * 64;
  const uint32_t limbs = is_far ? n : (uint32_t)distance / 64;
  const uint32_t bits = is_far ? 0 : (uint32_t)distance % 64;
  for (uint32_t i = 0; i + limbs < n; i++) {
    const uint64_t above = i + limbs + 1 < n ? from[i + limbs + 1] : sign;
    to[i] = from[i + limbs] >> bits | (bits != 0 ? above << (64 - bits) : 0);
  }
  return wide_fill(to, n, n - limbs, is_negative);
}

// Digits of 32 bits, for long division.
P4_UNUSED static inline uint32_t wide_digit(const uint64_t *from, uint32_t at) {
  return (uint32_t)(from[at / 2] >> (at % 2 * 32));
}

P4_UNUSED static inline void wide_set_digit(uint64_t *to, uint32_t at, uint32_t digit) {
  const uint32_t shift = at % 2 * 32;
  to[at / 2] = (to[at / 2] & ~(UINT64_C(0xffffffff) << shift)) | (uint64_t)digit << shift;
}

// Subtract digit * divisor at a position of the rest; add it back once or twice when the estimate was too high.
P4_UNUSED static inline uint32_t wide_divide_step(uint64_t *rest, const uint64_t *divisor, uint32_t size, uint32_t at,
                                                  uint64_t digit) {
  uint64_t carry = 0;
  int64_t borrow = 0;
  for (uint32_t i = 0; i <= size; i++) {
    carry += i < size ? digit * wide_digit(divisor, i) : 0;
    const int64_t left = (int64_t)wide_digit(rest, at + i) - (int64_t)(carry & UINT32_MAX) + borrow;
    wide_set_digit(rest, at + i, (uint32_t)left);
    borrow = left < 0 ? -1 : 0;
    carry >>= 32;
  }
  while (borrow != 0) {
    digit--;
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= size; i++) {
      sum += (uint64_t)wide_digit(rest, at + i) + (i < size ? wide_digit(divisor, i) : 0);
      wide_set_digit(rest, at + i, (uint32_t)sum);
      sum >>= 32;
    }
    if (sum != 0) borrow = 0;
  }
  return (uint32_t)digit;
}

#define WIDE_MOST_LIMBS 160

// Quotient and rest of numbers that are not negative (n + 1 limbs below WIDE_MOST_LIMBS); both are 0 when right is 0.
P4_UNUSED static inline void wide_divide_both(uint64_t *quotient, uint64_t *rest, const uint64_t *left,
                                              const uint64_t *right, uint32_t n) {
  uint64_t divisor[WIDE_MOST_LIMBS];
  uint64_t scaled[WIDE_MOST_LIMBS];
  uint64_t wider[WIDE_MOST_LIMBS];
  for (uint32_t i = 0; i < n; i++) quotient[i] = rest[i] = 0;
  uint32_t size = 2 * n;
  while (size > 0 && wide_digit(right, size - 1) == 0) size--;
  if (size == 0) return;
  uint32_t scale = 0;
  while ((wide_digit(right, size - 1) << scale) >> 31 == 0) scale++;
  wide_shift_left(divisor, right, n, (int)scale);
  wide_extend(wider, n + 1, left, n);
  wide_shift_left(scaled, wider, n + 1, (int)scale);
  const uint64_t top = wide_digit(divisor, size - 1);
  for (uint32_t at = 2 * n - size + 1; at-- > 0;) {
    const uint64_t head = (uint64_t)wide_digit(scaled, at + size) << 32 | wide_digit(scaled, at + size - 1);
    const uint64_t guess = head / top;
    const uint64_t digit = guess > UINT32_MAX ? UINT32_MAX : guess;
    wide_set_digit(quotient, at, wide_divide_step(scaled, divisor, size, at, digit));
  }
  wide_shift_right(wider, scaled, n + 1, (int)scale);
  for (uint32_t i = 0; i < n; i++) rest[i] = wider[i];
}

WIDE_FUNCTION wide_divide(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  uint64_t rest[WIDE_MOST_LIMBS];
  wide_divide_both(to, rest, left, right, n);
  return to;
}

WIDE_FUNCTION wide_remainder(uint64_t *to, const uint64_t *left, const uint64_t *right, uint32_t n) {
  uint64_t quotient[WIDE_MOST_LIMBS];
  wide_divide_both(quotient, to, left, right, n);
  return to;
}

#endif
