// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A hash directory: from a 32-bit hash to numbers, at most half full. It grows in small steps: each insertion moves a few
// slots from the previous directory, so that no insertion takes long.
#ifndef SOFTSWITCH_TABLE_INDEX_H
#define SOFTSWITCH_TABLE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

enum { INDEX_EMPTY = 0, INDEX_MOVED = 1, INDEX_FIRST = 2 };

typedef struct {
  uint32_t hash;
  uint32_t value; // INDEX_EMPTY, INDEX_MOVED (in `old` only), or a number + INDEX_FIRST
} index_slot_t;

typedef struct {
  index_slot_t *slots;
  index_slot_t *old; // while growing: the previous slots
  index_slot_t *next; // shortly before growing: memory for the next slots
  size_t next_touched; // bytes of `next` that have been touched
  uint32_t mask, old_mask;
  uint32_t moved; // slots of `old` that have moved
  uint32_t count;
} table_index_t;

bool index_create(table_index_t *);
void index_destroy(table_index_t *);
// Numbers up to UINT32_MAX - 2; the same hash may be added again. False: no memory.
bool index_add(table_index_t *, uint32_t hash, uint32_t number);
void index_remove(table_index_t *, uint32_t hash, uint32_t number);
void index_replace(table_index_t *, uint32_t hash, uint32_t number, uint32_t by);

// The next number of a hash from slot *at on, or INDEX_NONE.
static inline uint32_t index_next(const index_slot_t *slots, uint32_t mask, uint32_t hash, uint32_t *at) {
  for (uint32_t i = *at & mask;; i = (i + 1) & mask) {
    const index_slot_t *slot = &slots[i];
    if (slot->value == INDEX_EMPTY) return INDEX_NONE;
    if (slot->hash != hash || slot->value == INDEX_MOVED) continue;
    *at = i + 1;
    return slot->value - INDEX_FIRST;
  }
}

// The one number of a hash that is never added twice, or INDEX_NONE.
static inline uint32_t index_get(const table_index_t *index, uint32_t hash) {
  uint32_t at = hash;
  uint32_t number = index_next(index->slots, index->mask, hash, &at);
  if (number != INDEX_NONE || index->old == NULL) return number;
  at = hash;
  return index_next(index->old, index->old_mask, hash, &at);
}

#endif
