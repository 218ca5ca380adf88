// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "key_batch.h"

#include <stdlib.h>

#define AHEAD 16u // entries that are on their way from memory at a time
#define LINE_BYTES 64u
#define MOST_PREFETCHED 1024u // of a row; the processor itself fetches the rest of a longer one

static void group(key_batch_t *batch, uint32_t *places, uint32_t mask) {
  for (uint32_t i = 0; i < batch->count; i++) {
    uint64_t hash = row_index_hash(batch->keys[i]);
    uint32_t at = (uint32_t)hash & mask, number = batch->num_keys;
    for (; places[at]; at = (at + 1) & mask) {
      if (batch->keys[batch->first[places[at] - 1]] == batch->keys[i]) {
        number = places[at] - 1;
        break;
      }
    }
    batch->numbers[i] = number;
    if (number == batch->num_keys) {
      places[at] = ++batch->num_keys;
      batch->first[number] = i;
      batch->times[number] = 0;
      batch->hashes[number] = hash;
    }
    batch->num_repeated += ++batch->times[number] == 2;
  }
}

bool key_batch_open(key_batch_t *batch, const int64_t *keys, uint32_t count) {
  *batch = (key_batch_t){.keys = keys, .count = count};
  uint32_t places = 2;
  while (places < 2 * count) places *= 2;
  size_t each = sizeof *batch->hashes + sizeof *batch->rows + 3 * sizeof *batch->first;
  batch->hashes = malloc(each * (count + (size_t)1));
  uint32_t *placed = calloc(places, sizeof *placed);
  if (batch->hashes && placed) {
    batch->rows = (row_t **)(batch->hashes + count);
    batch->numbers = (uint32_t *)(batch->rows + count);
    batch->first = batch->numbers + count;
    batch->times = batch->first + count;
    group(batch, placed, places - 1);
    free(placed);
    return true;
  }
  free(batch->hashes);
  free(placed);
  return false;
}

void key_batch_close(key_batch_t *batch) { free(batch->hashes); }

static void prefetch_row(const row_t *row, uint32_t bytes) {
  for (uint32_t at = 0; at < bytes; at += LINE_BYTES) __builtin_prefetch((const uint8_t *)row + at, 1);
  __builtin_prefetch((const uint8_t *)row + bytes - 1, 1); // the row may begin at the end of a line
}

uint32_t key_batch_find(key_batch_t *batch, const row_index_t *index, uint32_t row_bytes) {
  uint32_t missing = 0, bytes = row_bytes < MOST_PREFETCHED ? row_bytes : MOST_PREFETCHED;
  for (uint32_t i = 0; i < AHEAD && i < batch->num_keys; i++) row_index_prefetch(index, batch->hashes[i]);
  for (uint32_t i = 0; i < batch->num_keys; i++) {
    if (i + AHEAD < batch->num_keys) row_index_prefetch(index, batch->hashes[i + AHEAD]);
    batch->rows[i] = row_index_guess(index, batch->hashes[i]);
    if (batch->rows[i]) prefetch_row(batch->rows[i], bytes);
  }
  for (uint32_t i = 0; i < batch->num_keys; i++) {
    int64_t key = batch->keys[batch->first[i]];
    if (batch->rows[i] && batch->rows[i]->key != key) batch->rows[i] = row_index_find(index, key, batch->hashes[i]);
    missing += !batch->rows[i];
  }
  return missing;
}
