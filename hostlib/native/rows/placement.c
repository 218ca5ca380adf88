// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "placement.h"

#include "mixing.h"

#define PLACEMENT_NUMBER 2u // draws 0 and 1 of a key are for the index and for initial values

// As shards are added one by one, a key that is on shard b moves when shard j comes with probability 1 / (j + 1), to it. So
// it stays up to j with probability (b + 1) / (j + 1): with r uniform in (0, 1], its next move is to floor((b + 1) / r).
static int32_t shard_of(int64_t key, uint32_t num_shards) {
  uint64_t start = draw((uint64_t)key, PLACEMENT_NUMBER), shard = 0;
  for (uint64_t move = 0;; move++) {
    double uniform = (double)((draw(start, move) >> 11) + 1) * 0x1p-53;
    double next = (double)(shard + 1) / uniform;
    if (next >= num_shards) return (int32_t)shard;
    shard = (uint64_t)next;
  }
}

void placement_shards(const int64_t *keys, uint64_t count, uint32_t num_shards, int32_t *shards) {
  for (uint64_t i = 0; i < count; i++) shards[i] = shard_of(keys[i], num_shards);
}

void placement_order(const int32_t *shards, uint64_t count, uint32_t num_shards, int64_t *order, int64_t *counts) {
  for (uint32_t shard = 0; shard < num_shards; shard++) counts[shard] = 0;
  for (uint64_t i = 0; i < count; i++) counts[shards[i]]++;
  int64_t end = 0;
  for (uint32_t shard = 0; shard < num_shards; shard++) {
    int64_t keys = counts[shard];
    counts[shard] = end;
    end += keys;
  }
  // Each place is where the shard's next key goes; at last, where those of the next shard begin.
  for (uint64_t i = 0; i < count; i++) order[counts[shards[i]]++] = (int64_t)i;
  for (uint32_t shard = num_shards; shard-- > 1;) counts[shard] -= counts[shard - 1];
}
