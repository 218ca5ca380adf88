// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "hot_pushes.h"

void hot_pushes_begin(hot_pushes_t *pushes) {
  pushes->unfit.count = pushes->late.count = pushes->asked.count = pushes->cold.count = pushes->touched.count = 0;
  pushes->stamp++;
}

int64_t hot_pushes_choose(const hot_pushes_t *pushes, int64_t row, int64_t *round) {
  int64_t first = pushes->next[row];
  if (pushes->use[row * PLACES + (first & 1)] == PLACE_FREE) {
    *round = first;
  } else if (!pushes->is_ahead[row] && pushes->use[row * PLACES + (~first & 1)] == PLACE_FREE) {
    *round = first + 1;
  } else {
    return -1;
  }
  return row * PLACES + (*round & 1);
}

void hot_pushes_push(hot_pushes_t *pushes, int64_t place, int64_t round, int8_t renames, double now_s) {
  pushes->use[place] = PLACE_SENT;
  pushes->round[place] = round;
  pushes->ticks[place] = 0;
  pushes->renames[place] = renames;
  pushes->due_s[place] = now_s + pushes->flush_s;
  if (pushes->due_s[place] < pushes->next_s) pushes->next_s = pushes->due_s[place];
  if (hot_packets_fit(pushes->map, place / PLACES, hot_pushes_held(pushes, place))) {
    hot_pushes_send(pushes, &place, 1);
  } else {
    place_list_add(&pushes->unfit, place);
  }
}

void hot_pushes_send(hot_pushes_t *pushes, const int64_t *places, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    const float *held = hot_pushes_held(pushes, places[i]);
    hot_packets_add_push(pushes->packets, pushes->map, places[i] / PLACES, pushes->round[places[i]], held);
  }
}

// Choose a place for what a call adds to a row.
static void begin_row(hot_pushes_t *pushes, int64_t row, int64_t call) {
  int64_t round = 0, place = hot_pushes_choose(pushes, row, &round);
  if (place < 0) {
    place = row * PLACES + WAITING;
  } else {
    memset(hot_pushes_held(pushes, place), 0, sizeof(float) * pushes->map->num_lanes);
    pushes->round[place] = round;
  }
  pushes->use[place] = PLACE_SENT;
  pushes->targets[row] = place;
  place_list_add(&pushes->touched, row);
  open_calls_attach(pushes->calls, place, call);
}

static inline void add_value(float *lane, const uint8_t *gradient) {
  float value;
  memcpy(&value, gradient, sizeof value);
  *lane += value;
}

// Add a key's values to the lanes of a row from one on; a wide key's go on in the next rows.
static void add_values(hot_pushes_t *pushes, int64_t row, uint32_t lane, const uint8_t *gradient, uint32_t width) {
  uint32_t num_lanes = pushes->map->num_lanes;
  for (uint32_t done = 0; done < width; row++, lane = 0) {
    float *lanes = hot_pushes_held(pushes, pushes->targets[row]) + lane;
    uint32_t count = width - done < num_lanes - lane ? width - done : num_lanes - lane;
    for (uint32_t i = 0; i < count; i++) add_value(lanes + i, gradient + sizeof(float) * (done + i));
    done += count;
  }
}

void hot_pushes_add(hot_pushes_t *pushes, const hot_cells_t *table, const int64_t *cells, const int64_t *positions,
                    uint64_t count, const uint8_t *gradients, int64_t call, double now_s) {
  hot_pushes_begin(pushes);
  size_t bytes = sizeof(float) * table->width;
  for (uint64_t i = 0; i < count; i++) {
    int64_t first = hot_cells_row(table, hot_cells_unit(table, cells[i]));
    if (hot_pushes_touch(pushes, first)) {
      for (uint32_t row = 0; row < table->rows_per_unit; row++) begin_row(pushes, first + row, call);
    }
    add_values(pushes, first, hot_cells_lane(table, cells[i]), gradients + (size_t)positions[i] * bytes, table->width);
  }
  for (int64_t i = 0; i < pushes->touched.count; i++) {
    int64_t place = pushes->targets[pushes->touched.at[i]];
    if (place % PLACES != WAITING) hot_pushes_push(pushes, place, pushes->round[place], 0, now_s);
  }
}

void hot_pushes_take_result(hot_pushes_t *pushes, const uint8_t *datagram) {
  int64_t row = row_map_find_current(pushes->map, datagram);
  if (row < 0) return;
  int64_t round = load32(datagram + ROUND_AT), place = row * PLACES + (round & 1), own = pushes->round[place];
  if (pushes->use[place] != PLACE_SENT && pushes->use[place] != PLACE_QUIET) return;
  if (round > own || (round == own && datagram[OPERATION_AT] == RESULT)) {
    pushes->use[place] = PLACE_OVER;
  } else if (round == own && load32(datagram + BITMAP_AT) & pushes->bit) {
    pushes->use[place] = PLACE_QUIET;
  }
}

void hot_pushes_take_cold(hot_pushes_t *pushes, const uint8_t *datagram) {
  int64_t row = row_map_find_current(pushes->map, datagram);
  if (row >= 0 && hot_pushes_touch(pushes, row)) place_list_add(&pushes->cold, row);
}
