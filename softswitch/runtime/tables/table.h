// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Match tables of every kind. A key is an array of 64-bit words in host order: each field takes (width + 63) / 64 words,
// its most significant word first. Lookups allocate nothing. An entry does not move between insertion and removal.
//
// Exact tables are hash tables. All others are tuple spaces (table_tuples.h): a hash table per mask in use.
#ifndef SOFTSWITCH_TABLE_H
#define SOFTSWITCH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline.h"
#include "table_index.h"

#define TABLE_NONE UINT32_MAX
#define TABLE_ENTRIES_MAX (UINT32_C(1) << 30)

typedef enum { MATCH_EXACT, MATCH_LPM, MATCH_TERNARY, MATCH_RANGE } match_kind_t;

typedef struct {
  uint32_t width; // bits
  match_kind_t kind;
} key_field_t;

// What an entry holds besides match and action data.
enum { ENTRY_COUNTED = 1, ENTRY_TIMED = 2, ENTRY_METERED = 4 };

typedef struct {
  match_kind_t kind; // of the whole table
  uint32_t num_fields;
  uint32_t words; // of a key
  uint32_t key_bytes; // of a key at the seam
  uint32_t data_bytes; // largest decoded action data
  uint32_t params_bytes; // largest parameters at the seam
  uint32_t max_entries;
  uint32_t extras; // ENTRY_ flags
  uint32_t data_offset; // in bytes from the node, like the following offsets; see TABLE_DATA_OFFSET
  uint32_t counter_offset;
  uint32_t idle_offset;
  uint32_t meter_offset;
  uint32_t stride; // bytes from one node to the next
  const key_field_t *fields;
  const uint64_t *key_mask; // the program's masks, a word for each word of the key; NULL: none
} table_shape_t;

// One entry; in memory followed by key words, mask words, action data and extras. In exact tables the key begins at `rank`,
// and there are no masks: key, action and data of most entries share a cache line.
typedef struct {
  uint32_t hash; // exact: of the key
  uint32_t action; // position in the program's actions; TABLE_NONE: free
  int32_t rank; // larger wins: the priority, or for lpm the length of the prefix
  uint32_t link; // first link of the entry in the tuple space
} table_node_t;

typedef struct {
  uint64_t packets;
  uint64_t bytes;
} counter_cell_t;

// Times in microseconds, except the timeout, on the clock of the packets' ingress time stamps.
typedef struct {
  uint64_t last_us; // hit, or written by the control plane
  uint64_t timeout_ns; // 0: never
  uint64_t reported_us; // last_us + 1 when its expiry was reported; 0: not reported
} idle_cell_t;

typedef struct {
  uint64_t total; // tokens since time 0, at the last update
  uint64_t tokens;
  uint64_t burst;
  double per_us;
} meter_bucket_t;

typedef struct {
  uint64_t is_configured;
  meter_rates_t rates;
  meter_bucket_t peak, committed;
} meter_cell_t;

#define TABLE_EXACT_KEY 8u // bytes from the node
#define TABLE_DATA_OFFSET(words, has_masks) \
  ((has_masks) ? (uint32_t)sizeof(table_node_t) + 2u * (words) * 8u : TABLE_EXACT_KEY + (words) * 8u)
// If nodes begin at a page, none that fits into a cache line lies in two.
#define TABLE_STRIDE(bytes) ((bytes) <= 16u ? 16u : (bytes) <= 32u ? 32u : (bytes) <= 64u ? 64u : (uint32_t)(bytes))
#define TABLE_ROUND(bytes) (((uint32_t)(bytes) + 7u) / 8u * 8u)
#define TABLE_EXTRA_BYTES(type, extras, flag) (((extras) & (flag)) ? (uint32_t)sizeof(type) : 0u)

typedef struct table_tuples table_tuples_t;

typedef struct {
  const table_shape_t *shape;
  uint8_t *nodes;
  uint64_t *taken; // a bit per entry; the lowest free one is next, as in simple_switch: it decides between equal ranks
  uint32_t first_free; // no free entry is below this one's word
  uint32_t used; // entries at and above this were never taken
  uint32_t count; // entries held
  bool is_open; // entries of the program may be changed
  table_index_t index; // exact: entries by key
  table_tuples_t *tuples; // all other kinds
} table_t;

int table_create(table_t *, const table_shape_t *); // P_OK or P_FULL (no memory); destroy in both cases
void table_destroy(table_t *);
// Move the table's contents to `before`, which the caller destroys. P_FULL (no memory): nothing has changed.
int table_clear_entries(table_t *, table_t *before);

// The matching entry or TABLE_NONE.
uint32_t table_lookup(const table_t *, const uint64_t *key);

// Control operations: they use match, priority and prefix_len of the entry; data is decoded already.
int table_add(table_t *, const table_entry_t *, uint32_t action, const void *data, uint32_t bytes, uint64_t *handle);
int table_locate(const table_t *, const table_entry_t *, uint32_t *entry);
int table_change(table_t *, uint32_t entry, uint32_t action, const void *data, uint32_t bytes);
int table_remove(table_t *, uint32_t entry);

static inline table_node_t *table_node(const table_t *table, uint32_t entry) {
  return (table_node_t *)(void *)(table->nodes + (size_t)entry * table->shape->stride);
}

static inline uint64_t *table_node_key(const table_node_t *node) { return (uint64_t *)(uintptr_t)(node + 1); }

static inline uint64_t *table_exact_key(const table_node_t *node) {
  return (uint64_t *)(void *)((uint8_t *)(uintptr_t)node + TABLE_EXACT_KEY);
}

static inline bool table_is_taken(const table_t *table, uint32_t entry) {
  return table->taken[entry / 64] >> entry % 64 & 1;
}

static inline void *table_node_at(const table_node_t *node, uint32_t offset) {
  return (uint8_t *)(uintptr_t)node + offset;
}

#endif
