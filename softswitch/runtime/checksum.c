// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static uint16_t load16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

// One's complement sum of big-endian 16-bit words, not folded. Summed in the machine's order, which commutes with swapping.
static uint64_t sum_words(const uint8_t *data, uint32_t bytes) {
  uint64_t sum = 0;
  for (; bytes >= 4; data += 4, bytes -= 4) {
    uint32_t word;
    memcpy(&word, data, 4);
    sum += word;
  }
  uint8_t rest[4] = {0};
  memcpy(rest, data, bytes);
  uint32_t word;
  memcpy(&word, rest, 4);
  return sum + word;
}

static uint16_t fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)sum;
}

static void complete_transport(uint8_t *segment, uint32_t bytes, uint8_t protocol, const uint8_t *addresses,
                               uint32_t addresses_bytes) {
  uint32_t at = protocol == IPPROTO_UDP ? 6 : 16;
  if (bytes < at + 2 || (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP)) return;
  segment[at] = segment[at + 1] = 0;
  uint64_t sum = sum_words(addresses, addresses_bytes) + sum_words(segment, bytes);
  sum += htons((uint16_t)protocol);
  sum += htons((uint16_t)bytes);
  uint16_t checksum = (uint16_t)~fold(sum);
  if (checksum == 0 && protocol == IPPROTO_UDP) checksum = 0xffff;
  memcpy(segment + at, &checksum, 2);
}

void checksum_complete(uint8_t *frame, uint32_t bytes) {
  uint32_t at = 12;
  for (int tags = 0; tags < 2 && bytes >= at + 6; tags++) {
    uint16_t type = load16(frame + at);
    if (type != 0x8100 && type != 0x88a8) break;
    at += 4;
  }
  if (bytes < at + 2) return;
  uint16_t type = load16(frame + at);
  uint8_t *ip = frame + at + 2;
  uint32_t rest = bytes - at - 2;
  if (type == 0x0800 && rest >= 20) {
    uint32_t header = (ip[0] & 15u) * 4u, total = load16(ip + 2);
    if (header < 20 || total < header || total > rest || (load16(ip + 6) & 0x3fff)) return;
    complete_transport(ip + header, total - header, ip[9], ip + 12, 8);
  } else if (type == 0x86dd && rest >= 40) {
    uint32_t payload = load16(ip + 4);
    if (payload > rest - 40) return;
    complete_transport(ip + 40, payload, ip[6], ip + 8, 32);
  }
}
