// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "row_map.h"

#include "../slots/header.h"

int64_t row_map_find_current(const row_map_t *map, const uint8_t *datagram) {
  int64_t row = row_map_find(map, load32(datagram + SLOT_AT));
  return row >= 0 && map->epochs[row] == load32(datagram + TENSOR_AT) ? row : -1;
}

void row_map_find_all(const row_map_t *map, const uint32_t *numbers, uint64_t count, int64_t *rows) {
  for (uint64_t i = 0; i < count; i++) rows[i] = row_map_find(map, numbers[i]);
}
