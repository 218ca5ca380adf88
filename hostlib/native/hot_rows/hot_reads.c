// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "hot_reads.h"

#include <math.h>

#include "../values/quantization.h"

#define WINDOW (UINT32_C(1) << 30) // versions older than the newest by more than this are not asked for

void hot_reads_begin(hot_reads_t *reads) {
  reads->fallen.count = 0;
  reads->stamp++;
}

static bool touch(hot_reads_t *reads, int64_t row) {
  bool is_first = reads->stamps[row] != reads->stamp;
  reads->stamps[row] = reads->stamp;
  return is_first;
}

static void ask(hot_reads_t *reads, int64_t row, double now_s) {
  // Unless a version is known, any will do.
  uint32_t version = reads->has_version[row] ? reads->version[row] : reads->newest - WINDOW;
  reads->due_s[row] = now_s + reads->try_s;
  reads->tries[row]++;
  if (reads->due_s[row] < reads->next_s) reads->next_s = reads->due_s[row];
  hot_packets_add_read(reads->packets, reads->map, row, version);
}

void hot_reads_add(hot_reads_t *reads, const hot_cells_t *table, const int64_t *cells, uint64_t count, int64_t call,
                   double now_s) {
  hot_reads_begin(reads);
  for (uint64_t i = 0; i < count; i++) {
    int64_t first = hot_cells_row(table, hot_cells_unit(table, cells[i]));
    if (!touch(reads, first)) continue;
    for (int64_t row = first; row < first + table->rows_per_unit; row++) {
      open_calls_attach(reads->calls, row, call);
      if (isinf(reads->due_s[row])) ask(reads, row, now_s);
    }
  }
}

void hot_reads_give(const hot_reads_t *reads, const hot_cells_t *table, const int64_t *cells, const int64_t *positions,
                    uint64_t count, float *values) {
  uint32_t num_lanes = table->num_lanes, width = table->width;
  for (uint64_t i = 0; i < count; i++) {
    size_t row = hot_cells_row(table, hot_cells_unit(table, cells[i]));
    // A wide key's values go on in the next rows, which follow.
    const float *from = reads->values + row * num_lanes + hot_cells_lane(table, cells[i]);
    if (width == 1) {
      values[positions[i]] = *from;
    } else {
      memcpy(values + (size_t)positions[i] * width, from, sizeof(float) * width);
    }
  }
}

void hot_reads_take_values(hot_reads_t *reads, const uint8_t *datagram) {
  int64_t row = row_map_find_current(reads->map, datagram);
  if (row < 0) return;
  uint32_t version = load32(datagram + ROUND_AT), num_lanes = reads->map->num_lanes;
  if (reads->has_version[row] && (int32_t)(version - reads->version[row]) < 0) return;
  float *values = reads->values + (size_t)row * num_lanes;
  int32_from_values(datagram + HEADER_BYTES, (int32_t *)values, num_lanes, NETWORK_ORDER);
  reads->version[row] = version;
  reads->has_version[row] = true;
  if (isinf(reads->due_s[row])) return;
  reads->due_s[row] = INFINITY;
  reads->tries[row] = 0;
  open_calls_settle(reads->calls, row);
}

void hot_reads_take_cold(hot_reads_t *reads, const uint8_t *datagram) {
  int64_t row = row_map_find_current(reads->map, datagram);
  if (row >= 0 && touch(reads, row)) place_list_add(&reads->fallen, row);
}

void hot_reads_tick(hot_reads_t *reads, double now_s) {
  hot_reads_begin(reads);
  reads->next_s = INFINITY;
  for (int64_t row = 0; row < (int64_t)reads->map->size; row++) {
    if (reads->due_s[row] > now_s) {
      if (reads->due_s[row] < reads->next_s) reads->next_s = reads->due_s[row];
    } else if (reads->tries[row] >= MOST_TRIES) {
      place_list_add(&reads->fallen, row);
    } else {
      ask(reads, row, now_s);
    }
  }
}

void hot_rows_take(hot_pushes_t *pushes, hot_reads_t *reads, const uint8_t *datagrams, uint64_t count) {
  uint32_t bytes = hot_packet_bytes(pushes->map);
  hot_pushes_begin(pushes);
  hot_reads_begin(reads);
  for (uint64_t i = 0; i < count; i++) {
    const uint8_t *datagram = datagrams + i * bytes;
    if (!hot_packets_are_ours(pushes->packets, datagram)) continue;
    operation_t operation = datagram[OPERATION_AT];
    if (operation == READ) {
      hot_reads_take_values(reads, datagram);
    } else if (operation == NOTICE && load16(datagram + FLAGS_AT) & COLD) {
      // A push expects workers. A READ does not, nor does a flush, which tells nothing here.
      if (datagram[EXPECTED_AT]) {
        hot_pushes_take_cold(pushes, datagram);
      } else {
        hot_reads_take_cold(reads, datagram);
      }
    } else if (operation == NOTICE || operation == RESULT) {
      hot_pushes_take_result(pushes, datagram);
    }
  }
}
