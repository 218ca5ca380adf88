// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "joining.h"

#include "internet_checksum.h"
#include "layers.h"
#include "offload.h"

#define IPV4_DONT_FRAGMENT 0x4000u
#define CHECKSUM_GOOD 0xffffu // of a sum that includes the checksum

typedef struct {
  uint32_t network, transport, header_bytes; // offsets of headers and of the payload
  bool is_ipv6, is_udp;
} layers_t;

// TCP's checksum 0xffff is 0 as well, and what the cut writes is one of the two.
static bool has_certain_checksum(const uint8_t *transport, const layers_t *layers) {
  if (layers->is_udp) return load16(transport + UDP_CHECKSUM_AT) != 0; // 0: the sender computed none
  uint16_t checksum = load16(transport + TCP_CHECKSUM_AT);
  return checksum != 0 && checksum != 0xffff;
}

// The header checksum 0xffff is good where 0 is, which the cut would write.
static bool is_good_ipv4(const uint8_t *ip, uint32_t bytes) {
  return load16(ip + 2) == bytes && load16(ip + 10) != 0xffff && ones_sum(ip, IPV4_BYTES) == CHECKSUM_GOOD;
}

// Whether a packet may be the first of a super-frame, all but its transport checksum.
static bool read_layers(const packet_t *packet, layers_t *layers) {
  const uint8_t *data = packet->data;
  if (packet->bytes < ETH_HLEN + IPV4_BYTES + UDP_BYTES) return false;
  uint32_t type_at = ethertype_offset(data, packet->bytes);
  layers->network = type_at + 2;
  layers->is_ipv6 = load16(data + type_at) == ETHERTYPE_IPV6;
  if (!layers->is_ipv6 && load16(data + type_at) != ETHERTYPE_IP) return false;
  layers->transport = layers->network + (layers->is_ipv6 ? IPV6_BYTES : IPV4_BYTES);
  if (packet->bytes < layers->transport + TCP_BYTES) return false; // a shorter UDP datagram is not worth joining

  const uint8_t *ip = data + layers->network, *transport = data + layers->transport;
  uint32_t ip_bytes = packet->bytes - layers->network;
  uint8_t protocol = layers->is_ipv6 ? ip[6] : ip[9];
  if (layers->is_ipv6) {
    if (ip[0] >> 4 != 6 || load16(ip + 4) != ip_bytes - IPV6_BYTES) return false;
  } else {
    bool is_fragment = load16(ip + 6) & (uint16_t)~IPV4_DONT_FRAGMENT;
    if (ip[0] != 0x45 || is_fragment || !is_good_ipv4(ip, ip_bytes)) return false;
  }
  layers->is_udp = protocol == IPPROTO_UDP;
  if (layers->is_udp) {
    layers->header_bytes = layers->transport + UDP_BYTES;
    if (load16(transport + 4) != packet->bytes - layers->transport) return false;
  } else {
    uint32_t tcp_bytes = (transport[12] >> 4) * 4u;
    layers->header_bytes = layers->transport + tcp_bytes;
    bool is_plain = !(transport[12] & 15u) && !(transport[TCP_FLAGS_AT] & (uint8_t)~(TCP_ACK | TCP_ECE));
    if (protocol != IPPROTO_TCP || tcp_bytes < TCP_BYTES || !is_plain) return false;
  }
  return packet->bytes > layers->header_bytes && has_certain_checksum(transport, layers);
}

static bool has_good_checksum(const packet_t *packet, const layers_t *layers) {
  const uint8_t *ip = packet->data + layers->network;
  uint32_t bytes = packet->bytes - layers->transport;
  uint64_t sum = ones_sum(packet->data + layers->transport, bytes);
  sum += layers->is_ipv6 ? ones_sum(ip + 8, 32) : ones_sum(ip + 12, 8);
  return ones_fold(sum + bytes + (layers->is_udp ? IPPROTO_UDP : IPPROTO_TCP)) == CHECKSUM_GOOD;
}

static bool is_same(const uint8_t *a, const uint8_t *b, uint32_t from, uint32_t to) {
  return memcmp(a + from, b + from, to - from) == 0;
}

// index: of the packet in the super-frame, from 1 on.
static bool has_same_network(const uint8_t *first, const uint8_t *ip, uint32_t bytes, uint32_t index, bool is_ipv6) {
  if (is_ipv6) {
    return is_same(first, ip, 0, 4) && load16(ip + 4) == bytes - IPV6_BYTES && is_same(first, ip, 6, IPV6_BYTES);
  }
  uint16_t identification = load16(first + 4);
  bool has_none = identification == 0 && load16(first + 6) == IPV4_DONT_FRAGMENT && load16(ip + 4) == 0;
  bool is_next = load16(ip + 4) == (uint16_t)(identification + index);
  return is_same(first, ip, 0, 2) && (is_next || has_none) && is_same(first, ip, 6, 10) && is_same(first, ip, 12, 20) &&
         is_good_ipv4(ip, bytes);
}

// offset: of the packet's payload in that of the super-frame.
static bool has_next_tcp(const uint8_t *first, const uint8_t *tcp, uint32_t offset, uint32_t bytes) {
  return is_same(first, tcp, 0, 4) && load32(tcp + 4) == load32(first + 4) + offset &&
         is_same(first, tcp, 8, TCP_FLAGS_AT) && (tcp[TCP_FLAGS_AT] & (uint8_t)~TCP_FIN_PSH) == first[TCP_FLAGS_AT] &&
         is_same(first, tcp, 14, TCP_CHECKSUM_AT) && is_same(first, tcp, 18, bytes);
}

// Whether a packet may be number `index` of a super-frame, all but its transport checksum.
static bool continues(const packet_t *first, const packet_t *packet, const layers_t *layers, uint32_t index) {
  const uint8_t *a = first->data, *b = packet->data;
  if (packet->bytes <= layers->header_bytes || packet->bytes > first->bytes || !is_same(a, b, 0, layers->network)) {
    return false;
  }
  const uint8_t *transport = b + layers->transport;
  uint32_t ip_bytes = packet->bytes - layers->network, payload_bytes = first->bytes - layers->header_bytes;
  if (!has_same_network(a + layers->network, b + layers->network, ip_bytes, index, layers->is_ipv6)) return false;
  if (!has_certain_checksum(transport, layers)) return false;
  if (layers->is_udp) {
    return is_same(a + layers->transport, transport, 0, 4) && load16(transport + 4) == packet->bytes - layers->transport;
  }
  uint32_t tcp_bytes = layers->header_bytes - layers->transport;
  return has_next_tcp(a + layers->transport, transport, index * payload_bytes, tcp_bytes);
}

// bytes: of the super-frame.
static void write_header(const packet_t *first, const packet_t *last, const layers_t *layers, uint32_t bytes,
                         joined_t *joined) {
  joined->is_udp = layers->is_udp;
  joined->header_bytes = layers->header_bytes;
  memcpy(joined->header, first->data, layers->header_bytes);
  uint8_t *ip = joined->header + layers->network, *transport = joined->header + layers->transport;
  uint32_t transport_bytes = bytes - layers->transport;
  uint64_t pseudo = transport_bytes + (layers->is_udp ? IPPROTO_UDP : IPPROTO_TCP);
  if (layers->is_ipv6) {
    store16(ip + 4, transport_bytes);
    pseudo += ones_sum(ip + 8, 32);
  } else {
    store16(ip + 2, bytes - layers->network);
    store16(ip + 10, 0);
    store16(ip + 10, (uint16_t)~ones_sum(ip, IPV4_BYTES));
    pseudo += ones_sum(ip + 12, 8);
  }
  uint32_t checksum_at = layers->is_udp ? UDP_CHECKSUM_AT : TCP_CHECKSUM_AT;
  store16(transport + checksum_at, ones_fold(pseudo));
  if (layers->is_udp) store16(transport + 4, transport_bytes);
  else transport[TCP_FLAGS_AT] = last->data[layers->transport + TCP_FLAGS_AT];
  uint8_t tcp = layers->is_ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
  joined->offload = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                            .gso_type = layers->is_udp ? VIRTIO_NET_HDR_GSO_UDP_L4 : tcp,
                                            .hdr_len = (uint16_t)layers->header_bytes,
                                            .gso_size = (uint16_t)(first->bytes - layers->header_bytes),
                                            .csum_start = (uint16_t)layers->transport,
                                            .csum_offset = (uint16_t)checksum_at};
}

uint32_t join_packets(packet_t *const *packets, uint32_t count, joined_t *joined) {
  const packet_t *first = packets[0];
  layers_t layers;
  if (count < 2 || !read_layers(first, &layers)) return 1;
  if (count > JOINED_PACKETS_MAX) count = JOINED_PACKETS_MAX;
  uint32_t number = 1, bytes = first->bytes;
  bool is_full = true; // the last packet is as long as the first and does not end a TCP push
  while (is_full && number < count && continues(first, packets[number], &layers, number)) {
    const packet_t *next = packets[number];
    uint32_t payload_bytes = next->bytes - layers.header_bytes;
    if (bytes + payload_bytes - layers.network > IP_BYTES_MAX) break;
    if ((number == 1 && !has_good_checksum(first, &layers)) || !has_good_checksum(next, &layers)) break;
    bytes += payload_bytes;
    number++;
    is_full = next->bytes == first->bytes;
    if (!layers.is_udp) is_full = is_full && !(next->data[layers.transport + TCP_FLAGS_AT] & TCP_FIN_PSH);
  }
  if (number > 1) write_header(first, packets[number - 1], &layers, bytes, joined);
  return number;
}
