// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Consecutive packets of one TCP or UDP flow as one super-frame, which the kernel or the receiver cuts again (TSO, USO).
// Packets are joined only if the cut gives the same bytes, with one exception: packets that must not be fragmented (DF)
// and all have the IPv4 identification 0, by which senders say that they have none (RFC 6864), are numbered by the cut.
#ifndef SOFTSWITCH_JOINING_H
#define SOFTSWITCH_JOINING_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "packets.h"

#define JOINED_HEADER_MAX 122u // Ethernet, two VLAN tags, IPv6, TCP with all options
#define JOINED_PACKETS_MAX 64u

typedef struct {
  struct virtio_net_hdr offload; // with what the kernel is to do
  bool is_udp;
  uint32_t header_bytes; // of each packet; the payload follows
  uint8_t header[JOINED_HEADER_MAX]; // of the super-frame
} joined_t;

// How many packets, from the first on, can leave as one super-frame; 1: none, and *joined is undefined.
uint32_t join_packets(packet_t *const *packets, uint32_t count, joined_t *joined);

#endif
