// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The Switchfold header (docs/wire_format.md): where its fields lie in a datagram. Numbers on the wire are big-endian.
#ifndef SWITCHFOLD_HEADER_H
#define SWITCHFOLD_HEADER_H

#include <stdint.h>
#include <string.h>

#define HEADER_BYTES 44u
#define VALUE_BYTES 4u
#define WIRE_VERSION 2u

typedef enum {
  AGGREGATE_ADD = 1,
  AGGREGATE_MAX = 2,
  FLUSH = 3,
  PROBE = 4,
  RESULT = 5,
  NOTICE = 6,
  MULTICAST = 7,
  READ = 8,
  WRITE = 9,
} operation_t;

typedef enum {
  PARTIAL = 1 << 0,
  FLUSHED = 1 << 1,
  ECN_ECHO = 1 << 2,
  OVERFLOW = 1 << 3,
  LAST = 1 << 4,
  REPLAY = 1 << 5,
  REPORT = 1 << 6,
  TO_SERVER = 1 << 7,
  COLD = 1 << 8,
} flag_t;

typedef enum {
  VERSION_AT = 0,
  OPERATION_AT = 1,
  FLAGS_AT = 2,
  TREE_AT = 4,
  CHILD_AT = 6,
  PRIORITY_AT = 7,
  GENERATION_AT = 8,
  SLOT_AT = 12,
  ROUND_AT = 16,
  TENSOR_AT = 20,
  CHUNK_AT = 24,
  START_AT = 28,
  END_AT = 32,
  BITMAP_AT = 36,
  CONTRIBUTORS_AT = 40,
  EXPONENT_AT = 42,
  EXPECTED_AT = 43,
} offset_t;

static inline uint16_t load16(const uint8_t *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return __builtin_bswap16(value);
}

static inline uint32_t load32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return __builtin_bswap32(value);
}

static inline void store16(uint8_t *at, uint16_t value) {
  value = __builtin_bswap16(value);
  memcpy(at, &value, sizeof value);
}

static inline void store32(uint8_t *at, uint32_t value) {
  value = __builtin_bswap32(value);
  memcpy(at, &value, sizeof value);
}

#endif
