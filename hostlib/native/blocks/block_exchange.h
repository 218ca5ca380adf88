// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// All allgathers of a view: each worker sends its blocks once, and the switch copies them to all others.
//
// Chunks carry receipts for the chunks of others. Reports carry them as well, when this worker has nothing to send for a
// moment, or chunks are missing. See docs/protocol.md.
#ifndef SWITCHFOLD_BLOCK_EXCHANGE_H
#define SWITCHFOLD_BLOCK_EXCHANGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "allgather.h"
#include "block_receiver.h"
#include "block_sender.h"
#include "../slots/refusal.h"
#include "../slots/stream.h"
#include "../transport/transport.h"

// The pause between reports is a round trip divided by this, and half of that if chunks are missing.
#define REPORT_DELAY_SHARE 2

// In packets.
typedef struct {
  uint64_t sent; // first transmissions of chunks
  uint64_t retransmitted;
  uint64_t received; // chunks that were new
  uint64_t marked;   // own chunks that others say met congestion, summed over the others
  uint64_t reported; // reports sent
} block_counters_t;

typedef struct {
  transport_t *transport;
  multicast_origin_t origin;
  uint32_t values_per_packet;
  uint8_t place_of[MAX_MEMBERS]; // by worker id: place among the others
  block_sender_t sender;
  block_receiver_t receiver;
  uint64_t end;      // first chunk of each sequence that belongs to no allgather yet
  uint64_t reports;  // sent
  double reported_s; // when all news was reported last
  uint8_t *report;   // a datagram

  pthread_mutex_t lock;
  block_counters_t published;
} block_exchange_t;

// A packet has room for a row of a report. Returns false without memory.
bool block_exchange_init(block_exchange_t *, transport_t *, const stream_options_t *, uint16_t tree_id, const members_t *);
void block_exchange_close(block_exchange_t *);

// Append an allgather to the sequence, which is the same on all workers. It stays the caller's. Returns 0 or -errno.
int block_exchange_enqueue(block_exchange_t *, allgather_t *, double now_s);

// Send what the window allows. Returns 1, 0 when the transport took less, or -errno.
int block_exchange_send(block_exchange_t *, double now_s);

// Take multicasts; those that bring nothing are counted by their cause. Returns how many brought news, or -errno.
int block_exchange_take(block_exchange_t *, const uint8_t *const *datagrams, uint32_t count, double now_s,
                        uint64_t refused[REFUSALS]);

double block_exchange_next_s(const block_exchange_t *);         // when block_exchange_keep_time is to be called next
int block_exchange_keep_time(block_exchange_t *, double now_s); // send again and report what is due; 0 or -errno

// Whether an allgather has ended, or failed; the former is told once.
bool block_exchange_has_news(block_exchange_t *);
const mismatch_t *block_exchange_mismatch(const block_exchange_t *);

// Bit i: the worker at place i among the others has not taken all that was sent.
uint32_t block_exchange_lagging(const block_exchange_t *);
// Whether another worker may still miss chunks, or a report, of this one.
bool block_exchange_is_owing(const block_exchange_t *);

// The counters as they were last published; any thread.
block_counters_t block_exchange_counters(block_exchange_t *);
void block_exchange_publish(block_exchange_t *);

#endif
