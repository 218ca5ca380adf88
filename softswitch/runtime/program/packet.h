// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits, bytes, checksums and saturating arithmetic for generated code. Bytes on the wire are big-endian; numbers are in
// host order. Nothing here allocates.
#ifndef SOFTSWITCH_PACKET_H
#define SOFTSWITCH_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef __int128 wide_int_t;
__extension__ typedef unsigned __int128 wide_uint_t;

#define P4_UNUSED __attribute__((unused))
#define P4_ALIGNED _Alignas(64)
// An inlined function loses its `restrict` qualifiers, and the compiler no longer vectorises its loops.
#define P4_APART __attribute__((noinline))
#define P4_COLD __attribute__((noinline, cold)) // of the control plane: small rather than fast

P4_UNUSED static inline uint16_t load_be16(const uint8_t *from) {
  uint16_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap16(value);
}

P4_UNUSED static inline uint32_t load_be32(const uint8_t *from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap32(value);
}

P4_UNUSED static inline uint64_t load_be64(const uint8_t *from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap64(value);
}

P4_UNUSED static inline void store_be16(uint8_t *to, uint16_t value) {
  value = __builtin_bswap16(value);
  memcpy(to, &value, sizeof value);
}

P4_UNUSED static inline void store_be32(uint8_t *to, uint32_t value) {
  value = __builtin_bswap32(value);
  memcpy(to, &value, sizeof value);
}

P4_UNUSED static inline void store_be64(uint8_t *to, uint64_t value) {
  value = __builtin_bswap64(value);
  memcpy(to, &value, sizeof value);
}

// Number of 0 to 8 bytes.
P4_UNUSED static inline uint64_t load_be(const uint8_t *from, unsigned bytes) {
  switch (bytes) {
  case 2: return load_be16(from);
  case 4: return load_be32(from);
  case 8: return load_be64(from);
  default: break;
  }
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value = value << 8 | from[i];
  return value;
}

P4_UNUSED static inline void store_be(uint8_t *to, unsigned bytes, uint64_t value) {
  switch (bytes) {
  case 2: store_be16(to, (uint16_t)value); return;
  case 4: store_be32(to, (uint32_t)value); return;
  case 8: store_be64(to, value); return;
  default: break;
  }
  for (unsigned i = bytes; i-- > 0; value >>= 8) to[i] = (uint8_t)value;
}

P4_UNUSED static inline uint64_t low_mask(unsigned bits) {
  return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

// 0 to 64 bits that start `offset` bits after `from`.
P4_UNUSED static inline uint64_t load_bits(const uint8_t *from, uint32_t offset, unsigned bits) {
  wide_uint_t value = 0;
  uint32_t first = offset / 8;
  uint32_t end = (offset + bits + 7) / 8;
  for (uint32_t i = first; i < end; i++) value = value << 8 | from[i];
  return (uint64_t)(value >> (end * 8 - offset - bits)) & low_mask(bits);
}

// OR 0 to 64 bits into bytes that are zero there.
P4_UNUSED static inline void or_bits(uint8_t *to, uint32_t offset, unsigned bits, uint64_t value) {
  uint32_t first = offset / 8;
  uint32_t end = (offset + bits + 7) / 8;
  wide_uint_t shifted = (wide_uint_t)(value & low_mask(bits)) << (end * 8 - offset - bits);
  for (uint32_t i = end; i-- > first; shifted >>= 8) to[i] |= (uint8_t)shifted;
}

// Shifts by any distance; a negative distance counts as too far.
P4_UNUSED static inline uint64_t shift_left_64(uint64_t value, wide_int_t distance) {
  return distance < 0 || distance > 63 ? 0 : value << (unsigned)distance;
}

P4_UNUSED static inline wide_uint_t shift_left_128(wide_uint_t value, wide_int_t distance) {
  return distance < 0 || distance > 127 ? 0 : value << (unsigned)distance;
}

P4_UNUSED static inline wide_int_t shift_right(wide_int_t value, wide_int_t distance) {
  if (distance < 0 || distance > 126) return value < 0 ? -1 : 0;
  return value >> (unsigned)distance;
}

// Sum of two 32-bit numbers in two's complement; it stops at the limits of int32.
P4_UNUSED static inline int32_t saturating_add_32(int32_t left, int32_t right) {
  uint32_t sum = (uint32_t)left + (uint32_t)right;
  uint32_t overflow = ((uint32_t)left ^ sum) & ((uint32_t)right ^ sum);
  uint32_t limit = (uint32_t)(left >> 31) ^ UINT32_C(0x7fffffff);
  uint32_t chosen = (uint32_t)((int32_t)overflow >> 31); // no condition: loops with one would not be vectorised
  return (int32_t)(sum ^ ((sum ^ limit) & chosen));
}

// Ones' complement sums: keep a 64-bit running sum of 16-bit words, fold at the end.
P4_UNUSED static inline uint16_t fold_16(uint64_t sum) {
  sum = (sum & UINT32_MAX) + (sum >> 32);
  sum = (sum & UINT32_MAX) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)sum;
}

// Sum over bytes; an odd last byte is the high half of a word.
P4_UNUSED static inline uint64_t sum_bytes(const uint8_t *from, uint32_t bytes) {
  uint64_t sum = 0;
  uint32_t i = 0;
  for (; i + 4 <= bytes; i += 4) sum += load_be32(from + i);
  if (i + 2 <= bytes) {
    sum += load_be16(from + i);
    i += 2;
  }
  if (i < bytes) sum += (uint64_t)from[i] << 8;
  return sum;
}

P4_UNUSED static inline uint16_t csum16_bytes(const uint8_t *from, uint32_t bytes) {
  return (uint16_t)~fold_16(sum_bytes(from, bytes));
}

P4_UNUSED static inline uint64_t hash_xor16(const uint8_t *from, uint32_t bytes) {
  uint16_t value = 0;
  uint32_t i = 0;
  for (; i + 2 <= bytes; i += 2) value ^= load_be16(from + i);
  if (i < bytes) value ^= (uint16_t)(from[i] << 8);
  return value;
}

// First eight bytes as a number.
P4_UNUSED static inline uint64_t hash_identity(const uint8_t *from, uint32_t bytes) {
  return load_be(from, bytes < 8 ? bytes : 8);
}

P4_UNUSED static inline uint64_t hash_csum16(const uint8_t *from, uint32_t bytes) {
  return csum16_bytes(from, bytes);
}

#endif
