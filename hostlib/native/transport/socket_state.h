// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a socket transport, which its sending and its receiving half share.
#ifndef SWITCHFOLD_SOCKET_STATE_H
#define SWITCHFOLD_SOCKET_STATE_H

#include <linux/udp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "socket_transport.h"
#include "super_frames.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#define MAX_DATAGRAMS 256u // sent in one call
#define MAX_MESSAGES 256u  // received in one call: with fewer than wait, a pause between calls would limit the rate
#define NUM_TREE_IDS 65536u
#define CONTROL_BYTES CMSG_SPACE(sizeof(int))
// Room for a received message. Not a power of two, or all messages would lie in the same few lines of the cache.
#define MESSAGE_BYTES (65536u + 2112u)

typedef enum { DATAGRAMS, FRAMES_IN_DATAGRAMS, PACKETS } carried_t;

struct socket_transport {
  transport_t base;
  _Atomic int fds[MAX_SOCKETS], wake_fd; // -1: closed
  uint32_t num_sockets;
  bool has_answered[MAX_SOCKETS]; // since the last send: what was sent has reached the switch
  uint8_t socket_of[NUM_TREE_IDS]; // which of them leads to a tree's switch; the first one to all that are not routed
  carried_t carried;
  uint32_t datagram_bytes;
  frames_t frames;
  // Datagrams in one message that is sent: at most what kernel and peer take, 1 if they take no more.
  uint32_t segments, most_segments;
  bool joins;         // received messages may hold several datagrams
  packet_link_t link; // of packets
  socket_counters_t counters;
  // Messages to send: a head for each message or each frame, and the datagrams where they lie.
  struct mmsghdr out[MAX_DATAGRAMS];
  struct iovec out_vectors[2 * MAX_DATAGRAMS];
  uint8_t heads[MAX_DATAGRAMS][HEAD_BYTES];
  // Datagrams that busy sockets have not taken, of `datagram_bytes` each, if there are several sockets.
  uint8_t *kept;
  uint32_t num_kept;
  // Messages received last, and how far they were cut.
  uint8_t *in;
  struct mmsghdr messages[MAX_MESSAGES];
  struct iovec vectors[MAX_MESSAGES];
  uint8_t control[MAX_MESSAGES][CONTROL_BYTES] __attribute__((aligned(8)));
  uint8_t message_sockets[MAX_MESSAGES]; // where each came from
  uint32_t first_socket;                 // the next to be asked
  uint32_t num_messages, message;
  const uint8_t *rest; // of the message
  uint32_t rest_bytes, part_bytes;
};

uint32_t socket_of(const socket_transport_t *, const uint8_t *datagram); // the one to the switch of its tree

bool socket_is_busy(int error); // there is no room, or nothing to receive
bool socket_is_soft(int error); // it fails one call, and retransmission deals with it
void socket_count_soft(socket_transport_t *, int error);

int socket_send_kept(socket_transport_t *); // as far as sockets have room; 0 or -errno

// The calls of transport_t.
int socket_send(transport_t *, uint8_t *const *datagrams, uint32_t count);
int socket_receive(transport_t *, const uint8_t **datagrams, uint32_t capacity, double wait_s);
void socket_pause(transport_t *, double pause_s);

#endif
