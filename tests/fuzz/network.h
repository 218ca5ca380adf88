// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The switch's end of a worker's socket: packets come one by one, and go in messages of many ("super-frames") that the
// kernel hands over whole. The network loses, doubles, delays, reorders, damages, merges, splits and truncates.
//
// All sockets are UDP sockets. For a worker that believes to have a packet socket, a message is what the kernel would hand
// to one.
#ifndef SWITCHFOLD_FUZZ_NETWORK_H
#define SWITCHFOLD_FUZZ_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "damage.h"
#include "transport/frames.h"

#define MOST_QUEUED 1024u
#define MOST_SPARE 32u

typedef struct {
  uint32_t loss, duplication, delay, damage, truncation, disorder, bad_heads; // of 1000 packets or messages
} weather_t;

typedef enum {
  JOINED,       // datagrams, which the kernel joins (UDP_SEGMENT, UDP_GRO)
  SINGLE,       // one packet in each message
  SUPER_FRAMES, // behind a virtio_net_hdr and the layers of a frame
} messages_t;

typedef struct {
  uint32_t count;
  packet_t *packets; // MOST_QUEUED
} queue_t;

typedef struct {
  int fd;
  messages_t messages;
  frames_t frames; // from the switch
  weather_t weather;
  queue_t out;             // to the worker
  queue_t held_in, held_out; // delayed
  uint64_t least_sent, most_sent; // datagrams on the wire to the worker; a message with a bad head may count as one
  uint64_t num_joined;            // messages of several datagrams
  bool has_bad_frame;             // the worker sent one
} port_t;

void port_init(port_t *, int fd, messages_t, const frames_t *, const weather_t *);
void port_close(port_t *);

// Append a packet to a queue, unless that is full, which is a loss.
void queue_init(queue_t *);
void queue_close(queue_t *);
void queue_add(queue_t *, const packet_t *);

// Packets from the worker: those that came now, and delayed ones, as the weather wants.
void port_receive(port_t *, queue_t *in);

// A reply of the switch leaves for the worker.
void port_reply(port_t *, const packet_t *);

// Send what has left, in messages of random composition. Returns whether there was something.
bool port_flush(port_t *);

// Whether the UDP checksum of a frame fits or is 0.
bool has_good_checksum(const uint8_t *frame, uint32_t bytes);

#endif
