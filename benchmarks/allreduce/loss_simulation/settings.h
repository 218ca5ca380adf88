// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is simulated, as the command line says it: names and values by turns. Times are in seconds.
#ifndef SWITCHFOLD_SIMULATED_SETTINGS_H
#define SWITCHFOLD_SIMULATED_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_WORKERS 32u
#define MAX_JOBS 64u
#define MAX_FLOWS 8u
#define WARM_UP_CHUNKS 200u
#define WARM_UP_S 0.2 // before losses begin

typedef struct {
  uint32_t num_jobs, num_workers, num_chunks;
  uint32_t window; // most chunks of a worker without result
  uint64_t seed;
  double seconds; // of lossy time
  double packet_s, delay_s, pause_s;
  double queue_packets, mark_packets; // of a link: beyond, it drops, and marks
  double loss[2]; // of contributions, and of results
  double late_s, late_share; // one worker, by lot of each sum, begins so much later in that share of the sums
  double nap_s, nap_off_s; // mean times: each worker is not awake for so long, now and then
  bool is_adaptive; // see tail.h
  bool is_incast_dynamic; // see incast.h
  double tolerated; // share of the contributions to a tensor that it may lack
  double stale;     // share of the results of a tensor that a worker may do without
  // Each worker's host has a switch, the root of an equal part of the slots, behind the worker's links: what goes between
  // hosts crosses a link up and one down, and what stays on a host crosses none.
  bool is_transposed;
  double uplink_packet_s; // two hosts each are on a leaf, whose links to the spine lose nothing; 0: there are no leaves
  double burst_loss, burst_on_s, burst_off_s; // mean times with this loss and without it
  uint32_t num_flows; // like TCP's, in each direction of the links of host 0
  double flow_s;      // when they begin
  const uint8_t *large; // by chunk: whether it lacks nothing; NULL: none is
  FILE *bitmaps; // for the workers in each chunk of each sum after the warm-up, as uint32; NULL: not wanted
} settings_t;

extern settings_t settings;

void settings_read(int argc, char **argv);

// Chunks of the largest tensor.
uint32_t settings_most_chunks(void);

#endif
