// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Hash table from keys to rows, in segments that grow one by one: a segment doubles when it is three quarters full, which
// takes about a millisecond for the largest, and the others stay as they are.
//
// An entry has 32 bits of the key's hash, so that growing reads no rows, and a search reads hardly any row but the one it
// looks for. Other bits of the hash choose the segment.
#ifndef SWITCHFOLD_ROW_INDEX_H
#define SWITCHFOLD_ROW_INDEX_H

#include "mixing.h"
#include "slabs.h"

typedef struct {
  uint32_t tag; // of the hash
  uint32_t row; // its number + 1; 0: the entry is free
} row_entry_t;

typedef struct {
  row_entry_t *entries; // a power of two, NULL before the first key
  uint32_t mask;        // their number - 1
  uint32_t used;
} row_segment_t;

typedef struct {
  const slabs_t *slabs;
  row_segment_t *segments;
  uint32_t num_segments;
} row_index_t;

static inline uint64_t row_index_hash(int64_t key) { return draw((uint64_t)key, 0); }

// `slabs` stays the caller's. Returns false without memory.
bool row_index_init(row_index_t *, const slabs_t *slabs, uint32_t max_rows);
void row_index_close(row_index_t *);

// The key's row, or NULL.
row_t *row_index_find(const row_index_t *, int64_t key, uint64_t hash);

// Fetch the entries where the search for a hash begins into the cache.
void row_index_prefetch(const row_index_t *, uint64_t hash);

// The row that the key with this hash has, unless it is another key's whose hash is alike; reads no row. NULL: the key has
// no row.
row_t *row_index_guess(const row_index_t *, uint64_t hash);

// Add a key that has no row yet. Returns false without memory.
bool row_index_insert(row_index_t *, uint64_t hash, uint32_t row);

#endif
