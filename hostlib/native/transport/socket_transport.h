// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A transport over a socket: UDP to the switch, whole frames inside UDP to one of its ports, or whole frames on a packet
// socket (AF_PACKET). UDP also goes to several switches, each of which is the root of trees: over a socket each.
//
// The kernel moves many datagrams at once where it can. It cuts a UDP message into datagrams (UDP_SEGMENT) and joins those
// that come (UDP_GRO). A packet socket sends and takes super-frames (PACKET_VNET_HDR).
#ifndef SWITCHFOLD_SOCKET_TRANSPORT_H
#define SWITCHFOLD_SOCKET_TRANSPORT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "transport.h"

#define MAX_SOCKETS 32u

typedef struct socket_transport socket_transport_t;

// What was held up or lost here, by cause.
typedef struct {
  uint64_t network_error;    // the kernel told of an earlier packet: ICMP, no route
  uint64_t path_mtu_ignored; // of these: "too long for the path"
  uint64_t send_busy;        // sends that the kernel did not take in time
  uint64_t length;           // datagrams or frames of a wrong size
  uint64_t other_traffic;    // frames that are not from the switch, datagrams that are not from that of their tree
  uint64_t checksum;         // frames with a wrong one
  uint64_t too_long_in_a_row; // refusals of the size by the kernel, since a packet was sent last
} socket_counters_t;

// The sockets stay the caller's: `fd` does not block; `wake_fd` is an eventfd, which ends a wait. NULL without memory.
socket_transport_t *socket_transport_new(int fd, int wake_fd);
void socket_transport_free(socket_transport_t *);

// Carry datagrams of this size from now on, over UDP; with `frames`, inside frames of one more size, which is copied.
void socket_transport_open(socket_transport_t *, uint32_t datagram_bytes, const frames_t *frames);

// Have these sockets, of one local port, lead to several switches, and each of these trees to the switch of
// `sockets[i]`. Datagrams of all other trees take the first socket. To be called before `socket_transport_open`; one
// socket and no tree: as at the beginning. Returns false if there are more than MAX_SOCKETS.
bool socket_transport_route(socket_transport_t *, const int *fds, uint32_t num_sockets, const uint16_t *trees,
                            const uint8_t *sockets, uint32_t num_trees);

// When a packet socket sends super-frames.
typedef enum {
  JOIN_NEVER,
  JOIN_LIKE_PEER, // after the switch has sent a frame whose checksum it left to others, as it then finishes ours, too
  JOIN_ALWAYS,    // the interface or the kernel cuts them
} join_t;

typedef struct {
  char interface[IFNAMSIZ];
  bool has_offload_header; // PACKET_VNET_HDR is on
  uint32_t join;           // a join_t; JOIN_NEVER without the header
} packet_link_t;

// Carry frames over a packet socket, which is bound to the link's interface. Frames and link are copied.
void socket_transport_open_packets(socket_transport_t *, const frames_t *frames, const packet_link_t *link);

// Forget the sockets: calls fail with EBADF from now on (any thread).
void socket_transport_close(socket_transport_t *);

transport_t *socket_transport_base(socket_transport_t *);
const socket_counters_t *socket_transport_counters(const socket_transport_t *);
uint32_t socket_transport_segments(const socket_transport_t *);      // most datagrams in a message that is sent
uint32_t socket_transport_most_segments(const socket_transport_t *); // the same if the switch takes super-frames
bool socket_transport_joins(const socket_transport_t *);             // whether received messages may hold several

#endif
