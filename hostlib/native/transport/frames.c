// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "frames.h"

#include <string.h>

#include "../slots/header.h"

#define IPV4_BYTES 20u
#define UDP_BYTES 8u
#define IPV4_AT ETHERNET_BYTES
#define UDP_AT (ETHERNET_BYTES + IPV4_BYTES)
#define UDP_LENGTH_AT (UDP_AT + 4)
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
  half = 0;
  memcpy(&half, data + i, bytes - i); // a last byte is followed by a zero
  return sum + half;
}

// Sum of the pseudo header, whose length is that of the UDP header.
static uint64_t sum_pseudo_header(const uint8_t *layers) {
  uint8_t protocol_and_length[4] = {0, PROTOCOL_UDP};
  memcpy(protocol_and_length + 2, layers + UDP_LENGTH_AT, 2);
  return sum_words(layers + IPV4_AT + 12, 8) + sum_words(protocol_and_length, 4);
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
  frames.fixed_sum = sum_pseudo_header(frames.layers) + sum_words(frames.layers + UDP_AT, UDP_BYTES);
  return frames;
}

uint32_t frame_bytes(const frames_t *frames) { return LAYERS_BYTES + frames->datagram_bytes; }

void frame_layers(const frames_t *frames, const uint8_t *datagram, uint8_t *layers) {
  memcpy(layers, frames->layers, LAYERS_BYTES);
  uint16_t checksum = (uint16_t)~fold(frames->fixed_sum + sum_words(datagram, frames->datagram_bytes));
  if (checksum == 0) checksum = 0xffff;
  memcpy(layers + UDP_CHECKSUM_AT, &checksum, 2);
}

void joined_layers(const frames_t *frames, uint32_t count, uint8_t *layers) {
  memcpy(layers, frames->layers, LAYERS_BYTES);
  uint8_t *ip = layers + IPV4_AT;
  uint32_t udp_bytes = UDP_BYTES + count * frames->datagram_bytes;
  store16(ip + 2, (uint16_t)(IPV4_BYTES + udp_bytes));
  store16(ip + 10, 0);
  uint16_t checksum = (uint16_t)~fold(sum_words(ip, IPV4_BYTES));
  memcpy(ip + 10, &checksum, 2);
  store16(layers + UDP_LENGTH_AT, (uint16_t)udp_bytes);
  uint16_t sum = fold(sum_pseudo_header(layers));
  memcpy(layers + UDP_CHECKSUM_AT, &sum, 2);
}

static bool same(const uint8_t *left, const uint8_t *right, uint32_t at, uint32_t bytes) {
  return memcmp(left + at, right + at, bytes) == 0;
}

// Ethertype, version and header length, no fragment, protocol, addresses and ports.
static bool is_ours(const uint8_t *frame, const uint8_t *expected) {
  return same(frame, expected, 12, 3) && (load16(frame + IPV4_AT + 6) & 0x3fff) == 0 &&
         same(frame, expected, IPV4_AT + 9, 1) && same(frame, expected, IPV4_AT + 12, 12);
}

static bool is_intact(const uint8_t *frame, uint32_t datagram_bytes, uint64_t fixed_sum) {
  uint16_t stated;
  memcpy(&stated, frame + UDP_CHECKSUM_AT, 2);
  return stated == 0 || fold(fixed_sum + sum_words(frame + LAYERS_BYTES, datagram_bytes)) == 0xffff;
}

frame_check_t frame_check(const frames_t *frames, const uint8_t *frame, uint32_t bytes, bool is_verified) {
  if (bytes < LAYERS_BYTES || !is_ours(frame, frames->expected) || !same(frame, frames->expected, IPV4_AT + 2, 2) ||
      !same(frame, frames->expected, UDP_LENGTH_AT, 2)) {
    return FRAME_OTHER;
  }
  if (bytes != frame_bytes(frames)) return FRAME_LENGTH;
  uint16_t stated;
  memcpy(&stated, frame + UDP_CHECKSUM_AT, 2);
  bool is_good = is_verified || is_intact(frame, frames->datagram_bytes, frames->fixed_sum + stated);
  return is_good ? FRAME_GOOD : FRAME_CHECKSUM;
}

frame_check_t joined_check(const frames_t *frames, const uint8_t *frame, uint32_t bytes, bool is_verified) {
  if (bytes < LAYERS_BYTES || !is_ours(frame, frames->expected)) return FRAME_OTHER;
  if (load16(frame + IPV4_AT + 2) != bytes - ETHERNET_BYTES || load16(frame + UDP_LENGTH_AT) != bytes - UDP_AT) {
    return FRAME_LENGTH;
  }
  uint64_t sum = sum_pseudo_header(frame) + sum_words(frame + UDP_AT, UDP_BYTES);
  return is_verified || is_intact(frame, bytes - LAYERS_BYTES, sum) ? FRAME_GOOD : FRAME_CHECKSUM;
}

void frames_wrap_rows(const frames_t *frames, const uint8_t *datagrams, uint32_t count, uint8_t *out) {
  for (uint32_t i = 0; i < count; i++, datagrams += frames->datagram_bytes, out += frame_bytes(frames)) {
    frame_layers(frames, datagrams, out);
    memcpy(out + LAYERS_BYTES, datagrams, frames->datagram_bytes);
  }
}

uint32_t frames_unwrap_rows(const frames_t *frames, const uint8_t *rows, uint32_t row_bytes, const int32_t *lengths,
                            uint32_t count, uint8_t *datagrams, uint64_t *counts) {
  uint32_t good = 0;
  for (uint32_t i = 0; i < count; i++, rows += row_bytes) {
    frame_check_t check = frame_check(frames, rows, (uint32_t)lengths[i], false);
    counts[check]++;
    if (check != FRAME_GOOD) continue;
    memcpy(datagrams + (size_t)good++ * frames->datagram_bytes, rows + LAYERS_BYTES, frames->datagram_bytes);
  }
  return good;
}
