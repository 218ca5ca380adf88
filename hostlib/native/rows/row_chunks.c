// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "row_chunks.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_AT_ONCE (1u << 20) // that are copied while other threads wait

static row_chunk_header_t header_of(const row_table_t *table, uint32_t num_rows) {
  row_chunk_header_t header = {
      .magic = ROW_CHUNK_MAGIC,
      .version = ROW_CHUNK_VERSION,
      .width = table->options.width,
      .row_bytes = table->slabs.row_bytes,
      .num_rows = num_rows,
  };
  strncpy(header.optimiser, table->optimiser->name, sizeof header.optimiser - 1);
  return header;
}

uint64_t row_chunk_bytes(const row_table_t *table, uint32_t num_rows) {
  return sizeof(row_chunk_header_t) + (uint64_t)num_rows * table->slabs.row_bytes;
}

// Returns how many rows it copied, at most BYTES_AT_ONCE but one row at least; 0: there are no more.
static uint32_t copy_rows(row_table_t *table, uint32_t first, uint32_t count, uint8_t *rows) {
  uint32_t row_bytes = table->slabs.row_bytes, most = BYTES_AT_ONCE / row_bytes + 1, copied = 0;
  pthread_mutex_lock(&table->lock);
  while (copied < count && copied < most && first + copied < table->num_rows) {
    memcpy(rows + (size_t)copied * row_bytes, slabs_row(&table->slabs, first + copied), row_bytes);
    copied++;
  }
  pthread_mutex_unlock(&table->lock);
  return copied;
}

uint32_t row_table_export(row_table_t *table, uint32_t first, uint32_t count, uint8_t *chunk) {
  uint8_t *rows = chunk + sizeof(row_chunk_header_t);
  uint32_t done = 0, copied;
  do {
    copied = copy_rows(table, first + done, count - done, rows + (size_t)done * table->slabs.row_bytes);
    done += copied;
  } while (copied && done < count);
  row_chunk_header_t header = header_of(table, done);
  memcpy(chunk, &header, sizeof header);
  return done;
}

static bool is_chunk(const row_table_t *table, const uint8_t *chunk, uint64_t bytes) {
  row_chunk_header_t header;
  if (bytes < sizeof header) return false;
  memcpy(&header, chunk, sizeof header);
  row_chunk_header_t expected = header_of(table, header.num_rows);
  if (memcmp(&header, &expected, sizeof header) || header.num_rows > MOST_POSITIONS) return false;
  return bytes == row_chunk_bytes(table, header.num_rows);
}

static row_status_t import_rows(row_table_t *table, const int64_t *keys, const uint8_t *rows, uint32_t count,
                                uint32_t *position) {
  key_batch_t batch;
  if (!key_batch_open(&batch, keys, count)) return ROWS_NO_MEMORY;
  pthread_mutex_lock(&table->lock);
  uint32_t missing = key_batch_find(&batch, &table->index, table->slabs.row_bytes);
  row_status_t status = row_table_add(table, &batch, missing, position);
  for (uint32_t i = 0; status == ROWS_DONE && i < count; i++) {
    row_t *row = batch.rows[batch.numbers[i]];
    memcpy(row, rows + (size_t)i * table->slabs.row_bytes, table->slabs.row_bytes);
    if (row->lsn > table->lsn) table->lsn = row->lsn;
  }
  pthread_mutex_unlock(&table->lock);
  key_batch_close(&batch);
  return status;
}

row_status_t row_table_import(row_table_t *table, const uint8_t *chunk, uint64_t bytes, uint32_t *position) {
  if (!is_chunk(table, chunk, bytes)) return ROWS_FORMAT;
  const uint8_t *rows = chunk + sizeof(row_chunk_header_t);
  uint32_t row_bytes = table->slabs.row_bytes, count = (uint32_t)((bytes - sizeof(row_chunk_header_t)) / row_bytes);
  int64_t *keys = calloc(count + (size_t)1, sizeof *keys);
  if (!keys) return ROWS_NO_MEMORY;
  for (uint32_t i = 0; i < count; i++) {
    memcpy(&keys[i], rows + (size_t)i * row_bytes + offsetof(row_t, key), sizeof *keys);
  }
  row_status_t status = import_rows(table, keys, rows, count, position);
  free(keys);
  return status;
}
