// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Single int32 values of packets, and of the rows of a host allreduce.
#ifndef SWITCHFOLD_VALUE_WORDS_H
#define SWITCHFOLD_VALUE_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Of int32 values: that of packets, or that of this machine, in which host allreduce adds them.
typedef enum { NETWORK_ORDER, NATIVE_ORDER } byte_order_t;

static inline void word_put(uint8_t *values, uint32_t i, int32_t value, byte_order_t order) {
  uint32_t word = order == NETWORK_ORDER ? __builtin_bswap32((uint32_t)value) : (uint32_t)value;
  memcpy(values + 4 * (size_t)i, &word, sizeof word);
}

static inline int32_t word_get(const uint8_t *values, uint32_t i, byte_order_t order) {
  uint32_t word;
  memcpy(&word, values + 4 * (size_t)i, sizeof word);
  return (int32_t)(order == NETWORK_ORDER ? __builtin_bswap32(word) : word);
}

#endif
