// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a table as bytes, in chunks: a header, then rows as they lie in memory (row_t), in the machine's byte order.
// There is no checksum: that is for the file or the message which brings a chunk.
#ifndef SWITCHFOLD_ROW_CHUNKS_H
#define SWITCHFOLD_ROW_CHUNKS_H

#include "row_table.h"

#define ROW_CHUNK_MAGIC UINT32_C(0x73776652) // other bytes on machines of the other byte order
#define ROW_CHUNK_VERSION 1u

typedef struct {
  uint32_t magic, version;
  uint32_t width, row_bytes;
  uint32_t num_rows, unused;
  char optimiser[16];
} row_chunk_header_t;

uint64_t row_chunk_bytes(const row_table_t *, uint32_t num_rows); // of a chunk with so many

// Write the rows `first`, `first` + 1 ... of the table, in the order in which they were made: `count` of them, or up to the
// last. Returns how many. Other threads' calls may come in between; each row is as it was at one moment.
uint32_t row_table_export(row_table_t *, uint32_t first, uint32_t count, uint8_t *chunk);

// Take the rows of a chunk, in place of those with the same keys, or change nothing.
row_status_t row_table_import(row_table_t *, const uint8_t *chunk, uint64_t bytes, uint32_t *position);

#endif
