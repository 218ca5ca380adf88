// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tuple space: entries that compare the same bits of a key form a tuple, in which one hash finds them. A lookup searches
// the tuples by falling rank of their best entries, and stops when no later tuple can win.
//
// A range in the table's first range field is split into prefixes. Each prefix belongs to the tuple of its length, and its
// entry is linked into every such tuple. Further range fields are compared entry by entry.
#ifndef SOFTSWITCH_TABLE_TUPLES_H
#define SOFTSWITCH_TABLE_TUPLES_H

#include "table_match.h"

table_tuples_t *tuples_create(const table_shape_t *); // NULL: no memory
void tuples_destroy(table_tuples_t *);

// The entry of the highest rank that matches, among equals the lowest; or TABLE_NONE.
uint32_t tuples_lookup(const table_t *, const uint64_t *key);
// The entry with exactly this match and rank, or TABLE_NONE.
uint32_t tuples_find(const table_t *, const match_t *);

// The node holds key, mask and rank. False: no memory, and nothing has changed.
bool tuples_add(table_t *, uint32_t entry);
void tuples_remove(table_t *, uint32_t entry);

#endif
