// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The blocks of the other workers of a view: chunks are put in sequence, written into the results, and reported.
//
// A chunk is taken when all before it are, and this worker has submitted the allgather that it belongs to. It goes straight
// into the result. Until then it waits in a ring. Only chunks that were taken count as received, so a sender stops when
// this worker is late.
#ifndef SWITCHFOLD_BLOCK_RECEIVER_H
#define SWITCHFOLD_BLOCK_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "allgather.h"
#include "multicast.h"

// The chunks of one other worker.
typedef struct {
  uint64_t taken;         // chunks without a gap
  uint32_t marks;         // chunks that met congestion
  allgather_t *allgather; // that chunk `taken` belongs to; NULL: it is not submitted yet
  uint32_t num_held;
  bool is_held[BLOCK_WINDOW]; // by slot of the ring
  bool is_due;                // there is news for its sender
} sequence_t;

// A worker that gathers something else than this one.
typedef struct {
  bool is_there;
  uint32_t worker_id;
  uint32_t tensor_id;       // this worker's
  uint32_t other_tensor_id; // what came in its place
} mismatch_t;

typedef struct {
  members_t members;
  uint32_t num_others, values_per_packet;
  uint8_t *ring; // BLOCK_WINDOW datagrams for each other worker, NULL before the first one waits
  sequence_t sequences[MAX_OTHERS];
  allgather_t *newest; // NULL: all are complete
  uint32_t num_held;   // chunks that wait
  uint32_t next_told;  // place of the worker that the next packet speaks of
  uint64_t received;   // chunks that were new
  double due_since_s;  // since when there is news for a sender; infinite: there is none
  double told_s;       // when a packet last had news
  mismatch_t mismatch; // the first one; nothing is taken of that worker any more
  bool has_finished;   // an allgather has ended since the caller last looked
} block_receiver_t;

void block_receiver_init(block_receiver_t *, const members_t *, uint32_t values_per_packet);
void block_receiver_close(block_receiver_t *);

// Append an allgather, to which the next block of each worker belongs.
void block_receiver_enqueue(block_receiver_t *, allgather_t *, double now_s);

// Take a chunk of the worker at `place` among the others. Returns 1 if it is new, 0 if not, or -errno.
int block_receiver_take(block_receiver_t *, uint32_t place, const uint8_t *datagram, double now_s);

// Write what was received of one other worker into the header of a packet to all; each call takes the next worker. Call
// block_receiver_end_telling after the last packet.
void block_receiver_tell(block_receiver_t *, uint8_t *header);
void block_receiver_end_telling(block_receiver_t *, double now_s);

// Write rows for at most `most` workers for whose sequences there is news; they count as reported. Returns how many.
uint32_t block_receiver_report(block_receiver_t *, uint8_t *rows, uint32_t most);

#endif
