// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker's reads of the hot rows of a server, from its switch (docs/protocol.md, "Hot rows"). Requests that come while a
// row is being read share its answer. What changes all rows, and what goes by TCP, is in reads.py, on the same arrays.
#ifndef SWITCHFOLD_HOT_READS_H
#define SWITCHFOLD_HOT_READS_H

#include "hot_cells.h"
#include "hot_packets.h"
#include "hot_pushes.h"
#include "open_calls.h"
#include "row_map.h"

#define MOST_TRIES 2 // READs of a row until the server is asked instead

typedef struct {
  const row_map_t *map;
  hot_packets_t *packets;
  open_calls_t *calls; // of the rows, with a free entry for each
  double try_s;        // from a READ to the next
  double next_s;       // when a tick has something to do
  uint32_t newest;     // version that the server has reached
  // By row:
  float *values;       // by lane
  uint32_t *version;   // of the values; a serial number
  bool *has_version;
  double *due_s;       // of the next try; infinity: the row is not being read
  int64_t *tries;
  uint64_t *stamps;    // which call has touched it last
  // What a call leaves to the caller:
  place_list_t fallen; // rows that the server is to be asked for; those of a packet may not be read any more
  uint64_t stamp;      // of this call
} hot_reads_t;

// Read the rows of cells, as far as they are not being read; the call waits for all of them.
void hot_reads_add(hot_reads_t *, const hot_cells_t *, const int64_t *cells, uint64_t count, int64_t call, double now_s);

// Write the values of cells into those of a pull, each to its position.
void hot_reads_give(const hot_reads_t *, const hot_cells_t *, const int64_t *cells, const int64_t *positions, uint64_t count,
                    float *values);

// Forget what the last call has left.
void hot_reads_begin(hot_reads_t *);

// Take an answer to READ; an older version than the last is dropped.
void hot_reads_take_values(hot_reads_t *, const uint8_t *datagram);

// Take a NOTICE with COLD. Leaves `fallen`.
void hot_reads_take_cold(hot_reads_t *, const uint8_t *datagram);

// Send READ again, where it is time. Leaves `fallen`, and `next_s` as if the caller had dealt with them.
void hot_reads_tick(hot_reads_t *, double now_s);

// Take datagrams as they were received from the switch, of the size of a packet: for pushes and reads of the same rows.
void hot_rows_take(hot_pushes_t *, hot_reads_t *, const uint8_t *datagrams, uint64_t count);

#endif
