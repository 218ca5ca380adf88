// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ethernet, IPv4, IPv6, TCP and UDP headers, as far as segmentation needs them.
#ifndef SOFTSWITCH_LAYERS_H
#define SOFTSWITCH_LAYERS_H

#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdint.h>

#define VLAN_TAG_BYTES 4u
#define VLAN_TAGS_MAX 2
#define IPV4_BYTES 20u
#define IPV6_BYTES 40u
#define IP_BYTES_MAX 65535u
#define TCP_BYTES 20u
#define TCP_BYTES_MAX 60u
#define UDP_BYTES 8u
#define TCP_CHECKSUM_AT 16u
#define UDP_CHECKSUM_AT 6u
#define TCP_FLAGS_AT 13u
#define TCP_FIN_PSH 0x09u
#define TCP_ACK 0x10u
#define TCP_ECE 0x40u
#define TCP_CWR 0x80u

static inline uint16_t load16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline uint32_t load32(const uint8_t *at) { return (uint32_t)load16(at) << 16 | load16(at + 2); }

static inline void store16(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
}

// Offset of the ethertype behind up to two VLAN tags; the network header follows it. bytes: 14 or more.
static inline uint32_t ethertype_offset(const uint8_t *frame, uint32_t bytes) {
  uint32_t type_at = 2 * ETH_ALEN;
  for (int tags = 0; tags < VLAN_TAGS_MAX && type_at + 2 + VLAN_TAG_BYTES <= bytes; tags++) {
    if (load16(frame + type_at) != ETHERTYPE_VLAN && load16(frame + type_at) != 0x88a8) break;
    type_at += VLAN_TAG_BYTES;
  }
  return type_at;
}

#endif
