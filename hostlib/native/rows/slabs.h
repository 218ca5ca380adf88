// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A row: a key, its values and the state of its optimiser; and the memory of all rows of a table.
//
// Rows have numbers in the order in which they were made. They lie in slabs, which are never moved nor given back before
// the table is.
#ifndef SWITCHFOLD_SLABS_H
#define SWITCHFOLD_SLABS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int64_t key;
  uint64_t lsn;     // log sequence number of the last push that was applied; 0: none that was logged
  uint32_t updates; // pushes that were applied; stops at UINT32_MAX
  uint32_t is_started; // whether the values were given, not made from the key
  float numbers[];  // `width` values, then the optimiser's state; zeros up to a multiple of 8 bytes
} row_t;

typedef struct {
  uint8_t **slabs;
  uint32_t num_slabs, most_slabs;
  uint32_t rows_log2; // of a slab
  uint32_t row_bytes;
} slabs_t;

// Returns false without memory. A row has `numbers` floats.
bool slabs_init(slabs_t *, uint32_t numbers, uint32_t max_rows);
void slabs_close(slabs_t *);

// Have memory for the rows 0 to `num_rows` - 1. Returns false without it; the memory of other rows stays.
bool slabs_reserve(slabs_t *, uint32_t num_rows);

static inline row_t *slabs_row(const slabs_t *slabs, uint32_t number) {
  uint8_t *slab = slabs->slabs[number >> slabs->rows_log2];
  return (row_t *)(slab + (size_t)(number & ((UINT32_C(1) << slabs->rows_log2) - 1)) * slabs->row_bytes);
}

#endif
