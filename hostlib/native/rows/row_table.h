// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A sparse table: rows by key, made when they are first touched, with an optimiser that pushes go through.
//
// Calls come from any thread; a mutex lets one at a time see the rows. What a call computes of its own arguments comes
// before that.
#ifndef SWITCHFOLD_ROW_TABLE_H
#define SWITCHFOLD_ROW_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "initial.h"
#include "key_batch.h"
#include "optimisers.h"
#include "row_status.h"

#define MOST_WIDTH (UINT32_C(1) << 20)
#define MOST_ROWS (UINT32_C(1) << 31)

typedef struct {
  uint32_t width;    // values of a row, 1 to MOST_WIDTH
  uint32_t max_rows; // 1 to MOST_ROWS
  double numbers[OPTIMISER_NUMBERS];
  initial_t initial;
} row_table_options_t;

typedef struct {
  row_table_options_t options;
  const optimiser_t *optimiser;
  pthread_mutex_t lock;
  slabs_t slabs;
  row_index_t index;
  uint32_t num_rows;
  uint64_t lsn; // the highest of a logged push, a replayed push or an imported row
} row_table_t;

row_table_t *row_table_new(const optimiser_t *, const row_table_options_t *); // NULL without memory
void row_table_free(row_table_t *);

// Give the optimiser other numbers, for pushes from now on.
void row_table_set_numbers(row_table_t *, const double numbers[OPTIMISER_NUMBERS]);

uint32_t row_table_rows(row_table_t *);
uint64_t row_table_lsn(row_table_t *);

// Write values and number of updates of each key's row. Rows that are missing are made. `position`: see row_status_t.
row_status_t row_table_pull(row_table_t *, const int64_t *keys, uint32_t count, float *values, uint32_t *updates,
                            uint32_t *position);

// What a push is in the log.
typedef struct {
  uint64_t lsn;   // 0: it is not logged
  bool is_replay; // it comes from the log: rows that it, or a later one, was applied to stay as they are
  bool is_start; // the gradients are first values, for those rows that have no others and no updates
  bool is_check;  // make the rows and apply nothing: the push can then fail without memory alone
} row_push_t;

// Apply the gradients, or change nothing. Pushes that are logged come in the order of their lsn: ROWS_LSN says that one
// is not above the table's. Of a push with lsn 0, rows keep their lsn.
row_status_t row_table_push(row_table_t *, const row_push_t *, const int64_t *keys, const float *gradients, uint32_t count,
                            uint32_t *position);

// For the owner of the lock: make the rows of those keys that have none. `missing` is how many.
row_status_t row_table_add(row_table_t *, key_batch_t *, uint32_t missing, uint32_t *position);

#endif
