// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the server says of rounds.
#include "hot_pushes.h"

#include <math.h>

typedef struct {
  uint32_t row, round, bitmap, version; // in the byte order of frames
} decision_t;

void hot_pushes_settle(hot_pushes_t *pushes, const int64_t *places, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    pushes->use[places[i]] = PLACE_FREE;
    pushes->due_s[places[i]] = INFINITY;
    open_calls_settle(pushes->calls, places[i]);
  }
}

// The push of a cold row, or one that has waited for another round too often, must go by TCP.
static void rename_push(hot_pushes_t *pushes, int64_t place, double now_s) {
  int64_t row = place / PLACES, waiting = row * PLACES + WAITING;
  bool is_abandoned = pushes->use[place] == PLACE_ABANDONED;
  pushes->use[place] = PLACE_FREE;
  pushes->due_s[place] = INFINITY;
  if (is_abandoned) return;
  if (pushes->cold_until_s[row] > now_s || pushes->renames[place] >= MOST_RENAMES) {
    place_list_add(&pushes->late, place);
    return;
  }
  float *sum = hot_pushes_held(pushes, waiting);
  const float *held = hot_pushes_held(pushes, place);
  for (uint32_t i = 0; i < pushes->map->num_lanes; i++) sum[i] += held[i];
  if (pushes->renames[waiting] <= pushes->renames[place]) pushes->renames[waiting] = (int8_t)(pushes->renames[place] + 1);
  pushes->use[waiting] = PLACE_SENT;
  open_calls_move(pushes->calls, place, waiting);
}

void hot_pushes_rename(hot_pushes_t *pushes, const int64_t *places, uint64_t count, double now_s) {
  for (uint64_t i = 0; i < count; i++) rename_push(pushes, places[i], now_s);
}

static bool decide(hot_pushes_t *pushes, const decision_t *decision, double now_s) {
  int64_t row = row_map_find(pushes->map, decision->row), round = decision->round;
  if (row < 0) return true;
  int64_t first = pushes->next[row], place = row * PLACES + (round & 1);
  if (round > first + 1) return false;
  if (round == first) {
    pushes->next[row] += 1 + pushes->is_ahead[row];
    pushes->is_ahead[row] = false;
  } else if (round == first + 1) {
    pushes->is_ahead[row] = true;
  }
  if (hot_pushes_touch(pushes, row)) place_list_add(&pushes->touched, row);
  if (pushes->use[place] == PLACE_FREE || pushes->round[place] != round) return true;
  if (decision->bitmap & pushes->bit) {
    hot_pushes_settle(pushes, &place, 1);
  } else {
    rename_push(pushes, place, now_s);
  }
  return true;
}

bool hot_pushes_decide(hot_pushes_t *pushes, const uint8_t *decisions, uint64_t count, double now_s) {
  bool is_valid = true;
  hot_pushes_begin(pushes);
  for (uint64_t i = 0; i < count && is_valid; i++) {
    decision_t decision;
    memcpy(&decision, decisions + i * sizeof decision, sizeof decision);
    is_valid = decide(pushes, &decision, now_s);
  }
  if (!pushes->late.count) {
    hot_pushes_push_waiting(pushes, pushes->touched.at, (uint64_t)pushes->touched.count, now_s);
  }
  return is_valid;
}

void hot_pushes_push_waiting(hot_pushes_t *pushes, const int64_t *rows, uint64_t count, double now_s) {
  size_t bytes = sizeof(float) * pushes->map->num_lanes;
  for (uint64_t i = 0; i < count; i++) {
    int64_t round = 0, waiting = rows[i] * PLACES + WAITING;
    if (pushes->use[waiting] == PLACE_FREE) continue;
    int64_t place = hot_pushes_choose(pushes, rows[i], &round);
    if (place < 0) continue;
    memcpy(hot_pushes_held(pushes, place), hot_pushes_held(pushes, waiting), bytes);
    memset(hot_pushes_held(pushes, waiting), 0, bytes);
    open_calls_move(pushes->calls, waiting, place);
    hot_pushes_push(pushes, place, round, pushes->renames[waiting], now_s);
    pushes->use[waiting] = PLACE_FREE;
    pushes->renames[waiting] = 0;
  }
}
