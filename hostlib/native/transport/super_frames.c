// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "super_frames.h"

#include <linux/virtio_net.h>
#include <string.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define UDP_AT 34u
#define CHECKSUM_OFFSET 6u

_Static_assert(sizeof(struct virtio_net_hdr) == OFFLOAD_BYTES, "size of the kernel's header");

void whole_head(const frames_t *frames, const uint8_t *datagram, uint8_t *head) {
  memset(head, 0, OFFLOAD_BYTES);
  frame_layers(frames, datagram, head + OFFLOAD_BYTES);
}

void super_head(const frames_t *frames, uint32_t count, uint8_t *head) {
  // Its numbers have the machine's byte order.
  struct virtio_net_hdr offload = {
      .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
      .hdr_len = LAYERS_BYTES,
      .csum_start = UDP_AT,
      .csum_offset = CHECKSUM_OFFSET,
  };
  if (count > 1) {
    offload.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
    offload.gso_size = (uint16_t)frames->datagram_bytes;
  }
  memcpy(head, &offload, OFFLOAD_BYTES);
  joined_layers(frames, count, head + OFFLOAD_BYTES);
}

frame_check_t super_frame_read(const frames_t *frames, const uint8_t *message, uint32_t bytes, super_frame_t *out) {
  struct virtio_net_hdr offload;
  if (bytes < OFFLOAD_BYTES) return FRAME_OTHER;
  memcpy(&offload, message, OFFLOAD_BYTES);
  const uint8_t *frame = message + OFFLOAD_BYTES;
  bytes -= OFFLOAD_BYTES;
  bool is_unfinished = offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
  bool is_verified = is_unfinished || offload.flags & VIRTIO_NET_HDR_F_DATA_VALID;
  frame_check_t check;
  switch (offload.gso_type) {
  case VIRTIO_NET_HDR_GSO_NONE:
    check = frame_check(frames, frame, bytes, is_verified);
    offload.gso_size = (uint16_t)frames->datagram_bytes;
    break;
  case VIRTIO_NET_HDR_GSO_UDP_L4: check = joined_check(frames, frame, bytes, is_verified); break;
  default: return FRAME_OTHER; // TCP, or fragments
  }
  if (check == FRAME_GOOD && offload.gso_size == 0) return FRAME_LENGTH;
  *out = (super_frame_t){frame + LAYERS_BYTES, bytes - LAYERS_BYTES, offload.gso_size, is_unfinished};
  return check;
}
