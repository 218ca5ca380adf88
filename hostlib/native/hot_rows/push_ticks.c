// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What time says: pushes are sent again, and rounds flushed, by switches of ever higher levels.
#include "hot_pushes.h"

#include <math.h>

#define MOST_DOUBLINGS 5 // of the pause between ticks
#define MOST_TICKS 100
#define MOST_LEVEL 8 // of switches, in flushes

static bool is_hot(const hot_pushes_t *pushes, int64_t place, double now_s) {
  return pushes->cold_until_s[place / PLACES] <= now_s;
}

// Push again what a place holds, unless this is its first tick; and set the next one.
static void tick(hot_pushes_t *pushes, int64_t place, double now_s) {
  if (pushes->ticks[place] && pushes->use[place] == PLACE_SENT && is_hot(pushes, place, now_s)) {
    hot_pushes_send(pushes, &place, 1);
  }
  if (pushes->ticks[place] >= DECIDE_TICKS) place_list_add(&pushes->asked, place);
  int ticks = pushes->ticks[place] + 1;
  pushes->ticks[place] = (int8_t)(ticks < MOST_TICKS ? ticks : MOST_TICKS);
  pushes->due_s[place] = now_s + pushes->flush_s * (double)(1 << (ticks < MOST_DOUBLINGS ? ticks : MOST_DOUBLINGS));
}

static void flush(hot_pushes_t *pushes, int64_t place, double now_s) {
  if (pushes->use[place] != PLACE_SENT && pushes->use[place] != PLACE_QUIET) return;
  if (!is_hot(pushes, place, now_s)) return;
  uint32_t level = (uint32_t)pushes->ticks[place] - 1; // with so many ticks before this one
  hot_packets_add_flush(pushes->packets, pushes->map, place / PLACES, pushes->round[place],
                        level < MOST_LEVEL ? level : MOST_LEVEL);
}

void hot_pushes_tick(hot_pushes_t *pushes, double now_s) {
  int64_t num_places = PLACES * (int64_t)pushes->map->size;
  place_list_t *due = &pushes->touched;
  hot_pushes_begin(pushes);
  for (int64_t place = 0; place < num_places; place++) {
    if (pushes->due_s[place] <= now_s) place_list_add(due, place);
  }
  for (int64_t i = 0; i < due->count; i++) tick(pushes, due->at[i], now_s);
  for (int64_t i = 0; i < due->count; i++) flush(pushes, due->at[i], now_s);
  pushes->next_s = INFINITY;
  for (int64_t place = 0; place < num_places; place++) {
    if (pushes->due_s[place] < pushes->next_s) pushes->next_s = pushes->due_s[place];
  }
}
