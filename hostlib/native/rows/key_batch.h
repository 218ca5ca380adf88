// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The different keys among those of one call, and their rows.
#ifndef SWITCHFOLD_KEY_BATCH_H
#define SWITCHFOLD_KEY_BATCH_H

#include "row_index.h"

#define MOST_POSITIONS (UINT32_C(1) << 30) // of a batch

typedef struct {
  const int64_t *keys; // the caller's
  uint32_t count;      // positions
  uint32_t num_keys;   // different ones, in the order of their first positions
  uint32_t num_repeated; // of these, at more than one position
  uint32_t *numbers;   // by position: which of the different keys
  uint32_t *first;     // by key: its first position
  uint32_t *times;     // by key: how many positions
  uint64_t *hashes;    // by key
  row_t **rows;        // by key, once key_batch_find has been called; NULL: none
} key_batch_t;

// Group at most MOST_POSITIONS keys. Returns false without memory; else the batch is to be closed.
bool key_batch_open(key_batch_t *, const int64_t *keys, uint32_t count);
void key_batch_close(key_batch_t *);

// Find the rows. Returns how many keys have none. The first `row_bytes` of each row are on their way into the cache.
uint32_t key_batch_find(key_batch_t *, const row_index_t *, uint32_t row_bytes);

#endif
