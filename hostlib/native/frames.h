// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole Ethernet frames around datagrams: Ethernet, IPv4 without options, UDP.
#ifndef SWITCHFOLD_FRAMES_H
#define SWITCHFOLD_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define LAYERS_BYTES 42u // in front of the datagram

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

// Write the frame around a datagram.
void frame_wrap(const frames_t *, const uint8_t *datagram, uint8_t *frame);

// Whether a frame of `bytes` carries a datagram from the switch, which follows its layers. `is_verified`: the kernel
// answers for the checksum.
frame_check_t frame_check(const frames_t *, const uint8_t *frame, uint32_t bytes, bool is_verified);

#endif
