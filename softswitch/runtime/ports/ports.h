// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports: frames in and out of the switch, with statistics, impairments and capture. Not locked: the switch's lock
// covers every call, except port_mem's send and receive, which lock their own rings.
//
// Ownership: frames of port_ops_t.next belong to the port. Packets belong to the pool; code that takes a
// packet off a list hands it back. Functions return 0 or a negative errno.
#ifndef SOFTSWITCH_PORTS_H
#define SOFTSWITCH_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture.h"
#include "impairments.h"
#include "packets.h"

#define PORT_BATCH 64    // about as many frames are received at once
#define PENDING_MAX 64u  // most packets that are sent at once
// Most bytes that are sent at once, about what a super-frame holds: more would leave the cache before they are sent.
#define PENDING_BYTES_MAX 68200u
#define PORTS_MAX 511 // 9-bit port numbers without the drop port
#define CACHE_LINE_BYTES 64u
#define PREFETCH_BYTES 1536u

typedef enum {
  RX_PACKETS, RX_BYTES, TX_PACKETS, TX_BYTES,
  RX_SUPER_FRAMES, TX_SUPER_FRAMES, // several frames that came or left in one piece; the others count each frame
  RX_OVERSIZE,        // larger than FRAME_BYTES_MAX, or a segment within a tunnel that cannot be cut
  RX_OVERFLOW,        // the kernel or a mem ring had no room
  RX_FOREIGN,         // udp: not from the port's fixed peer; not in RX_PACKETS
  TX_OVERSIZE, TX_OVERFLOW,
  TX_DOWN,            // the interface is down or has vanished
  TX_NO_PEER,         // udp: no peer has sent to this port yet
  PORT_ERRORS,        // unexpected failures of the operating system
  CAPTURE_ERRORS,     // the failed write or flush that ends the capture, and all later frames
  DROPPED_NO_PROGRAM, // these count at the packet's ingress port
  DROPPED_BY_PROGRAM,
  DROPPED_UNKNOWN_PORT, DROPPED_UNKNOWN_GROUP,
  DROPPED_PRIORITY,     // no queue has this priority
  DROPPED_RECIRCULATED, // too many packets wait for another pass, or this one has had too many
  DROPPED_CLONES,       // a packet has had too many egress clones
  DROPPED_DIGESTS,      // no room, because no reader took the earlier ones
  IMPAIRED_FIRST, // two blocks of impairment counters: in, out
  STATISTICS_COUNT = IMPAIRED_FIRST + 2 * IMPAIRMENT_COUNTERS
} statistic_t;

extern const char *const port_statistic_names[STATISTICS_COUNT];

typedef struct {
  uint8_t *data; // writable up to bytes
  uint32_t bytes;
} frame_t;

typedef struct port port_t;

enum { SUPER_FRAMES_RECEIVED = 1, SUPER_FRAMES_SENT_UDP = 2, SUPER_FRAMES_SENT_TCP = 4 };

typedef struct {
  void (*receive)(port_t *); // begin a batch of frames that have arrived; never blocks
  bool (*next)(port_t *, frame_t *); // the next frame of the batch, valid until the next call; false: there is none
  void (*release)(port_t *); // end the batch
  void (*transmit)(port_t *, packet_t *const *packets, uint32_t count); // never blocks; counts what it cannot send
  void (*close)(port_t *);                                              // frees state
  void (*count_losses)(port_t *); // add what the kernel lost since the last call to the statistics; may be NULL
  uint32_t (*super_frames)(const port_t *); // SUPER_FRAMES_ bits: what is in use; may be NULL
} port_ops_t;

struct port {
  const port_ops_t *ops;
  void *state; // depends on the kind of port
  uint32_t number;
  int fd;          // readable when frames wait; -1 once the port is down
  uint64_t serial; // tells a port from a later one of the same number
  capture_t *capture;
  impairment_stage_t in, out;
  uint64_t statistics[STATISTICS_COUNT];
  uint32_t pending_count, pending_bytes; // packets that wait for port_flush
  packet_t *pending[PENDING_MAX];
  priority_queue_t queues[]; // that of `in`, then those of `out`
};

// A frame may be in another core's cache: prefetch it while the one before it is processed.
static inline void port_prefetch(frame_t frame) {
  uint32_t bytes = frame.bytes < PREFETCH_BYTES ? frame.bytes : PREFETCH_BYTES;
  for (uint32_t at = 0; at < bytes; at += CACHE_LINE_BYTES) __builtin_prefetch(frame.data + at);
}

int port_mem_open(port_t *, uint32_t ring_bytes);
int port_mem_send(port_t *, const uint8_t *frames, const int32_t *lengths, uint32_t count, size_t stride);
int port_mem_receive(port_t *, uint8_t *frames, int32_t *lengths, uint32_t count, size_t stride, int64_t timeout_ns);
bool port_is_mem(const port_t *);
void port_mem_interrupt(port_t *); // wakes and refuses every receiver; close once they have left

// super_frames: join consecutive packets of a flow that leave together.
int port_veth_open(port_t *, const char *interface, bool super_frames);
int port_veth_reopen(port_t *); // for a port that is down: opens the interface that has its name now, keeps all else
// Numeric address and service; peer_host NULL: the source of the last datagram received is the peer. super_frames: the
// kernel may join what arrives and cut what leaves.
int port_udp_open(port_t *, const char *host, const char *service, const char *peer_host, const char *peer_service,
                  bool super_frames);
int port_udp_number(const port_t *); // the UDP port that it is bound to

// Takes packets instead of a transmission: {port, bytes, frame padded to 4}...
typedef struct {
  uint8_t *data;
  size_t bytes, capacity;
} collector_t;

// What one batch of work shares.
typedef struct {
  pool_t pool;
  uint64_t now_ns;        // CLOCK_MONOTONIC, once per batch
  bool ignore_time;       // synchronous mode: impairments count packets, not time
  collector_t *collector; // NULL: transmit
} batch_t;

// Transmit through the impairments, where the packet waits in the queue of its priority; takes ownership.
void port_enqueue(port_t *, batch_t *, packet_t *, uint32_t priority);
void port_advance_out(port_t *, batch_t *, uint64_t now_ns); // enqueue packets that the out impairments release by now
void port_flush(port_t *, batch_t *);
void port_count_losses(port_t *); // call it before the port's statistics are read
void port_capture(port_t *, const uint8_t *frame, uint32_t bytes); // if the port has a capture
void port_close(port_t *, batch_t *); // sends nothing more; frees everything that the port holds

#endif
