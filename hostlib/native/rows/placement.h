// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which shard holds a key: jump consistent hashing (Lamping and Veach, 2014). Of the keys of n shards, a further shard
// takes 1 / (n + 1), and no other key moves.
#ifndef SWITCHFOLD_PLACEMENT_H
#define SWITCHFOLD_PLACEMENT_H

#include <stdint.h>

// Write the shard of each key, from 0 to `num_shards` - 1.
void placement_shards(const int64_t *keys, uint64_t count, uint32_t num_shards, int32_t *shards);

// Write the positions of the keys by shard, those of a shard in their order, and how many keys each shard has. `shards` are
// those of the keys.
void placement_order(const int32_t *shards, uint64_t count, uint32_t num_shards, int64_t *order, int64_t *counts);

#endif
