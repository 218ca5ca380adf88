// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tuple space: entries that look at the same bits of a key form a tuple, in which one hash finds them. A lookup asks the
// tuples from the highest rank that any of their entries has downwards, and stops where none can win any more.
//
// A range in the table's first range field is taken apart into prefixes, each in the tuple of its length; entries that hang
// in several tuples are linked into each. Further range fields are compared entry by entry.
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
