// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A view at work over a switch: a stream of exponents (maximised) and one of values (added) over its slots, the blocks of
// allgathers, and what came instead of results. One thread calls it; another may interrupt it.
#ifndef SWITCHFOLD_REDUCER_H
#define SWITCHFOLD_REDUCER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../blocks/block_exchange.h"
#include "pace.h"
#include "refusal.h"
#include "stream.h"

#define NUM_STREAMS 2
#define MAX_EVENTS BATCH

typedef enum {
  EVENT_NOTICE,  // `bitmap`: who is in the awaited round of the switch; 0 if the switch is in another round
  EVENT_ANSWER,  // a notice about a round that nobody waits for
  EVENT_BEHIND,  // the other workers have left the round of tensor `tensor_id`
} event_kind_t;

typedef struct {
  uint32_t kind; // event_kind_t
  uint32_t tensor_id;
  uint32_t bitmap;
} event_t;

// What a call of reducer_poll has seen.
typedef struct {
  uint32_t num_results;
  uint32_t num_blocks; // chunks of blocks that were new, and reports of them
  uint32_t num_events;
  bool has_multicasts; // that were taken or refused
  double result_s;     // when results, chunks or reports came last, 0: none did
  event_t events[MAX_EVENTS];
} arrivals_t;

typedef struct {
  transport_t *transport;
  stream_options_t options;
  slot_t *slots; // of the view, exponents first
  uint32_t slot_count;
  uint16_t *tree_ids;
  uint32_t **slots_of_tree; // by tree and local number: the view's slot
  uint32_t *tree_slots;     // number of slots by tree
  closers_t *closers;       // by tree
  stream_t streams[NUM_STREAMS];
  block_exchange_t *blocks; // NULL: no switch copies blocks
  pace_t pace;
  uint64_t refused[REFUSALS];
  atomic_bool is_interrupted;
} reducer_t;

typedef enum { EXPONENTS, VALUES } stream_name_t;

// A slot of the view: in wire order of trees, `tree` is the index of its tree, `local` its number there.
typedef struct {
  uint32_t tree, local;
} slot_place_t;

// NULL without memory. `closers` by tree; NULL: no contribution is let go. The first `exponent_slots` of the places carry exponents. `members`: those of a view of one tree
// whose switch copies blocks to all others, or NULL.
reducer_t *reducer_new(transport_t *, const stream_options_t *, const uint16_t *tree_ids, const uint32_t *tree_slots,
                       const closers_t *closers, const slot_place_t *places, uint32_t slot_count,
                       uint32_t exponent_slots, const members_t *members);
void reducer_free(reducer_t *);

stream_t *reducer_stream(reducer_t *, uint32_t name); // stream_name_t
block_exchange_t *reducer_blocks(reducer_t *);         // NULL: no switch copies blocks
const uint64_t *reducer_refused(const reducer_t *);   // by refusal_t

// Send, receive and keep timers until something is the caller's business: a tensor is complete or needs values, an allgather
// has ended or failed, an event came, `until_s` (CLOCK_MONOTONIC) is past, or reducer_interrupt was called. Returns 0 or
// -errno.
int reducer_poll(reducer_t *, double until_s, arrivals_t *);

// What reducer_poll does in turn, for a caller that keeps time itself (a simulation).
int reducer_send(reducer_t *, double now_s); // 1, 0 when the transport took less, or -errno
// Take datagrams, at most BATCH; adds to what the arrivals hold. Returns 0 or -errno.
int reducer_take(reducer_t *, const uint8_t *const *datagrams, uint32_t count, double now_s, arrivals_t *);
int reducer_keep_time(reducer_t *, double now_s); // 0 or -errno
double reducer_next_s(const reducer_t *);         // when reducer_keep_time is to be called next

void reducer_interrupt(reducer_t *); // any thread; the transport must be woken as well

#endif
