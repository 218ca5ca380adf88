// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "socket_transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../slots/header.h"
#include "socket_state.h"

#define MAX_PAYLOAD 65507u // of UDP, in a message that the kernel cuts
#define MAX_SEGMENTS 64u   // in one message: the kernel's own limit

bool socket_is_busy(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

// What the kernel makes of ICMP messages about a connected socket, and of a link that is down. Each fails one call, and
// anybody who knows or guesses the ports can forge the former; the retransmission timer deals with them.
bool socket_is_soft(int error) {
  switch (error) {
  case ECONNREFUSED:
  case EHOSTDOWN:
  case EHOSTUNREACH:
  case EMSGSIZE:
  case ENETUNREACH:
  case ENONET:
  case ENOPROTOOPT:
  case EOPNOTSUPP:
  case EPROTO:
  case ENETDOWN:
  case EINTR: return true;
  default: return false;
  }
}

void socket_count_soft(socket_transport_t *transport, int error) {
  transport->counters.network_error++;
  transport->counters.path_mtu_ignored += error == EMSGSIZE;
}

socket_transport_t *socket_transport_new(int fd, int wake_fd) {
  socket_transport_t *transport = calloc(1, sizeof *transport);
  if (!transport) return NULL;
  transport->base = (transport_t){socket_send, socket_receive, socket_pause};
  transport->fds[0] = fd;
  transport->num_sockets = 1;
  transport->wake_fd = wake_fd;
  transport->segments = transport->most_segments = 1;
  // Only what is written to takes memory.
  transport->in = malloc((size_t)MAX_MESSAGES * MESSAGE_BYTES);
  transport->kept = malloc((size_t)MAX_DATAGRAMS * MAX_PAYLOAD);
  if (transport->in && transport->kept) {
    for (uint32_t i = 0; i < MAX_MESSAGES; i++) {
      transport->vectors[i] = (struct iovec){transport->in + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES};
      transport->messages[i].msg_hdr = (struct msghdr){.msg_iov = &transport->vectors[i],
                                                       .msg_iovlen = 1,
                                                       .msg_control = transport->control[i],
                                                       .msg_controllen = CONTROL_BYTES};
    }
    return transport;
  }
  socket_transport_free(transport);
  return NULL;
}

void socket_transport_free(socket_transport_t *transport) {
  free(transport->kept);
  free(transport->in);
  free(transport);
}

void socket_transport_close(socket_transport_t *transport) {
  for (uint32_t i = 0; i < MAX_SOCKETS; i++) transport->fds[i] = -1;
  transport->wake_fd = -1;
}

bool socket_transport_route(socket_transport_t *transport, const int *fds, uint32_t num_sockets, const uint16_t *trees,
                            const uint8_t *sockets, uint32_t num_trees) {
  if (num_sockets > MAX_SOCKETS) return false;
  for (uint32_t i = 0; i < num_sockets; i++) transport->fds[i] = fds[i];
  transport->num_sockets = num_sockets;
  transport->num_messages = transport->message = transport->rest_bytes = transport->first_socket = 0;
  transport->num_kept = 0; // they are of a view that is over
  memset(transport->socket_of, 0, sizeof transport->socket_of);
  for (uint32_t i = 0; i < num_trees; i++) transport->socket_of[trees[i]] = sockets[i];
  return true;
}

uint32_t socket_of(const socket_transport_t *transport, const uint8_t *datagram) {
  return transport->socket_of[load16(datagram + TREE_AT)];
}

static uint32_t segments_of(uint32_t packet_bytes) {
  uint32_t segments = MAX_PAYLOAD / packet_bytes;
  return segments < MAX_SEGMENTS ? segments : MAX_SEGMENTS;
}

void socket_transport_open(socket_transport_t *transport, uint32_t datagram_bytes, const frames_t *frames) {
  int on = 1;
  transport->num_kept = 0;
  transport->datagram_bytes = datagram_bytes;
  transport->carried = frames ? FRAMES_IN_DATAGRAMS : DATAGRAMS;
  if (frames) transport->frames = *frames;
  uint32_t packet_bytes = frames ? frame_bytes(frames) : datagram_bytes;
  int size = (int)packet_bytes;
  bool is_cut = true;
  transport->joins = true;
  for (uint32_t i = 0; i < transport->num_sockets; i++) {
    is_cut &= setsockopt(transport->fds[i], SOL_UDP, UDP_SEGMENT, &size, sizeof size) == 0;
    transport->joins &= setsockopt(transport->fds[i], SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  }
  transport->segments = transport->most_segments = is_cut ? segments_of(packet_bytes) : 1;
}

void socket_transport_open_packets(socket_transport_t *transport, const frames_t *frames, const packet_link_t *link) {
  transport->frames = *frames;
  transport->link = *link;
  transport->datagram_bytes = frames->datagram_bytes;
  transport->carried = PACKETS;
  transport->joins = link->has_offload_header;
  transport->most_segments = link->join == JOIN_NEVER ? 1 : segments_of(frames->datagram_bytes);
  transport->segments = link->join == JOIN_ALWAYS ? transport->most_segments : 1;
}

transport_t *socket_transport_base(socket_transport_t *transport) { return &transport->base; }

const socket_counters_t *socket_transport_counters(const socket_transport_t *transport) { return &transport->counters; }

uint32_t socket_transport_segments(const socket_transport_t *transport) { return transport->segments; }

uint32_t socket_transport_most_segments(const socket_transport_t *transport) { return transport->most_segments; }

bool socket_transport_joins(const socket_transport_t *transport) { return transport->joins; }
