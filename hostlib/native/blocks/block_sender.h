// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// This worker's blocks, one sequence of chunks to all other workers of the view: window, receipts, retransmissions.
//
// A chunk stays in the ring until every other worker has it, in sequence. So the caller may use a block's memory again once
// all of its chunks were sent. The header of each chunk also tells one other worker what was received of its chunks.
#ifndef SWITCHFOLD_BLOCK_SENDER_H
#define SWITCHFOLD_BLOCK_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "allgather.h"
#include "block_receiver.h"
#include "../slots/congestion.h"
#include "multicast.h"
#include "../timing/rtt.h"
#include "../slots/stream.h"
#include "../transport/transport.h"

// Bounds of how long a report waits for chunks that could carry the same receipts.
#define LEAST_REPORT_DELAY_S 0.001
#define LONGEST_REPORT_DELAY_S 0.1

// In packets.
typedef struct {
  uint64_t sent; // first transmissions
  uint64_t retransmitted;
  uint64_t marked; // chunks that others say met congestion, summed over the others
} block_sender_counters_t;

typedef struct {
  transport_t *transport;
  block_receiver_t *receiver; // which says what to tell
  multicast_origin_t origin;
  uint32_t own, num_others, values_per_packet;
  double maximum_rto_s;
  uint8_t *ring;                  // BLOCK_WINDOW datagrams, NULL before the first block
  uint32_t lacking[BLOCK_WINDOW]; // by slot of the ring: bit i: the worker at place i has not got the chunk
  double sent_s[BLOCK_WINDOW];
  bool is_again[BLOCK_WINDOW];
  uint64_t taken[MAX_OTHERS]; // chunks that a worker has without a gap
  uint8_t marks[MAX_OTHERS];  // that a worker has counted
  rtt_t rtt;
  congestion_t window;
  block_sender_counters_t counters;
  allgather_t *oldest, *newest; // those that were not sent to the end
  uint64_t base;                // every other worker has taken all chunks below
  uint64_t next_chunk;          // first one not sent yet
  unsigned expiries;            // since a chunk was taken by all
  double expiry_s;              // when block_sender_keep_time is to be called next
  bool has_finished;            // an allgather has ended since the caller last looked

  // The batch of receipts under way.
  uint32_t heard; // bit i: from the worker at place i
  int64_t heard_taken[MAX_OTHERS];
  uint8_t heard_marks[MAX_OTHERS]; // how many are new
} block_sender_t;

void block_sender_init(block_sender_t *, transport_t *, const stream_options_t *, const multicast_origin_t *,
                       block_receiver_t *);
void block_sender_close(block_sender_t *);

// Largest window of one worker, as a share of a session's window: all workers send to the same ports at a time.
uint32_t block_sender_largest_window(uint32_t window, uint32_t num_others);

int block_sender_enqueue(block_sender_t *, allgather_t *); // append a block to the sequence; 0 or -errno

// Send what the window allows. Returns 1, 0 when the transport took less, or -errno.
int block_sender_pump(block_sender_t *, double now_s);

// Learn from headers of the worker at `place` among the others; the news count from block_sender_end_hearing on.
void block_sender_hear(block_sender_t *, uint32_t place, const uint8_t *header);
void block_sender_end_hearing(block_sender_t *, double now_s);

// Learn from a report which chunks a worker has, and send the lost ones again. Returns 0 or -errno.
int block_sender_take_report(block_sender_t *, uint32_t place, const report_row_t *, double now_s);

// Send chunks again if no worker has taken any for too long. Returns 0 or -errno.
int block_sender_keep_time(block_sender_t *, double now_s);

uint32_t block_sender_outstanding(const block_sender_t *); // chunks that were sent, and that some worker has not taken

#endif
