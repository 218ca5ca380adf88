// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a sender left to its network card: checksums, and the segmentation of TCP and UDP (TSO, USO, GRO's results).
#ifndef SOFTSWITCH_OFFLOAD_H
#define SOFTSWITCH_OFFLOAD_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

// Write the checksum that `offload` asks for, over the frame from its csum_start. Changes nothing if it asks for none, or
// for one that is not a sum of 16-bit words (SCTP).
void offload_checksum(const struct virtio_net_hdr *offload, uint8_t *frame, uint32_t bytes);

typedef struct {
  const uint8_t *frame; // not owned; must stay until the last segment is cut
  uint32_t bytes, network, transport, header_bytes, segment_bytes;
  uint32_t next; // offset of the payload not cut yet; == bytes: all is cut
  bool is_ipv6, is_udp;
} segments_t;

// Whether the frame can be cut as `offload` says: TCP or UDP directly in IPv4 or IPv6, no tunnel.
bool segments_begin(segments_t *, const struct virtio_net_hdr *offload, const uint8_t *frame, uint32_t bytes);

// Cut the next segment into `out`, with all checksums. Returns its length; 0: it is longer than `capacity` and is skipped.
uint32_t segments_cut(segments_t *, uint8_t *out, uint32_t capacity);

#endif
