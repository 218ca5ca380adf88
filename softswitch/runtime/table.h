// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Match tables of every kind. A key is an array of 64-bit words in host order: each field takes (width + 63) / 64 words,
// its most significant word first. Lookups allocate nothing; inserts may move entries, so that pointers into a table live
// until the next control operation only.
#ifndef SOFTSWITCH_TABLE_H
#define SOFTSWITCH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline.h"

#define TABLE_NONE UINT32_MAX

typedef enum { MATCH_EXACT, MATCH_LPM, MATCH_TERNARY, MATCH_RANGE } match_kind_t;

typedef struct {
  uint32_t width; // bits
  match_kind_t kind;
} key_field_t;

typedef struct {
  match_kind_t kind; // of the whole table
  uint32_t num_fields;
  uint32_t words; // of a key
  uint32_t key_bytes; // of a key at the seam
  uint32_t data_bytes; // largest decoded action data
  uint32_t max_entries;
  uint32_t longest_prefix; // width of the lpm field
  const key_field_t *fields;
} table_shape_t;

// One entry; in memory followed by key words, mask words (not for exact) and action data.
typedef struct {
  uint64_t packets;
  uint64_t bytes;
  uint32_t hash;
  uint32_t action; // position in the program's actions; TABLE_NONE: free
  int32_t priority; // lpm: length of the prefix
  uint32_t next_free;
} table_node_t;

typedef struct {
  uint32_t hash;
  uint32_t entry; // TABLE_NONE: empty
} table_bucket_t;

typedef struct {
  const table_shape_t *shape;
  uint8_t *nodes;
  uint32_t stride; // bytes of a node with its tail
  uint32_t capacity;
  uint32_t used; // nodes ever handed out
  uint32_t count; // entries held
  uint32_t free_head;
  uint32_t bucket_mask;
  table_bucket_t *buckets; // by match, all kinds
  uint32_t *ordered; // entries by priority, ternary and range
  uint32_t *prefix_counts; // lpm: entries of each length
  uint32_t *prefixes; // lpm: lengths in use, longest first
  uint32_t num_prefixes;
} table_t;

int table_create(table_t *, const table_shape_t *); // P_OK or P_FULL (no memory); destroy in both cases
void table_destroy(table_t *);
void table_clear_entries(table_t *);

// The matching entry or TABLE_NONE.
uint32_t table_lookup(const table_t *, const uint64_t *key);

// Control operations: match, priority and prefix_len of the entry; data already decoded.
int table_add(table_t *, const table_entry_t *, uint32_t action, const void *data, uint32_t bytes, uint64_t *handle);
int table_locate(const table_t *, const table_entry_t *, uint32_t *entry);
int table_change(table_t *, uint32_t entry, uint32_t action, const void *data, uint32_t bytes);
int table_remove(table_t *, uint32_t entry);

static inline table_node_t *table_node(const table_t *table, uint32_t entry) {
  return (table_node_t *)(void *)(table->nodes + (size_t)entry * table->stride);
}

static inline uint64_t *table_node_key(const table_t *table, uint32_t entry) {
  return (uint64_t *)(table_node(table, entry) + 1);
}

static inline void *table_node_data(const table_t *table, uint32_t entry) {
  uint32_t words = table->shape->kind == MATCH_EXACT ? table->shape->words : 2 * table->shape->words;
  return table_node_key(table, entry) + words;
}

#endif
