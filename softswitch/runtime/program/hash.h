// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Hashes over a head of serialised fields and a tail, which is the packet's payload or empty.
#ifndef SOFTSWITCH_HASH_H
#define SOFTSWITCH_HASH_H

#include "crc.h"
#include "packet.h"

P4_UNUSED static inline uint64_t hash_tail_csum16(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                  uint32_t tail_bytes) {
  uint16_t rest = fold_16(sum_bytes(tail, tail_bytes));
  if (head_bytes % 2 != 0) rest = __builtin_bswap16(rest);
  return (uint16_t)~fold_16(sum_bytes(head, head_bytes) + rest);
}

P4_UNUSED static inline uint64_t hash_tail_crc32(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                 uint32_t tail_bytes) {
  return crc_32(crc_32(UINT32_MAX, head, head_bytes), tail, tail_bytes) ^ UINT32_MAX;
}

P4_UNUSED static inline uint64_t hash_tail_crc16(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                 uint32_t tail_bytes) {
  return crc_16(crc_16(0, head, head_bytes), tail, tail_bytes);
}

P4_UNUSED static inline uint64_t hash_tail_crcCCITT(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                    uint32_t tail_bytes) {
  return crc_ccitt(crc_ccitt(0xffff, head, head_bytes), tail, tail_bytes);
}

P4_UNUSED static inline uint64_t hash_crc32(const uint8_t *from, uint32_t bytes) {
  return crc_32(UINT32_MAX, from, bytes) ^ UINT32_MAX;
}

P4_UNUSED static inline uint64_t hash_crc16(const uint8_t *from, uint32_t bytes) { return crc_16(0, from, bytes); }

P4_UNUSED static inline uint64_t hash_crcCCITT(const uint8_t *from, uint32_t bytes) {
  return crc_ccitt(0xffff, from, bytes);
}

P4_UNUSED static inline uint64_t hash_tail_xor16(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                 uint32_t tail_bytes) {
  uint16_t rest = (uint16_t)hash_xor16(tail, tail_bytes);
  if (head_bytes % 2 != 0) rest = __builtin_bswap16(rest);
  return hash_xor16(head, head_bytes) ^ rest;
}

P4_UNUSED static inline uint64_t hash_xor32(const uint8_t *from, uint32_t bytes) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < bytes; i++) value ^= (uint32_t)from[i] << (24 - i % 4 * 8);
  return value;
}

P4_UNUSED static inline uint64_t hash_tail_xor32(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                 uint32_t tail_bytes) {
  uint32_t value = (uint32_t)hash_xor32(head, head_bytes);
  for (uint32_t i = 0; i < tail_bytes; i++) value ^= (uint32_t)tail[i] << (24 - (head_bytes + i) % 4 * 8);
  return value;
}

P4_UNUSED static inline uint64_t hash_tail_identity(const uint8_t *head, uint32_t head_bytes, const uint8_t *tail,
                                                    uint32_t tail_bytes) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < 8 && i < head_bytes + tail_bytes; i++) {
    value = value << 8 | (i < head_bytes ? head[i] : tail[i - head_bytes]);
  }
  return value;
}

#endif
