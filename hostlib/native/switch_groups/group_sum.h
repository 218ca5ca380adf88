// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The server's end of a switch group: takes the sums of chunks, each once, and asks again for those that lack.
//
// A sum counts only if it has all members, and no lane of it saturated. So all sums of a chunk that count are equal, and it
// does not matter which one comes first.
#ifndef SWITCHFOLD_GROUP_SUM_H
#define SWITCHFOLD_GROUP_SUM_H

#include <stdbool.h>

#include "group_stream.h"

typedef struct {
  group_stream_t stream;
  uint32_t members;    // bitmap
  const float *scales; // by chunk: 2^-shift
  float *values;       // sums of the update's values
  uint8_t *has;        // by chunk: whether its sum has come
  double *asked_s;     // by chunk: when it was asked for last; 0: never
  uint32_t done;       // all chunks before have come
  uint32_t end;        // no chunk from here on has
  uint32_t num_marked; // sums with ECN_ECHO, until the caller sets it to 0
  uint32_t num_repeated;
  uint32_t num_foreign;    // sums of other groups, or of other members
  uint32_t num_overflowed; // chunks whose sums do not fit
} group_sum_t;

void group_sum_begin(group_sum_t *); // all fields up to `asked_s` are set

// Take packets that the switch has sent; returns how many chunks are new.
uint32_t group_sum_take(group_sum_t *, const uint8_t *packets, uint32_t count);

// Write flushes for chunks that lack and were not asked for since `pause_s`: those that later ones have overtaken, and with
// `is_silent` the first ones that lack, too. The switch answers those whose sums it has. Returns how many.
uint32_t group_sum_ask(group_sum_t *, bool is_silent, double pause_s, uint8_t *packets, uint32_t room, double now_s);

#endif
