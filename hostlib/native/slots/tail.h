// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The time that nearly all chunks take from their sending to their results: a moving 95th percentile.
//
// A longer time raises it by a part of itself, a shorter one lowers it by a nineteenth of that part. So it stands still where
// one in twenty takes longer. It rises at once where others are late, and falls slowly: a window of late chunks takes it
// some times as high, and it is back after about a thousand chunks. Nobody compares clocks.
#ifndef SWITCHFOLD_TAIL_H
#define SWITCHFOLD_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "../timing/rtt.h"

typedef struct {
  bool is_adaptive; // chunks that are only late wait for it; else for silence
  double percentile_s;
  uint32_t num_samples;
} tail_t;

// A chunk has its result. One that was let go before the percentile would have taken longer, nobody knows how long.
void tail_add(tail_t *, double taken_s, bool is_let_go);

// How long a chunk may take before it is late: some times the percentile, and the percentile alone with `is_last`, if no
// other chunk is to be sent and its wait holds up the tensor. At least some round trips; infinite before enough samples.
double tail_wait_s(const tail_t *, const rtt_t *, bool is_last);

#endif
