// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "row_table.h"

#include <stdlib.h>
#include <string.h>

#include "gradients.h"

row_table_t *row_table_new(const optimiser_t *optimiser, const row_table_options_t *options) {
  row_table_t *table = calloc(1, sizeof *table);
  if (!table || pthread_mutex_init(&table->lock, NULL)) {
    free(table);
    return NULL;
  }
  table->options = *options;
  table->optimiser = optimiser;
  bool has_slabs = slabs_init(&table->slabs, options->width * (1 + optimiser->num_states), options->max_rows);
  if (has_slabs && row_index_init(&table->index, &table->slabs, options->max_rows)) return table;
  row_table_free(table);
  return NULL;
}

void row_table_free(row_table_t *table) {
  row_index_close(&table->index);
  slabs_close(&table->slabs);
  pthread_mutex_destroy(&table->lock);
  free(table);
}

void row_table_set_numbers(row_table_t *table, const double numbers[OPTIMISER_NUMBERS]) {
  pthread_mutex_lock(&table->lock);
  memcpy(table->options.numbers, numbers, sizeof table->options.numbers);
  pthread_mutex_unlock(&table->lock);
}

uint32_t row_table_rows(row_table_t *table) {
  pthread_mutex_lock(&table->lock);
  uint32_t rows = table->num_rows;
  pthread_mutex_unlock(&table->lock);
  return rows;
}

uint64_t row_table_lsn(row_table_t *table) {
  pthread_mutex_lock(&table->lock);
  uint64_t lsn = table->lsn;
  pthread_mutex_unlock(&table->lock);
  return lsn;
}

static void make_row(const row_table_t *table, row_t *row, int64_t key) {
  memset(row, 0, table->slabs.row_bytes);
  row->key = key;
  initial_fill(&table->options.initial, key, row->numbers, table->options.width);
}

// The first position of the key that is the first without room.
static uint32_t position_beyond(const key_batch_t *batch, uint32_t room) {
  uint32_t i = 0;
  while (batch->rows[i] || room--) i++;
  return batch->first[i];
}

row_status_t row_table_add(row_table_t *table, key_batch_t *batch, uint32_t missing, uint32_t *position) {
  uint32_t room = table->options.max_rows - table->num_rows;
  if (missing > room) {
    *position = position_beyond(batch, room);
    return ROWS_FULL;
  }
  if (!slabs_reserve(&table->slabs, table->num_rows + missing)) return ROWS_NO_MEMORY;
  for (uint32_t i = 0; missing; i++) {
    if (batch->rows[i]) continue;
    row_t *row = slabs_row(&table->slabs, table->num_rows);
    make_row(table, row, batch->keys[batch->first[i]]);
    if (!row_index_insert(&table->index, batch->hashes[i], table->num_rows)) return ROWS_NO_MEMORY;
    batch->rows[i] = row;
    table->num_rows++;
    missing--;
  }
  return ROWS_DONE;
}

row_status_t row_table_pull(row_table_t *table, const int64_t *keys, uint32_t count, float *values, uint32_t *updates,
                            uint32_t *position) {
  key_batch_t batch;
  if (!key_batch_open(&batch, keys, count)) return ROWS_NO_MEMORY;
  uint32_t width = table->options.width;
  pthread_mutex_lock(&table->lock);
  uint32_t missing = key_batch_find(&batch, &table->index, (uint32_t)(sizeof(row_t) + 4 * (size_t)width));
  row_status_t status = row_table_add(table, &batch, missing, position);
  for (uint32_t i = 0; status == ROWS_DONE && i < count; i++) {
    const row_t *row = batch.rows[batch.numbers[i]];
    memcpy(values + (size_t)i * width, row->numbers, 4 * (size_t)width);
    updates[i] = row->updates;
  }
  pthread_mutex_unlock(&table->lock);
  key_batch_close(&batch);
  return status;
}

static void start(const row_table_t *table, const row_push_t *push, row_t *row, const float *values) {
  if (row->is_started || row->updates) return;
  row->is_started = 1;
  if (push->lsn) row->lsn = push->lsn;
  memcpy(row->numbers, values, 4 * (size_t)table->options.width);
}

static void apply(const row_table_t *table, const row_push_t *push, row_t *row, const float *gradient) {
  if (push->is_replay && row->lsn >= push->lsn) return;
  if (push->is_start) {
    start(table, push, row, gradient);
    return;
  }
  row->updates += row->updates != UINT32_MAX;
  if (push->lsn) row->lsn = push->lsn;
  const row_table_options_t *options = &table->options;
  table->optimiser->apply(row->numbers, row->numbers + options->width, gradient, options->width, options->numbers,
                          row->updates);
}

static row_status_t push_gradients(row_table_t *table, const row_push_t *push, key_batch_t *batch,
                                   const gradients_t *gradients, uint32_t *position) {
  if (push->lsn && !push->is_replay && push->lsn <= table->lsn) return ROWS_LSN;
  uint32_t missing = key_batch_find(batch, &table->index, table->slabs.row_bytes);
  row_status_t status = row_table_add(table, batch, missing, position);
  if (status != ROWS_DONE || push->is_check) return status;
  for (uint32_t i = 0; i < batch->num_keys; i++) apply(table, push, batch->rows[i], gradients->by_key[i]);
  if (push->lsn > table->lsn) table->lsn = push->lsn;
  return ROWS_DONE;
}

row_status_t row_table_push(row_table_t *table, const row_push_t *push, const int64_t *keys, const float *gradients,
                            uint32_t count, uint32_t *position) {
  key_batch_t batch;
  gradients_t added;
  if (!key_batch_open(&batch, keys, count)) return ROWS_NO_MEMORY;
  row_status_t status = gradients_open(&added, &batch, gradients, table->options.width, position);
  if (status == ROWS_DONE) {
    pthread_mutex_lock(&table->lock);
    status = push_gradients(table, push, &batch, &added, position);
    pthread_mutex_unlock(&table->lock);
    gradients_close(&added);
  }
  key_batch_close(&batch);
  return status;
}
