// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The switch's end of a worker's UDP socket: packets come one by one, and go in messages of many ("super-frames") that the
// kernel hands over whole. The network loses, doubles, delays, reorders, damages, merges, splits and truncates.
#ifndef SWITCHFOLD_FUZZ_NETWORK_H
#define SWITCHFOLD_FUZZ_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "damage.h"

#define MOST_QUEUED 1024u

typedef struct {
  uint32_t loss, duplication, delay, damage, truncation, disorder; // of 1000 packets or messages
} weather_t;

typedef struct {
  uint32_t count;
  packet_t *packets; // MOST_QUEUED
} queue_t;

typedef struct {
  int fd;
  weather_t weather;
  queue_t out;             // to the worker
  queue_t held_in, held_out; // delayed
  uint64_t num_sent;       // datagrams on the wire to the worker, good or not
  uint64_t num_joined;     // messages of several datagrams
} port_t;

void port_init(port_t *, int fd, const weather_t *);
void port_close(port_t *);

// Append a packet to a queue, unless that is full, which is a loss.
void queue_add(queue_t *, const packet_t *);

// Packets from the worker: those that came now, and delayed ones, as the weather wants.
void port_receive(port_t *, queue_t *in);

// A reply of the switch leaves for the worker.
void port_reply(port_t *, const packet_t *);

// Send what has left, in messages of random composition. Returns how many datagrams are on the wire now.
uint32_t port_flush(port_t *);

#endif
