// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <string.h>

#include "pages.h"
#include "table_match.h"
#include "table_tuples.h"

// Bytes of entries in use from which a table gets huge pages.
enum { HUGE_FROM = 512 * 1024 };

static size_t node_bytes(const table_shape_t *shape) { return (size_t)shape->max_entries * shape->stride; }

static size_t taken_bytes(const table_shape_t *shape) { return ((size_t)shape->max_entries + 63) / 64 * 8; }

static bool is_exact(const table_t *table) { return table->shape->kind == MATCH_EXACT; }

int table_create(table_t *table, const table_shape_t *shape) {
  memset(table, 0, sizeof *table);
  table->shape = shape;
  table->nodes = pages_reserve(node_bytes(shape));
  table->taken = pages_reserve(taken_bytes(shape));
  if (table->nodes == NULL || table->taken == NULL) return P_FULL;
  if (is_exact(table)) return index_create(&table->index) ? P_OK : P_FULL;
  table->tuples = tuples_create(shape);
  return table->tuples != NULL ? P_OK : P_FULL;
}

void table_destroy(table_t *table) {
  const table_shape_t *shape = table->shape;
  if (shape == NULL) return;
  pages_release(table->nodes, node_bytes(shape));
  pages_release(table->taken, taken_bytes(shape));
  index_destroy(&table->index);
  if (table->tuples != NULL) tuples_destroy(table->tuples);
  memset(table, 0, sizeof *table);
}

int table_clear_entries(table_t *table, table_t *before) {
  table_t empty;
  int result = table_create(&empty, table->shape);
  if (result != P_OK) {
    table_destroy(&empty);
    return result;
  }
  empty.is_open = table->is_open;
  *before = *table;
  *table = empty;
  return P_OK;
}

// ---- memory of entries ----

static uint32_t take_node(table_t *table) {
  uint32_t word = table->first_free;
  while (table->taken[word] == UINT64_MAX) word++; // there is one: count < max_entries
  table->first_free = word;
  uint32_t entry = word * 64 + (uint32_t)__builtin_ctzll(~table->taken[word]);
  table->taken[word] |= UINT64_C(1) << entry % 64;
  if (entry >= table->used) table->used = entry + 1;
  if (entry == HUGE_FROM / table->shape->stride) pages_prefer_huge(table->nodes, node_bytes(table->shape));
  return entry;
}

static void give_node(table_t *table, uint32_t entry) {
  table->taken[entry / 64] &= ~(UINT64_C(1) << entry % 64);
  if (entry / 64 < table->first_free) table->first_free = entry / 64;
  table_node(table, entry)->action = TABLE_NONE;
}

// ---- exact tables ----

static uint32_t probe(const table_t *table, const index_slot_t *slots, uint32_t mask, uint32_t hash,
                      const uint64_t *key) {
  uint32_t words = table->shape->words;
  uint32_t at = hash;
  for (;;) {
    uint32_t entry = index_next(slots, mask, hash, &at);
    if (entry == INDEX_NONE) return TABLE_NONE;
    const uint64_t *held = table_exact_key(table_node(table, entry));
    uint64_t difference = 0;
    for (uint32_t i = 0; i < words; i++) difference |= held[i] ^ key[i];
    if (difference == 0) return entry;
  }
}

static uint32_t find_exact(const table_t *table, const uint64_t *key, uint32_t hash) {
  uint32_t entry = probe(table, table->index.slots, table->index.mask, hash, key);
  if (entry != TABLE_NONE || table->index.old == NULL) return entry;
  return probe(table, table->index.old, table->index.old_mask, hash, key);
}

uint32_t table_lookup(const table_t *table, const uint64_t *key) {
  if (table->count == 0) return TABLE_NONE;
  if (!is_exact(table)) return tuples_lookup(table, key);
  return find_exact(table, key, match_hash(key, table->shape->words, 0));
}

// ---- control operations ----

static uint32_t find_match(const table_t *table, const match_t *match) {
  if (is_exact(table)) return find_exact(table, match->key, match->hash);
  return tuples_find(table, match);
}

int table_locate(const table_t *table, const table_entry_t *entry, uint32_t *found) {
  match_t match;
  int result = match_decode(table->shape, entry, &match);
  if (result != P_OK) return result;
  *found = find_match(table, &match);
  return *found == TABLE_NONE ? P_NOT_FOUND : P_OK;
}

int table_change(table_t *table, uint32_t entry, uint32_t action, const void *data, uint32_t bytes) {
  if (bytes > table->shape->data_bytes) return P_BAD_ARGUMENT;
  table_node_t *node = table_node(table, entry);
  node->action = action;
  if (bytes != 0) memcpy(table_node_at(node, table->shape->data_offset), data, bytes);
  return P_OK;
}

int table_add(table_t *table, const table_entry_t *entry, uint32_t action, const void *data, uint32_t bytes,
              uint64_t *handle) {
  const table_shape_t *shape = table->shape;
  match_t match;
  int result = match_decode(shape, entry, &match);
  if (result != P_OK) return result;
  if (bytes > shape->data_bytes) return P_BAD_ARGUMENT;
  if (find_match(table, &match) != TABLE_NONE) return P_EXISTS;
  if (table->count >= shape->max_entries) return P_FULL;
  uint32_t index = take_node(table);
  table_node_t *node = table_node(table, index);
  memset(node, 0, shape->stride);
  if (is_exact(table)) {
    node->hash = match.hash;
    memcpy(table_exact_key(node), match.key, shape->words * 8);
  } else {
    *node = (table_node_t){.rank = match.rank, .link = TABLE_NONE};
    memcpy(table_node_key(node), match.key, shape->words * 8);
    memcpy(table_node_key(node) + shape->words, match.mask, shape->words * 8);
  }
  table_change(table, index, action, data, bytes);
  bool is_added = is_exact(table) ? index_add(&table->index, match.hash, index) : tuples_add(table, index);
  if (!is_added) {
    give_node(table, index);
    return P_FULL;
  }
  table->count++;
  if (handle != NULL) *handle = index;
  return P_OK;
}

int table_remove(table_t *table, uint32_t entry) {
  if (is_exact(table)) index_remove(&table->index, table_node(table, entry)->hash, entry);
  else tuples_remove(table, entry);
  give_node(table, entry);
  table->count--;
  return P_OK;
}
