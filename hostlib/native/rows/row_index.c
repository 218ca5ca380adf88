// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "row_index.h"

#include <stdlib.h>

#define SEGMENT_ROWS 32768u // on average, in a full table
#define LEAST_ENTRIES 16u

bool row_index_init(row_index_t *index, const slabs_t *slabs, uint32_t max_rows) {
  *index = (row_index_t){.slabs = slabs, .num_segments = max_rows / SEGMENT_ROWS + 1};
  index->segments = calloc(index->num_segments, sizeof *index->segments);
  return index->segments;
}

void row_index_close(row_index_t *index) {
  for (uint32_t i = 0; index->segments && i < index->num_segments; i++) free(index->segments[i].entries);
  free(index->segments);
}

static inline row_segment_t *segment_of(const row_index_t *index, uint64_t hash) {
  return &index->segments[(hash >> 32) * index->num_segments >> 32];
}

void row_index_prefetch(const row_index_t *index, uint64_t hash) {
  const row_segment_t *segment = segment_of(index, hash);
  if (segment->entries) __builtin_prefetch(&segment->entries[(uint32_t)hash & segment->mask]);
}

// The first row with the hash's tag that has the key, or whatever key it has if `key` is NULL.
static inline row_t *search(const row_index_t *index, uint64_t hash, const int64_t *key) {
  const row_segment_t *segment = segment_of(index, hash);
  uint32_t tag = (uint32_t)hash;
  if (!segment->entries) return NULL;
  for (uint32_t at = tag & segment->mask; segment->entries[at].row; at = (at + 1) & segment->mask) {
    if (segment->entries[at].tag != tag) continue;
    row_t *row = slabs_row(index->slabs, segment->entries[at].row - 1);
    if (!key || row->key == *key) return row;
  }
  return NULL;
}

row_t *row_index_guess(const row_index_t *index, uint64_t hash) { return search(index, hash, NULL); }

row_t *row_index_find(const row_index_t *index, int64_t key, uint64_t hash) { return search(index, hash, &key); }

static void place(row_segment_t *segment, row_entry_t entry) {
  uint32_t at = entry.tag & segment->mask;
  while (segment->entries[at].row) at = (at + 1) & segment->mask;
  segment->entries[at] = entry;
  segment->used++;
}

static bool grow(row_segment_t *segment) {
  uint32_t entries = segment->entries ? 2 * (segment->mask + 1) : LEAST_ENTRIES;
  row_segment_t grown = {.entries = calloc(entries, sizeof *grown.entries), .mask = entries - 1};
  if (!grown.entries) return false;
  for (uint32_t at = 0; segment->entries && at <= segment->mask; at++) {
    if (segment->entries[at].row) place(&grown, segment->entries[at]);
  }
  free(segment->entries);
  *segment = grown;
  return true;
}

bool row_index_insert(row_index_t *index, uint64_t hash, uint32_t row) {
  row_segment_t *segment = segment_of(index, hash);
  if (!segment->entries || segment->used >= (segment->mask + 1) / 4 * 3) {
    if (!grow(segment)) return false;
  }
  place(segment, (row_entry_t){.tag = (uint32_t)hash, .row = row + 1});
  return true;
}
