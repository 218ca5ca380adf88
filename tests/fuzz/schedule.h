// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One random job in virtual time: workers of the C library over real UDP sockets, a correct switch, and bad weather in
// between. Nothing else takes part, so a seed gives the same run on every machine.
#ifndef SWITCHFOLD_FUZZ_SCHEDULE_H
#define SWITCHFOLD_FUZZ_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

// What has happened, over all schedules.
typedef struct {
  uint64_t datagrams; // that came to workers, good or not
  uint64_t damaged;
  uint64_t joined;  // messages of several datagrams
  uint64_t results, refused, blocks, dropped; // the datagrams' ends; the last by the transport
  uint64_t again; // packets sent again
} totals_t;

// Run the schedule of a seed. A faithful one damages nothing so that a worker cannot notice; it ends with all sums, which
// must be right. A hostile one damages everything and has no sums. Returns whether every invariant held; else the reason
// is on stderr.
bool schedule_run(uint64_t seed, bool is_hostile, totals_t *);

#endif
