// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Workers of the host library that sum tensors over one switch and lossy links, in simulated time. Each packet leaves a
// record. `loss_network.py` calls it; `loss_ledger.py` reads the records.
//
// A worker has a link to the switch and one from it. A worker that is awake takes all packets that have arrived, sends what
// it may, and sleeps until a packet arrives or a timer runs out. The switch keeps the slot protocol of docs/protocol.md for
// a job of one tree that tolerates loss.
#ifndef SWITCHFOLD_LOSS_NETWORK_H
#define SWITCHFOLD_LOSS_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#define NUM_VALUES 2u // of a packet
#define MOST_WORKERS 8u
#define MOST_SLOTS 256u
#define PACKET_BYTES 52u // header and values

typedef enum { LOSE_ALL, LOSE_TO_SWITCH, LOSE_FLUSHES, LOSE_RESULTS_OF_ONE, SILENCE_ONE } loss_kind_t;

typedef struct {
  uint64_t seed;
  uint32_t num_workers, exponent_slots, slot_count; // of all slots
  uint32_t kind, one; // loss_kind_t, and whose results are lost
  uint32_t is_adaptive; // see closing.h
  double loss, duplication, reordering;
  double silence_s; // of the one, and between silences, by lot
  double delay_s, packet_s, pause_s;
} settings_t;

// What one worker adds, and what it gets; the arrays stay the caller's until the sum has ended.
typedef struct {
  const int32_t *data; // NUM_VALUES for each chunk
  const uint8_t *large; // by chunk; NULL: none is
  uint32_t is_tolerant, left, limit; // whether anything may be lacking, and what this worker may let go
  double late_s;       // it begins so much later
  int32_t *output;
  uint16_t *contributors;
  uint32_t *bitmaps;
  uint32_t has_missed;
} part_t;

typedef enum { SENT, ARRIVED, ANSWERED_ONE, ANSWERED_ALL, GOT } record_kind_t;

typedef struct {
  uint16_t kind, worker; // record_kind_t; the worker that sends or gets it
  uint8_t packet[PACKET_BYTES];
} record_t;

typedef struct network network_t;

network_t *network_new(const settings_t *);
void network_free(network_t *);

// Let all workers sum a tensor; returns NULL, or what went wrong. `parts` by worker.
const char *network_sum(network_t *, uint32_t tensor_id, uint32_t num_chunks, part_t *parts);

// What happened in the last sum, in order; valid until the next one.
const record_t *network_records(network_t *, uint32_t *count);

#endif
