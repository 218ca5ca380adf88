// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the hot keys of a table lie: a hash table from keys to cells. A unit is what a cell or several cells take: one row,
// or the rows of a wide key. The rows of a table follow each other in the map.
#ifndef SWITCHFOLD_HOT_CELLS_H
#define SWITCHFOLD_HOT_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#define EMPTY_CELL (-1)

typedef struct {
  const int64_t *keys; // by cell, or EMPTY_CELL
  uint32_t *slots;     // by hash: a cell + 1, or 0; at least twice as many as cells
  uint32_t mask;       // number of slots, a power of two, - 1
  uint32_t num_cells;
  uint32_t width;      // values of a key
  uint32_t num_lanes;  // of a row
  uint32_t keys_per_unit, rows_per_unit; // one of them is 1
  uint32_t first_row;  // of the table, in the map
} hot_cells_t;

static inline uint32_t hot_cells_unit(const hot_cells_t *table, int64_t cell) {
  return (uint32_t)cell / table->keys_per_unit;
}

static inline uint32_t hot_cells_row(const hot_cells_t *table, uint32_t unit) {
  return table->first_row + unit * table->rows_per_unit; // the first one of the unit
}

// The cell's first lane in its first row.
static inline uint32_t hot_cells_lane(const hot_cells_t *table, int64_t cell) {
  return (uint32_t)cell % table->keys_per_unit * table->width;
}

// Fill the slots, which are zeros.
void hot_cells_index(hot_cells_t *);

// Tell hot keys from cold ones. A key is cold if it has no cell, or if pushes to its row go by TCP for now: until
// `cold_until_s`, by row of the map. Writes the cells of the hot keys, and the positions of hot and cold ones among the
// keys; each has room for `count`. Keys need no alignment. Returns how many are hot.
uint64_t hot_cells_split(const hot_cells_t *, const double *cold_until_s, double now_s, const uint8_t *keys, uint64_t count,
                         int64_t *cells, int64_t *hot, int64_t *cold);

// Mark the units that hold any of these keys, which need no alignment.
void hot_cells_touch(const hot_cells_t *, const uint8_t *keys, uint64_t count, bool *is_touched);

// Write some keys of a PUSH and then their gradients; `payload` has `num_keys` keys, then their gradients.
void hot_cells_gather(const uint8_t *payload, uint64_t num_keys, uint32_t width, const int64_t *positions, uint64_t count,
                      uint8_t *part);

#endif
