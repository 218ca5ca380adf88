// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole Ethernet frames around datagrams: Ethernet, IPv4 without options, UDP.
#ifndef SWITCHFOLD_FRAMES_H
#define SWITCHFOLD_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define ETHERNET_BYTES 14u
#define LAYERS_BYTES 42u // in front of the datagram: Ethernet, IPv4 without options, UDP

typedef struct {
  uint8_t mac[6];
  uint8_t address[4];
  uint16_t udp_port;
} endpoint_t;

typedef struct {
  uint32_t datagram_bytes;
  uint8_t layers[LAYERS_BYTES];   // of a frame to the switch, UDP checksum 0
  uint8_t expected[LAYERS_BYTES]; // of one from it
  uint64_t fixed_sum;             // of pseudo header and UDP header; the same in both directions
} frames_t;

typedef enum { FRAME_GOOD, FRAME_OTHER, FRAME_LENGTH, FRAME_CHECKSUM } frame_check_t;

frames_t frames_new(const endpoint_t *local, const endpoint_t *remote, uint32_t datagram_bytes);

uint32_t frame_bytes(const frames_t *);

// Write the layers in front of a datagram, checksums included.
void frame_layers(const frames_t *, const uint8_t *datagram, uint8_t *layers);

// Write the layers in front of `count` datagrams in one frame. The UDP checksum is the sum of the pseudo header alone: who
// cuts the frame finishes it.
void joined_layers(const frames_t *, uint32_t count, uint8_t *layers);

// Whether a frame of `bytes` carries a datagram from the switch, which follows its layers. `is_verified`: the kernel
// answers for the checksum.
frame_check_t frame_check(const frames_t *, const uint8_t *frame, uint32_t bytes, bool is_verified);

// The same for a frame that may carry several datagrams, of any size.
frame_check_t joined_check(const frames_t *, const uint8_t *frame, uint32_t bytes, bool is_verified);

// Write frames around datagrams. Rows lie without gaps.
void frames_wrap_rows(const frames_t *, const uint8_t *datagrams, uint32_t count, uint8_t *frames);

// Copy the datagrams of good frames. Returns how many; adds one to `counts` for each frame, by its check.
uint32_t frames_unwrap_rows(const frames_t *, const uint8_t *frames, uint32_t row_bytes, const int32_t *lengths,
                            uint32_t count, uint8_t *datagrams, uint64_t *counts);

#endif
