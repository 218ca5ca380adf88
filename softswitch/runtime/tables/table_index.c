// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "table_index.h"

#include <string.h>

#include "pages.h"

enum { FIRST_SLOTS = 16, MOVED_PER_STEP = 32, ADDED_PER_PAGE = 1024 };

static size_t bytes_of(uint32_t mask) { return ((size_t)mask + 1) * sizeof(index_slot_t); }

bool index_create(table_index_t *index) {
  memset(index, 0, sizeof *index);
  index->mask = FIRST_SLOTS - 1;
  index->slots = pages_reserve(bytes_of(index->mask));
  return index->slots != NULL;
}

static void drop_old(table_index_t *index) {
  if (index->old != NULL) pages_release(index->old, bytes_of(index->old_mask));
  index->old = NULL;
}

void index_destroy(table_index_t *index) {
  drop_old(index);
  if (index->slots != NULL) pages_release(index->slots, bytes_of(index->mask));
  if (index->next != NULL) pages_release(index->next, bytes_of(index->mask * 2 + 1));
  index->slots = index->next = NULL;
}

static void put(table_index_t *index, index_slot_t slot) {
  uint32_t at = slot.hash & index->mask;
  while (index->slots[at].value != INDEX_EMPTY) at = (at + 1) & index->mask;
  index->slots[at] = slot;
}

static void move_some(table_index_t *index) {
  for (uint32_t i = 0; i < MOVED_PER_STEP; i++) {
    index_slot_t *slot = &index->old[index->moved];
    if (slot->value >= INDEX_FIRST) {
      put(index, *slot);
      slot->value = INDEX_MOVED; // not empty: a lookup may have to go past it
    }
    if (index->moved++ == index->old_mask) {
      drop_old(index);
      return;
    }
  }
}

// Reserve memory for the next size, and touch a huge page of it now and then: the kernel clears a page at its first use.
static bool prepare_next(table_index_t *index) {
  size_t bytes = bytes_of(index->mask * 2 + 1);
  if (index->next == NULL) {
    index->next = pages_reserve(bytes);
    if (index->next == NULL) return false;
    pages_prefer_huge(index->next, bytes);
    index->next_touched = 0;
  }
  if (index->next_touched < bytes && index->count % ADDED_PER_PAGE == 0) {
    ((volatile uint8_t *)index->next)[index->next_touched] = 0;
    index->next_touched += PAGES_HUGE_BYTES;
  }
  return true;
}

bool index_add(table_index_t *index, uint32_t hash, uint32_t number) {
  uint32_t limit = (index->mask + 1) / 2;
  if (index->count >= limit - limit / 64 && !prepare_next(index)) return false;
  if (index->count >= limit) {
    while (index->old != NULL) move_some(index);
    uint32_t mask = index->mask * 2 + 1;
    index_slot_t *slots = index->next;
    index->next = NULL;
    index->old = index->slots;
    index->old_mask = index->mask;
    index->moved = 0;
    index->slots = slots;
    index->mask = mask;
  }
  if (index->old != NULL) move_some(index);
  put(index, (index_slot_t){.hash = hash, .value = number + INDEX_FIRST});
  index->count++;
  return true;
}

static index_slot_t *find(index_slot_t *slots, uint32_t mask, uint32_t hash, uint32_t number) {
  for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
    index_slot_t *slot = &slots[at];
    if (slot->value == INDEX_EMPTY) return NULL;
    if (slot->hash == hash && slot->value == number + INDEX_FIRST) return slot;
  }
}

void index_replace(table_index_t *index, uint32_t hash, uint32_t number, uint32_t by) {
  index_slot_t *slot = find(index->slots, index->mask, hash, number);
  if (slot == NULL && index->old != NULL) slot = find(index->old, index->old_mask, hash, number);
  if (slot != NULL) slot->value = by + INDEX_FIRST;
}

void index_remove(table_index_t *index, uint32_t hash, uint32_t number) {
  uint32_t mask = index->mask;
  index_slot_t *slot = find(index->slots, mask, hash, number);
  if (slot == NULL) {
    if (index->old != NULL) slot = find(index->old, index->old_mask, hash, number);
    if (slot == NULL) return;
    slot->value = INDEX_MOVED;
    index->count--;
    return;
  }
  // Close the gap: move up every slot that lookups would not find past an empty one.
  uint32_t hole = (uint32_t)(slot - index->slots);
  for (uint32_t at = (hole + 1) & mask; index->slots[at].value != INDEX_EMPTY; at = (at + 1) & mask) {
    uint32_t home = index->slots[at].hash & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      index->slots[hole] = index->slots[at];
      hole = at;
    }
  }
  index->slots[hole].value = INDEX_EMPTY;
  index->count--;
}
