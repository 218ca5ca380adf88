// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a packet socket exchanges with the kernel: a virtio_net_hdr, which says what is left to do, and a frame. A frame of
// several datagrams is cut by the kernel, by the network card, or by its receiver.
#ifndef SWITCHFOLD_SUPER_FRAMES_H
#define SWITCHFOLD_SUPER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"

#define OFFLOAD_BYTES 10u // of the virtio_net_hdr
#define HEAD_BYTES (OFFLOAD_BYTES + LAYERS_BYTES)

// Write the HEAD_BYTES in front of a datagram whose frame is complete.
void whole_head(const frames_t *, const uint8_t *datagram, uint8_t *head);

// Write those in front of `count` datagrams, which leave the checksum and the cuts to others.
void super_head(const frames_t *, uint32_t count, uint8_t *head);

typedef struct {
  const uint8_t *datagrams;
  uint32_t bytes, datagram_bytes; // all of them; each, but for a shorter last one
  bool is_unfinished;             // its sender left the checksum to others
} super_frame_t;

// Read what has come: virtio_net_hdr and frame. `out` is set if the result is FRAME_GOOD.
frame_check_t super_frame_read(const frames_t *, const uint8_t *message, uint32_t bytes, super_frame_t *out);

#endif
