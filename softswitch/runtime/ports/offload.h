// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a sender left to its network card: checksums, and the segmentation of TCP and UDP (TSO, USO, GRO's results).
#ifndef SOFTSWITCH_OFFLOAD_H
#define SOFTSWITCH_OFFLOAD_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif
#define SEGMENT_HEADER_MAX 512u // longer ones, with many extension headers of IPv6, are not cut

// Write the checksum that `offload` asks for, over the frame from its csum_start. Changes nothing if it asks for none, or
// for one that is not a sum of 16-bit words (SCTP).
void offload_checksum(const struct virtio_net_hdr *offload, uint8_t *frame, uint32_t bytes);

// A super-frame that is cut in place: the headers of a segment go over the end of the segment before it.
typedef struct {
  uint8_t *frame; // not owned; must stay until the last segment is cut
  uint32_t bytes, network, transport, header_bytes, segment_bytes;
  uint32_t next; // offset of the payload not cut yet; == bytes: all is cut
  bool is_ipv6, is_udp;
  uint8_t header[SEGMENT_HEADER_MAX];
} segments_t;

// Whether the frame can be cut as `offload` says: TCP or UDP directly in IPv4 or IPv6, no tunnel.
bool segments_begin(segments_t *, const struct virtio_net_hdr *offload, uint8_t *frame, uint32_t bytes);

// Cut the next segment, with all checksums. It is valid until the next call, and so are 4 bytes in front of it (of the
// first segment: if the frame has them). Returns its length; *segment is where it begins.
uint32_t segments_cut(segments_t *, uint8_t **segment);

#endif
