// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hot rows of one server, by index: those of the first table, of the second ..., then of no table.
#ifndef SWITCHFOLD_ROW_MAP_H
#define SWITCHFOLD_ROW_MAP_H

#include <stdint.h>

typedef struct {
  uint32_t size;           // rows
  uint32_t num_lanes;      // of a row
  uint32_t first_number;   // the lowest number of a row
  uint32_t span;           // so many numbers from there on have an index, or none
  const int64_t *index;    // by number - first_number: the row, or -1
  const uint32_t *numbers; // by row: its number in packets
  const uint32_t *epochs;  // by row
  const float *scales;     // by row: so many lanes are worth 1
} row_map_t;

// The row with a number, or -1.
static inline int64_t row_map_find(const row_map_t *map, uint32_t number) {
  uint32_t at = number - map->first_number; // beyond all numbers for those below the first
  return at < map->span ? map->index[at] : -1;
}

// The row that a received packet is about, or -1 if that is unknown or has another epoch.
int64_t row_map_find_current(const row_map_t *, const uint8_t *datagram);

// Write the rows with these numbers, or -1.
void row_map_find_all(const row_map_t *, const uint32_t *numbers, uint64_t count, int64_t *rows);

#endif
