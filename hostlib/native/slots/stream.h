// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// An endless sequence of chunks over a range of slots: window, sending, results, retransmission.
//
// Chunk k of the sequence uses slot k % n and round k / n + 1, on every worker alike. Chunks are sent in order; chunk k
// waits until the result of chunk k - n is there: that is the slot protocol's rule. Each slot keeps the datagram of its
// latest chunk: it is sent from there, and sent again.
#ifndef SWITCHFOLD_STREAM_H
#define SWITCHFOLD_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "closing.h"
#include "congestion.h"
#include "header.h"
#include "incast.h"
#include "recovery.h"
#include "../timing/rtt.h"
#include "slot.h"
#include "source.h"
#include "stale.h"
#include "straggler.h"
#include "tolerance.h"
#include "../transport/transport.h"

#define BATCH 256u // most datagrams sent or taken at once

// In packets.
typedef struct {
  uint64_t sent; // first transmissions
  uint64_t retransmitted;
  uint64_t fast_retransmitted;  // of these, as later results had shown the loss
  uint64_t probe_retransmitted; // of these, after silence; all others when a timer ran out
  uint64_t received;            // results taken
  uint64_t replayed;            // of these, answers to retransmissions
  uint64_t flushed;             // flushes sent for rounds that waited too long, or that may lack contributions
  uint64_t marked;              // of the results, with ECN_ECHO: a contribution met congestion
  uint64_t kept;                // results let go, in whose place old values are kept
} stream_counters_t;

// What all datagrams of a view share.
typedef struct {
  uint32_t generation;
  uint32_t worker_bitmap;
  uint32_t child_id;
  uint32_t num_workers;
  uint32_t values_per_packet;
  uint32_t num_trees;
  double straggler_s; // infinite: all workers are waited for
  double initial_rto_s, minimum_rto_s, maximum_rto_s;
  uint32_t window; // most chunks without result
  uint32_t batch;    // most datagrams that one receive takes, at most BATCH
  double coalesce_s; // longest pause before a receive, see pace.h
  uint32_t control_priority; // of packets that carry no values: flushes
  bool has_adaptive_wait; // see closing.h
  bool has_statements;    // contributions of values state which rounds are over, see stale.h
  bool has_dynamic_incast; // see incast.h
} stream_options_t;

// What the caller shows and decides by.
typedef struct {
  stream_counters_t counters;
  double round_trip_s;          // 0 without a measurement
  uint32_t outstanding, window; // chunks
  uint64_t incast_trials;       // of other numbers of chunks under way; see incast.h
} stream_state_t;

typedef struct stream {
  transport_t *transport;
  stream_options_t options;
  const closers_t *closers; // by tree; the caller's
  slot_t *slots;
  uint32_t slot_count;
  uint8_t *datagrams; // one row for each slot
  uint32_t datagram_bytes;
  rtt_t rtt;
  congestion_t window;
  recovery_t recovery;
  straggler_t straggler;
  closing_t closing;
  incast_t incast;
  stale_t stale;
  // Place of the first chunk that this worker may close without all contributions. If it has missed a result, it must not
  // let others miss results of the same tensor: they could have them from no worker. See docs/protocol.md.
  uint64_t lenient_from;
  stream_counters_t counters;

  source_t *oldest, *newest; // those that are not finished, in order
  source_t *preparing;       // the one that `prepared` lies in, NULL behind the last one
  source_t *sending;         // likewise `next_chunk`
  uint64_t base;             // all chunks below have their results
  uint64_t next_chunk;       // first one not sent yet
  uint64_t prepared;         // first one whose datagram is not in its slot yet
  uint64_t end;              // first one that no tensor has claimed
  uint32_t outstanding;      // sent, and no result yet
  bool has_finished;         // a source has finished since the caller last looked

  // The batch of results under way.
  slot_t **taken;
  answer_t *answers;
  uint32_t num_taken, num_marked;
  bool is_in_order;
  slot_t **scratch, **to_close; // room for all slots each

  pthread_mutex_t lock;
  stream_state_t state; // published
} stream_t;

// `slots` holds tree and local number of each slot, and stays the caller's, as `closers` does. Returns false without memory.
bool stream_init(stream_t *, transport_t *, const stream_options_t *, const closers_t *closers, slot_t *slots,
                 uint32_t slot_count);
void stream_close(stream_t *);

void stream_enqueue(stream_t *, source_t *); // stays the caller's
// Count all chunks of an enqueued tensor as done: its result came another way.
void stream_abandon(stream_t *, source_t *);

// The others have left the round of a slot, whose result this worker does not have: go on without it.
void stream_miss(stream_t *, slot_t *, double now_s);

// Send what window and slots allow. Returns 1, 0 when the transport took less, or -errno.
int stream_pump(stream_t *, double now_s);

// Whether chunks wait only for values that the caller is to prepare.
bool stream_is_hungry(const stream_t *);

// Chunks that were sent and have no result yet; for the thread that sends.
uint32_t stream_outstanding(const stream_t *);

// Take datagrams between _begin and _end. stream_take returns whether it is the result that this slot waits for.
void stream_begin(stream_t *);
bool stream_take(stream_t *, slot_t *, const uint8_t *datagram);
int stream_end(stream_t *, double now_s); // 0 or -errno

double stream_next_s(const stream_t *);           // when stream_keep_time is to be called next
int stream_keep_time(stream_t *, double now_s);   // send again what is overdue; 0 or -errno
const uint8_t *stream_oldest(const stream_t *);   // datagram of the oldest chunk without result, or NULL
uint8_t *stream_datagram(const stream_t *, const slot_t *);

// The state as it was last published; any thread.
stream_state_t stream_state(stream_t *);
void stream_publish(stream_t *);

#endif
