// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "hot_cells.h"

#include <string.h>

#include "../rows/mixing.h"

static inline uint32_t slot_of(const hot_cells_t *table, int64_t key) { return (uint32_t)draw((uint64_t)key, 0) & table->mask; }

void hot_cells_index(hot_cells_t *table) {
  for (uint32_t cell = 0; cell < table->num_cells; cell++) {
    if (table->keys[cell] == EMPTY_CELL) continue;
    uint32_t at = slot_of(table, table->keys[cell]);
    while (table->slots[at]) at = (at + 1) & table->mask;
    table->slots[at] = cell + 1;
  }
}

static inline int64_t find(const hot_cells_t *table, int64_t key) {
  for (uint32_t at = slot_of(table, key); table->slots[at]; at = (at + 1) & table->mask) {
    if (table->keys[table->slots[at] - 1] == key) return table->slots[at] - 1;
  }
  return EMPTY_CELL;
}

static inline int64_t key_at(const uint8_t *keys, uint64_t i) {
  int64_t key;
  memcpy(&key, keys + i * sizeof key, sizeof key);
  return key;
}

uint64_t hot_cells_split(const hot_cells_t *table, const double *cold_until_s, double now_s, const uint8_t *keys,
                         uint64_t count, int64_t *cells, int64_t *hot, int64_t *cold) {
  uint64_t num_hot = 0, num_cold = 0;
  for (uint64_t i = 0; i < count; i++) {
    int64_t cell = find(table, key_at(keys, i));
    if (cell >= 0 && cold_until_s[hot_cells_row(table, hot_cells_unit(table, cell))] <= now_s) {
      cells[num_hot] = cell;
      hot[num_hot++] = (int64_t)i;
    } else {
      cold[num_cold++] = (int64_t)i;
    }
  }
  return num_hot;
}

void hot_cells_touch(const hot_cells_t *table, const uint8_t *keys, uint64_t count, bool *is_touched) {
  for (uint64_t i = 0; i < count; i++) {
    int64_t cell = find(table, key_at(keys, i));
    if (cell >= 0) is_touched[hot_cells_unit(table, cell)] = true;
  }
}

void hot_cells_gather(const uint8_t *payload, uint64_t num_keys, uint32_t width, const int64_t *positions, uint64_t count,
                      uint8_t *part) {
  const uint8_t *gradients = payload + num_keys * sizeof(int64_t);
  uint8_t *part_gradients = part + count * sizeof(int64_t);
  size_t row_bytes = width * sizeof(float);
  for (uint64_t i = 0; i < count; i++) {
    size_t at = (size_t)positions[i];
    memcpy(part + i * sizeof(int64_t), payload + at * sizeof(int64_t), sizeof(int64_t));
    if (width == 1) { // a copy of known size is a move
      memcpy(part_gradients + i * sizeof(float), gradients + at * sizeof(float), sizeof(float));
    } else {
      memcpy(part_gradients + i * row_bytes, gradients + at * row_bytes, row_bytes);
    }
  }
}
