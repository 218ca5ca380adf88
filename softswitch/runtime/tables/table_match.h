// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The match part of a table entry: from the seam's bytes to key words, and comparison.
#ifndef SOFTSWITCH_TABLE_MATCH_H
#define SOFTSWITCH_TABLE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"

#define MATCH_MAX_WORDS 64 // of a key; the generator refuses longer ones

typedef struct {
  uint64_t key[MATCH_MAX_WORDS];
  uint64_t mask[MATCH_MAX_WORDS]; // ranges: upper bounds
  int32_t rank; // priority, or prefix length for lpm
  uint32_t hash; // exact: of the key
} match_t;

static inline uint64_t match_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

static inline uint32_t match_finish(uint64_t hash) { return (uint32_t)(hash * UINT64_C(0xbf58476d1ce4e5b9) >> 32); }

static inline uint32_t match_hash(const uint64_t *words, uint32_t count, uint64_t hash) {
  for (uint32_t i = 0; i < count; i++) hash = match_mix(hash, words[i]);
  return match_finish(hash);
}

static inline uint32_t match_masked_hash(const uint64_t *words, const uint64_t *mask, uint32_t count, uint64_t hash) {
  for (uint32_t i = 0; i < count; i++) hash = match_mix(hash, words[i] & mask[i]);
  return match_finish(hash);
}

// P_OK or P_BAD_ARGUMENT. Bits that the mask or prefix does not cover are cleared.
int match_decode(const table_shape_t *, const table_entry_t *, match_t *);
// The inverse: writes the table's key_bytes to each of key and mask; exact and lpm fields have ones as mask.
void match_encode(const table_shape_t *, const table_node_t *, uint8_t *key, uint8_t *mask, int32_t *prefix_len);
// Whether an entry of a table with range fields covers the key; held: key words, then mask words.
bool match_ranges(const table_shape_t *, const uint64_t *held, const uint64_t *key);

#endif
