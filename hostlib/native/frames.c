// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "frames.h"

#include <string.h>

#include "header.h"

#define ETHERNET_BYTES 14u
#define IPV4_BYTES 20u
#define UDP_BYTES 8u
#define IPV4_AT ETHERNET_BYTES
#define UDP_AT (ETHERNET_BYTES + IPV4_BYTES)
#define UDP_CHECKSUM_AT (UDP_AT + 6)
#define ETHERTYPE_IPV4 0x0800
#define PROTOCOL_UDP 17
#define TTL 64
#define ECN_CAPABLE 2 // ECT(0) of RFC 3168: switches may mark these packets
#define DONT_FRAGMENT 0x4000

static uint16_t fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)sum;
}

// Sum of 16-bit words in the machine's order, which commutes with swapping: a one's complement sum has no byte order.
static uint64_t sum_words(const uint8_t *data, uint32_t bytes) {
  uint64_t sum = 0;
  uint32_t i = 0, word;
  uint16_t half;
  for (; i + 4 <= bytes; i += 4) {
    memcpy(&word, data + i, 4);
    sum += word;
  }
  for (; i + 2 <= bytes; i += 2) {
    memcpy(&half, data + i, 2);
    sum += half;
  }
  return sum;
}

static void write_layers(uint8_t *at, const endpoint_t *source, const endpoint_t *destination, uint32_t datagram_bytes) {
  memset(at, 0, LAYERS_BYTES);
  memcpy(at, destination->mac, 6);
  memcpy(at + 6, source->mac, 6);
  store16(at + 12, ETHERTYPE_IPV4);
  uint8_t *ip = at + IPV4_AT;
  ip[0] = 0x45;
  ip[1] = ECN_CAPABLE;
  store16(ip + 2, (uint16_t)(IPV4_BYTES + UDP_BYTES + datagram_bytes));
  store16(ip + 6, DONT_FRAGMENT);
  ip[8] = TTL;
  ip[9] = PROTOCOL_UDP;
  memcpy(ip + 12, source->address, 4);
  memcpy(ip + 16, destination->address, 4);
  uint16_t checksum = (uint16_t)~fold(sum_words(ip, IPV4_BYTES));
  memcpy(ip + 10, &checksum, 2);
  uint8_t *udp = at + UDP_AT;
  store16(udp, source->udp_port);
  store16(udp + 2, destination->udp_port);
  store16(udp + 4, (uint16_t)(UDP_BYTES + datagram_bytes));
}

frames_t frames_new(const endpoint_t *local, const endpoint_t *remote, uint32_t datagram_bytes) {
  frames_t frames = {.datagram_bytes = datagram_bytes};
  write_layers(frames.layers, local, remote, datagram_bytes);
  write_layers(frames.expected, remote, local, datagram_bytes);
  uint8_t protocol_and_length[4] = {0, PROTOCOL_UDP};
  memcpy(protocol_and_length + 2, frames.layers + UDP_AT + 4, 2);
  frames.fixed_sum = sum_words(frames.layers + IPV4_AT + 12, 8) + sum_words(protocol_and_length, 4) +
                     sum_words(frames.layers + UDP_AT, UDP_BYTES);
  return frames;
}

uint32_t frame_bytes(const frames_t *frames) { return LAYERS_BYTES + frames->datagram_bytes; }

void frame_wrap(const frames_t *frames, const uint8_t *datagram, uint8_t *frame) {
  memcpy(frame, frames->layers, LAYERS_BYTES);
  memcpy(frame + LAYERS_BYTES, datagram, frames->datagram_bytes);
  uint16_t checksum = (uint16_t)~fold(frames->fixed_sum + sum_words(datagram, frames->datagram_bytes));
  if (checksum == 0) checksum = 0xffff;
  memcpy(frame + UDP_CHECKSUM_AT, &checksum, 2);
}

static bool same(const uint8_t *left, const uint8_t *right, uint32_t at, uint32_t bytes) {
  return memcmp(left + at, right + at, bytes) == 0;
}

// Ethertype, version and header length, total length, no fragment, protocol, addresses, ports and length.
static bool is_ours(const uint8_t *frame, const uint8_t *expected) {
  return same(frame, expected, 12, 3) && same(frame, expected, IPV4_AT + 2, 2) &&
         (load16(frame + IPV4_AT + 6) & 0x3fff) == 0 && same(frame, expected, IPV4_AT + 9, 1) &&
         same(frame, expected, IPV4_AT + 12, 14);
}

frame_check_t frame_check(const frames_t *frames, const uint8_t *frame, uint32_t bytes, bool is_verified) {
  if (bytes < LAYERS_BYTES || !is_ours(frame, frames->expected)) return FRAME_OTHER;
  if (bytes != frame_bytes(frames)) return FRAME_LENGTH;
  uint16_t stated;
  memcpy(&stated, frame + UDP_CHECKSUM_AT, 2);
  if (is_verified || stated == 0) return FRAME_GOOD;
  uint64_t sum = frames->fixed_sum + stated + sum_words(frame + LAYERS_BYTES, frames->datagram_bytes);
  return fold(sum) == 0xffff ? FRAME_GOOD : FRAME_CHECKSUM;
}
