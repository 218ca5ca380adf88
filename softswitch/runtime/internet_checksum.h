// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of the Internet's checksums (RFC 1071).
#ifndef SOFTSWITCH_INTERNET_CHECKSUM_H
#define SOFTSWITCH_INTERNET_CHECKSUM_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define SUM_LANES 8u

static inline uint32_t ones_fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint32_t)sum;
}

// One's complement sum of big-endian 16-bit words, folded; an odd last byte is the high half of a word. It adds in the
// machine's byte order and swaps only the sum, which gives the same result.
static inline uint32_t ones_sum(const uint8_t *data, uint32_t bytes) {
  uint64_t sums[SUM_LANES] = {0}; // several, so that the compiler vectorises
  uint32_t words[2 * SUM_LANES];
  for (; bytes >= sizeof words; data += sizeof words, bytes -= (uint32_t)sizeof words) {
    memcpy(words, data, sizeof words);
    for (uint32_t i = 0; i < SUM_LANES; i++) sums[i] += (uint64_t)words[i] + words[i + SUM_LANES];
  }
  uint64_t sum = 0;
  for (uint32_t i = 0; i < SUM_LANES; i++) sum += sums[i];
  memset(words, 0, sizeof words);
  memcpy(words, data, bytes);
  for (uint32_t i = 0; i < 2 * SUM_LANES; i++) sum += words[i];
  return ntohs((uint16_t)ones_fold(sum));
}

#endif
