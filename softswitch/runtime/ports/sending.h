// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets to a socket, many in one call of the kernel. A message carries one packet or, where the port can join some, a
// super-frame. A super-frame that the kernel refuses goes packet by packet, so that each counts as what becomes of it.
#ifndef SOFTSWITCH_SENDING_H
#define SOFTSWITCH_SENDING_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "joining.h"
#include "ports.h"

typedef struct {
  struct msghdr *header; // empty
  struct iovec *vectors; // room for 2 more than packets
  joined_t *joined;      // scratch
  char *control;         // scratch of SEND_CONTROL_BYTES, aligned
} message_t;

#define SEND_CONTROL_BYTES 64u

typedef struct {
  // Fill a message with as many packets, from the first on, as the port can join, but at most count.
  uint32_t (*fill)(port_t *, packet_t *const *packets, uint32_t count, message_t *);
  void (*refused)(port_t *, const message_t *, int error); // the kernel did not take a super-frame
  statistic_t (*cause)(int error);                        // why a packet was lost
} sending_ops_t;

// Send without blocking, and count what became of each packet.
void send_packets(port_t *, int fd, const sending_ops_t *, packet_t *const *packets, uint32_t count);

#endif
