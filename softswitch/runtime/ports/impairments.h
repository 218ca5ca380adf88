// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Impairments of a link, for one port and one direction. They are deterministic: each stage has one random generator and
// draws whether a burst begins or ends, loss, duplication, then per copy corruption, the bit to flip, reordering. A
// probability of 0 draws nothing.
//
//   packet -> lost? -> copies -> bit flipped? -> held back? -> queue of its priority -> rate -> delay -> on
//
// Losses have three sources, one of which decides about each packet: the script while it lasts, else the burst that the
// packet falls into (Gilbert 1960, Elliott 1963), else `loss`.
#ifndef SOFTSWITCH_IMPAIRMENTS_H
#define SOFTSWITCH_IMPAIRMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "packets.h"

#define LOSS_INTERVALS_MAX 32

// A part of the script: it lasts for a number of packets or, if that is 0, for a time.
typedef struct {
  uint64_t packets;
  uint64_t ns;
  double loss;
} loss_interval_t;

typedef struct {
  double loss, duplication, corruption, reordering;
  uint64_t reordering_delay_ns; // 0: no time limit
  uint64_t reordering_packets;  // 0: no limit by packets
  uint64_t delay_ns;
  double rate_bits_per_s; // 0: unlimited
  uint64_t queue_packets;
  uint64_t seed;
  double burst_start, burst_end; // probabilities per packet that a burst begins, and that it ends
  double burst_loss;             // within a burst, in place of `loss`
  uint32_t interval_count, script_repeats;
  loss_interval_t intervals[LOSS_INTERVALS_MAX]; // from the first packet on
} impairments_t;

enum { IMPAIRED_LOST, IMPAIRED_DUPLICATED, IMPAIRED_CORRUPTED, IMPAIRED_REORDERED, IMPAIRED_DELAYED,
       IMPAIRED_OVERRUN, IMPAIRED_BURST_LOST, IMPAIRED_SCRIPT_LOST, IMPAIRMENT_COUNTERS };

typedef struct {
  packet_list_t waiting; // for the rate; without the packet that the link sends
  uint32_t count;        // packets of this priority that wait for rate or delay
} priority_queue_t;

typedef struct {
  impairments_t settings;
  bool is_active;
  bool is_in_burst;
  bool is_script_begun;
  uint32_t interval;           // of the script
  uint64_t interval_packets;   // that fell into it
  uint64_t interval_start_ns;
  uint64_t random;
  uint64_t sequence;      // packets that arrived at the stage
  uint64_t line_free_ns;  // when the rate lets the next packet start
  uint32_t sent_priority; // of the packet that the link sends until then
  uint32_t waiting;       // packets in all queues that wait for the rate
  uint32_t queue_count;
  priority_queue_t *queues; // by priority; owned by the port, like the counters
  packet_list_t held;       // reordered, in order of release
  packet_list_t line;       // sent or being sent, until rate and delay release them; in order of release
  packet_list_t ready;      // to be taken by impairments_pop
  uint64_t *counters;       // IMPAIRMENT_COUNTERS of them
} impairment_stage_t;

// New settings; everything that the stage holds becomes ready.
void impairments_set(impairment_stage_t *, const impairments_t *, uint64_t stream);
// A packet arrives; takes ownership. ignore_time: later packets, not clocks, release held ones (synchronous mode).
// priority: below the stage's queue_count. now_ns never goes back.
void impairments_push(impairment_stage_t *, pool_t *, packet_t *, uint32_t priority, uint64_t now_ns,
                      bool ignore_time);
// Make packets ready that are due by now; UINT64_MAX releases all.
void impairments_advance(impairment_stage_t *, uint64_t now_ns);
packet_t *impairments_pop(impairment_stage_t *); // NULL when nothing is ready
// Packets of a priority that wait for the rate, or are being sent.
uint32_t impairments_queued(impairment_stage_t *, uint32_t priority, uint64_t now_ns);
uint64_t impairments_deadline(const impairment_stage_t *); // UINT64_MAX: none
void impairments_drop_all(impairment_stage_t *, pool_t *);

#endif
