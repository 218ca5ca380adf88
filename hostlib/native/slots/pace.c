// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "pace.h"

#include <math.h>

// A turn lets the chunks under way divided by this come in. With a half of them, the pauses of two workers would fill the
// time, and links would be idle in between.
#define GATHERED_SHARE 3.0
#define DECAY (7.0 / 8)    // weight of earlier turns in the sums, after each turn
#define SHORTEST_S 0.0001 // a shorter pause costs more than it saves

pace_t pace_new(double longest_s) { return (pace_t){.longest_s = longest_s}; }

double pace_pause_s(const pace_t *pace, uint32_t under_way, double limit_s) {
  if (!pace->may_pause || pace->datagrams <= 0) return 0;
  double gathered_s = under_way / GATHERED_SHARE * pace->time_s / pace->datagrams;
  double pause_s = fmin(gathered_s, fmin(pace->longest_s, limit_s));
  return pause_s > SHORTEST_S ? pause_s : 0;
}

void pace_note(pace_t *pace, uint32_t count, bool is_full, double now_s) {
  pace->may_pause = count > 0 && !is_full;
  if (pace->taken_s > 0) {
    pace->datagrams = DECAY * pace->datagrams + count;
    pace->time_s = DECAY * pace->time_s + (now_s - pace->taken_s);
  } else if (!count) {
    return;
  }
  pace->taken_s = now_s;
}

void pace_rest(pace_t *pace) { pace->taken_s = 0; }
