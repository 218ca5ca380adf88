// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of the Internet's checksums (RFC 1071).
#ifndef SOFTSWITCH_INTERNET_CHECKSUM_H
#define SOFTSWITCH_INTERNET_CHECKSUM_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t ones_fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint32_t)sum;
}

// One's complement sum of big-endian 16-bit words, folded; an odd last byte is the high half of a word. It adds in the
// machine's byte order and swaps only the sum, which gives the same result. The compiler vectorises the loop.
static inline uint32_t ones_sum(const uint8_t *data, uint32_t bytes) {
  uint64_t sum = 0;
  uint32_t words = bytes / 4, word;
  for (uint32_t i = 0; i < words; i++) {
    memcpy(&word, data + 4 * i, 4);
    sum += word;
  }
  word = 0;
  memcpy(&word, data + 4 * words, bytes % 4);
  return ntohs((uint16_t)ones_fold(sum + word));
}

#endif
