// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A transport over a datagram socket: UDP to the switch, or whole frames inside UDP to one of its ports.
//
// The kernel moves many datagrams at once: it cuts a message into datagrams (UDP_SEGMENT) and joins those that come
// (UDP_GRO), where it can.
#ifndef SWITCHFOLD_SOCKET_TRANSPORT_H
#define SWITCHFOLD_SOCKET_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "transport.h"

typedef struct socket_transport socket_transport_t;

// What was held up or lost here, by cause.
typedef struct {
  uint64_t network_error;    // the kernel told of an earlier packet: ICMP, no route
  uint64_t path_mtu_ignored; // of these: "too long for the path"
  uint64_t send_busy;        // sends that the kernel did not take in time
  uint64_t length;           // datagrams of a wrong size
  uint64_t other_traffic;    // frames that are not from the switch
  uint64_t checksum;         // frames with a wrong one
  uint64_t too_long_in_a_row; // refusals of the size by the kernel, since a packet was sent last
} socket_counters_t;

// The sockets stay the caller's: `fd` does not block; `wake_fd` is an eventfd, which ends a wait. NULL without memory.
socket_transport_t *socket_transport_new(int fd, int wake_fd);
void socket_transport_free(socket_transport_t *);

// Carry datagrams of this size from now on; with `frames`, inside frames of one more size, which is copied.
// Returns 0 or -errno.
int socket_transport_open(socket_transport_t *, uint32_t datagram_bytes, const frames_t *frames);

transport_t *socket_transport_base(socket_transport_t *);
const socket_counters_t *socket_transport_counters(const socket_transport_t *);
bool socket_transport_cuts(const socket_transport_t *);  // whether UDP_SEGMENT is in use
bool socket_transport_joins(const socket_transport_t *); // whether UDP_GRO is

#endif
