// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The congestion window: how many chunks of a stream may be without result at a time.
//
// Slow start up to the first sign of congestion, then additive increase and multiplicative decrease, at most once per
// round trip, like TCP with ECN (RFC 3168). A round trip is a window of results, not a time. The sign is a result with
// ECN_ECHO. A late result is no sign, since it may wait for another worker. A loss is no sign either, as queues of this
// network mark packets long before they are full. A loss only limits the window so that other chunks find free slots
// while one waits to be sent again. But if more packets are lost than links lose at random, as when queues without marks
// overflow, a loss counts like a mark, down to the window of a job's beginning.
//
// All workers of a job see the same marks of contributions, and a result comes only when all have contributed. So the
// worker with the smallest window sets the pace of the job.
#ifndef SWITCHFOLD_CONGESTION_H
#define SWITCHFOLD_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  double chunks;
  double minimum, maximum;
  double floor;     // a loss leaves at least so many chunks
  double tolerated; // part of the results beyond which losses count like marks
  double blind;     // such losses leave at least so many chunks, if `floor` is more
  bool is_slow_start;
  uint32_t deaf_for; // results still to come of chunks sent before the last decrease
  double recent_results, recent_losses; // over about a window
} congestion_t;

// Chunks in the beginning, and at least and at most. A loss leaves at least `floor` chunks. Losses beyond the part
// `tolerated` of the results count like marks, and leave at least the BLIND_CHUNKS of congestion.c, or what `blind` is set to.
congestion_t congestion_new(uint32_t initial, uint32_t least, uint32_t maximum, uint32_t floor, double tolerated);

// Part of a job's chunks that may be lost at random on some hop: a chunk arrives if all contributions do, and this worker's
// copy of the result.
double congestion_tolerated(uint32_t num_workers);

uint32_t congestion_limit(const congestion_t *); // most chunks that may be without result now; at least 1

// `count` results came, `marked` of them with ECN_ECHO; `under_way` chunks were without result before.
void congestion_on_results(congestion_t *, uint32_t count, uint32_t marked, uint32_t under_way);

// `count` packets were lost, with `under_way` chunks without result then.
void congestion_on_loss(congestion_t *, uint32_t under_way, uint32_t count);

#endif
