// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <stdlib.h>

#include "packet.h"
#include "table_match.h"

enum { FIRST_CAPACITY = 16 };

static bool has_masks(const table_t *table) { return table->shape->kind != MATCH_EXACT; }

static bool is_ordered(const table_t *table) {
  return table->shape->kind == MATCH_TERNARY || table->shape->kind == MATCH_RANGE;
}

int table_create(table_t *table, const table_shape_t *shape) {
  memset(table, 0, sizeof *table);
  table->shape = shape;
  table->free_head = TABLE_NONE;
  uint32_t words = has_masks(table) ? 2 * shape->words : shape->words;
  table->stride = (uint32_t)sizeof(table_node_t) + words * 8 + (shape->data_bytes + 7) / 8 * 8;
  table->buckets = malloc(2 * sizeof *table->buckets);
  if (table->buckets == NULL) return P_FULL;
  table->bucket_mask = 1;
  for (uint32_t i = 0; i < 2; i++) table->buckets[i].entry = TABLE_NONE;
  if (shape->kind == MATCH_LPM) {
    table->prefix_counts = calloc(shape->longest_prefix + 1, sizeof *table->prefix_counts);
    table->prefixes = calloc(shape->longest_prefix + 1, sizeof *table->prefixes);
    if (table->prefix_counts == NULL || table->prefixes == NULL) return P_FULL;
  }
  return P_OK;
}

void table_destroy(table_t *table) {
  free(table->nodes);
  free(table->buckets);
  free(table->ordered);
  free(table->prefix_counts);
  free(table->prefixes);
  memset(table, 0, sizeof *table);
}

void table_clear_entries(table_t *table) {
  for (uint32_t i = 0; i <= table->bucket_mask; i++) table->buckets[i].entry = TABLE_NONE;
  table->used = 0;
  table->count = 0;
  table->free_head = TABLE_NONE;
  table->num_prefixes = 0;
  if (table->prefix_counts != NULL)
    memset(table->prefix_counts, 0, (table->shape->longest_prefix + 1) * sizeof *table->prefix_counts);
}

// ---- index by match ----

static bool is_same_match(const table_t *table, uint32_t entry, const match_t *match) {
  const table_node_t *node = table_node(table, entry);
  uint32_t words = table->shape->words;
  if (memcmp(table_node_key(table, entry), match->key, words * 8) != 0) return false;
  if (!has_masks(table)) return true;
  if (node->priority != match->rank) return false;
  return memcmp(table_node_key(table, entry) + words, match->mask, words * 8) == 0;
}

static uint32_t find_match(const table_t *table, const match_t *match) {
  for (uint32_t at = match->hash & table->bucket_mask;; at = (at + 1) & table->bucket_mask) {
    const table_bucket_t *bucket = &table->buckets[at];
    if (bucket->entry == TABLE_NONE) return TABLE_NONE;
    if (bucket->hash == match->hash && is_same_match(table, bucket->entry, match)) return bucket->entry;
  }
}

static void index_insert(table_t *table, uint32_t hash, uint32_t entry) {
  uint32_t at = hash & table->bucket_mask;
  while (table->buckets[at].entry != TABLE_NONE) at = (at + 1) & table->bucket_mask;
  table->buckets[at] = (table_bucket_t){.hash = hash, .entry = entry};
}

static void index_remove(table_t *table, uint32_t hash, uint32_t entry) {
  uint32_t mask = table->bucket_mask;
  uint32_t hole = hash & mask;
  while (table->buckets[hole].entry != entry) hole = (hole + 1) & mask;
  // Close the gap: move up what may not sit behind an empty bucket.
  for (uint32_t at = (hole + 1) & mask; table->buckets[at].entry != TABLE_NONE; at = (at + 1) & mask) {
    uint32_t home = table->buckets[at].hash & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      table->buckets[hole] = table->buckets[at];
      hole = at;
    }
  }
  table->buckets[hole].entry = TABLE_NONE;
}

static bool grow(table_t *table) {
  uint32_t capacity = table->capacity == 0 ? FIRST_CAPACITY : table->capacity * 2;
  if (capacity > table->shape->max_entries) capacity = table->shape->max_entries;
  uint32_t buckets = 2;
  while (buckets < 2 * capacity) buckets *= 2;
  uint8_t *nodes = realloc(table->nodes, (size_t)capacity * table->stride);
  if (nodes == NULL) return false;
  table->nodes = nodes;
  if (is_ordered(table)) {
    uint32_t *ordered = realloc(table->ordered, (size_t)capacity * sizeof *ordered);
    if (ordered == NULL) return false;
    table->ordered = ordered;
  }
  table_bucket_t *fresh = malloc((size_t)buckets * sizeof *fresh);
  if (fresh == NULL) return false;
  for (uint32_t i = 0; i < buckets; i++) fresh[i].entry = TABLE_NONE;
  free(table->buckets);
  table->buckets = fresh;
  table->bucket_mask = buckets - 1;
  table->capacity = capacity;
  for (uint32_t i = 0; i < table->used; i++)
    if (table_node(table, i)->action != TABLE_NONE) index_insert(table, table_node(table, i)->hash, i);
  return true;
}

static uint32_t take_node(table_t *table) {
  if (table->free_head != TABLE_NONE) {
    uint32_t entry = table->free_head;
    table->free_head = table_node(table, entry)->next_free;
    return entry;
  }
  if (table->used == table->capacity && !grow(table)) return TABLE_NONE;
  return table->used++;
}

// ---- order by priority and prefix ----

// Behind all entries of the same priority: the older one wins.
static void order_insert(table_t *table, uint32_t entry, int32_t priority) {
  uint32_t low = 0;
  uint32_t high = table->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (table_node(table, table->ordered[middle])->priority >= priority) low = middle + 1;
    else high = middle;
  }
  memmove(table->ordered + low + 1, table->ordered + low, (table->count - low) * sizeof *table->ordered);
  table->ordered[low] = entry;
}

static void order_remove(table_t *table, uint32_t entry) {
  uint32_t at = 0;
  while (table->ordered[at] != entry) at++;
  memmove(table->ordered + at, table->ordered + at + 1, (table->count - at - 1) * sizeof *table->ordered);
}

static void list_prefixes(table_t *table) {
  table->num_prefixes = 0;
  for (uint32_t length = table->shape->longest_prefix + 1; length-- > 0;)
    if (table->prefix_counts[length] != 0) table->prefixes[table->num_prefixes++] = length;
}

// ---- control operations ----

int table_locate(const table_t *table, const table_entry_t *entry, uint32_t *found) {
  match_t match;
  int result = match_decode(table->shape, entry, &match);
  if (result != P_OK) return result;
  *found = find_match(table, &match);
  return *found == TABLE_NONE ? P_NOT_FOUND : P_OK;
}

int table_change(table_t *table, uint32_t entry, uint32_t action, const void *data, uint32_t bytes) {
  if (bytes > table->shape->data_bytes) return P_BAD_ARGUMENT;
  table_node(table, entry)->action = action;
  if (bytes != 0) memcpy(table_node_data(table, entry), data, bytes);
  return P_OK;
}

int table_add(table_t *table, const table_entry_t *entry, uint32_t action, const void *data, uint32_t bytes,
              uint64_t *handle) {
  match_t match;
  int result = match_decode(table->shape, entry, &match);
  if (result != P_OK) return result;
  if (find_match(table, &match) != TABLE_NONE) return P_EXISTS;
  if (table->count >= table->shape->max_entries) return P_FULL;
  uint32_t index = take_node(table);
  if (index == TABLE_NONE) return P_FULL;
  uint32_t words = table->shape->words;
  table_node_t *node = table_node(table, index);
  *node = (table_node_t){.hash = match.hash, .priority = match.rank};
  memcpy(table_node_key(table, index), match.key, words * 8);
  if (has_masks(table)) memcpy(table_node_key(table, index) + words, match.mask, words * 8);
  table_change(table, index, action, data, bytes);
  index_insert(table, match.hash, index);
  if (is_ordered(table)) order_insert(table, index, match.rank);
  if (table->shape->kind == MATCH_LPM && table->prefix_counts[match.rank]++ == 0) list_prefixes(table);
  table->count++;
  if (handle != NULL) *handle = index;
  return P_OK;
}

int table_remove(table_t *table, uint32_t entry) {
  table_node_t *node = table_node(table, entry);
  index_remove(table, node->hash, entry);
  if (is_ordered(table)) order_remove(table, entry);
  if (table->shape->kind == MATCH_LPM && --table->prefix_counts[node->priority] == 0) list_prefixes(table);
  node->action = TABLE_NONE;
  node->next_free = table->free_head;
  table->free_head = entry;
  table->count--;
  return P_OK;
}

// ---- lookups ----

static uint32_t lookup_exact(const table_t *table, const uint64_t *key) {
  uint32_t words = table->shape->words;
  uint32_t hash = match_hash(key, words, 0);
  for (uint32_t at = hash & table->bucket_mask;; at = (at + 1) & table->bucket_mask) {
    const table_bucket_t *bucket = &table->buckets[at];
    if (bucket->entry == TABLE_NONE) return TABLE_NONE;
    if (bucket->hash != hash) continue;
    const uint64_t *held = table_node_key(table, bucket->entry);
    uint64_t difference = 0;
    for (uint32_t i = 0; i < words; i++) difference |= held[i] ^ key[i];
    if (difference == 0) return bucket->entry;
  }
}

static uint32_t lookup_lpm(const table_t *table, const uint64_t *key) {
  match_t match;
  for (uint32_t i = 0; i < table->num_prefixes; i++) {
    match_prefix(table->shape, key, table->prefixes[i], &match);
    uint32_t entry = find_match(table, &match);
    if (entry != TABLE_NONE) return entry;
  }
  return TABLE_NONE;
}

static bool is_ternary_match(const uint64_t *held, const uint64_t *key, uint32_t words) {
  uint64_t difference = 0;
  for (uint32_t i = 0; i < words; i++) difference |= (key[i] ^ held[i]) & held[words + i];
  return difference == 0;
}

static uint32_t lookup_ordered(const table_t *table, const uint64_t *key) {
  uint32_t words = table->shape->words;
  bool has_ranges = table->shape->kind == MATCH_RANGE;
  for (uint32_t i = 0; i < table->count; i++) {
    const uint64_t *held = table_node_key(table, table->ordered[i]);
    if (has_ranges ? match_ranges(table->shape, held, key) : is_ternary_match(held, key, words)) return table->ordered[i];
  }
  return TABLE_NONE;
}

uint32_t table_lookup(const table_t *table, const uint64_t *key) {
  if (table->count == 0) return TABLE_NONE;
  switch (table->shape->kind) {
  case MATCH_EXACT: return lookup_exact(table, key);
  case MATCH_LPM: return lookup_lpm(table, key);
  case MATCH_TERNARY:
  case MATCH_RANGE: return lookup_ordered(table, key);
  }
  return TABLE_NONE;
}
