// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Workers, whose streams are the product's own code. A worker that is awake takes all results that have arrived, sends what
// it may, and sleeps until a result arrives or a timer runs out.
#ifndef SWITCHFOLD_SIMULATED_WORKERS_H
#define SWITCHFOLD_SIMULATED_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregation.h"
#include "clock.h"
#include "settings.h"
#include "slots/stream.h"

typedef struct {
  transport_t base;
  uint32_t job, number;
  stream_t stream;
  slot_t slots[SLOTS];
  closers_t closers[MAX_WORKERS]; // by tree
  source_t source;
  tolerance_t tolerance;
  int32_t *output;
  uint16_t *contributors;
  uint32_t *bitmaps;
  uint8_t (*inbox)[PACKET_BYTES];
  uint32_t num_inbox, inbox_room;
  double awake_s, wakes_s;
  double ended_s; // the sum, here
  double nap_s;   // of the next nap
  bool is_late;   // in this sum
} worker_t;

worker_t *worker_new(uint32_t job, uint32_t number);

// Let it begin with its source.
void worker_submit(worker_t *);

// A packet has come.
void worker_take(worker_t *, const event_t *);

// The worker was to wake up now. Returns whether it has all results of its sum.
bool worker_wake(worker_t *);

#endif
