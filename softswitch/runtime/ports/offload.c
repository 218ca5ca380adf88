// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "offload.h"

#include <string.h>

#include "internet_checksum.h"
#include "layers.h"

#define SCTP_CHECKSUM_AT 8u // of the transport header: a CRC

void offload_checksum(const struct virtio_net_hdr *offload, uint8_t *frame, uint32_t bytes) {
  uint32_t start = offload->csum_start, at = start + offload->csum_offset;
  if (!(offload->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || offload->csum_offset == SCTP_CHECKSUM_AT) return;
  if (at + 2 > bytes) return;
  // The field holds the sum of the pseudo header.
  uint16_t checksum = (uint16_t)~ones_sum(frame + start, bytes - start);
  store16(frame + at, checksum ? checksum : 0xffff);
}

// Whether IPv6's extension headers end at the transport header and name this protocol.
static bool ipv6_ends_at(const segments_t *s, uint8_t protocol) {
  uint32_t at = s->network + IPV6_BYTES;
  uint8_t next = s->frame[s->network + 6];
  while (at + 8 <= s->transport && (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS)) {
    next = s->frame[at];
    at += 8u + s->frame[at + 1] * 8u;
  }
  return at == s->transport && next == protocol;
}

static bool ipv4_ends_at(const segments_t *s, uint8_t protocol) {
  const uint8_t *ip = s->frame + s->network;
  return s->network + (ip[0] & 15u) * 4u == s->transport && ip[9] == protocol;
}

bool segments_begin(segments_t *s, const struct virtio_net_hdr *offload, uint8_t *frame, uint32_t bytes) {
  uint8_t kind = offload->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
  bool is_tcp = kind == VIRTIO_NET_HDR_GSO_TCPV4 || kind == VIRTIO_NET_HDR_GSO_TCPV6;
  *s = (segments_t){.frame = frame, .bytes = bytes, .transport = offload->csum_start, .segment_bytes = offload->gso_size};
  s->is_udp = kind == VIRTIO_NET_HDR_GSO_UDP_L4;
  if (!(is_tcp || s->is_udp) || !(offload->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || s->segment_bytes == 0) return false;

  if (bytes < ETH_HLEN) return false;
  uint32_t type_at = ethertype_offset(frame, bytes);
  s->network = type_at + 2;
  uint32_t least = s->is_udp ? UDP_BYTES : TCP_BYTES;
  if (s->transport < s->network + IPV4_BYTES || s->transport + least > bytes) return false;
  s->is_ipv6 = load16(frame + type_at) == ETHERTYPE_IPV6;
  if (!s->is_ipv6 && load16(frame + type_at) != ETHERTYPE_IP) return false;
  if (s->is_ipv6 && s->transport < s->network + IPV6_BYTES) return false;
  uint8_t protocol = s->is_udp ? IPPROTO_UDP : IPPROTO_TCP;
  if (!(s->is_ipv6 ? ipv6_ends_at(s, protocol) : ipv4_ends_at(s, protocol))) return false;

  uint32_t transport_bytes = s->is_udp ? UDP_BYTES : (frame[s->transport + 12] >> 4) * 4u;
  s->header_bytes = s->next = s->transport + transport_bytes;
  if (transport_bytes < least || s->header_bytes > bytes || s->header_bytes > SEGMENT_HEADER_MAX) return false;
  memcpy(s->header, frame, s->header_bytes);
  return true;
}

static void patch_network(const segments_t *s, uint8_t *out, uint32_t bytes, uint32_t index) {
  uint8_t *ip = out + s->network;
  if (s->is_ipv6) {
    store16(ip + 4, bytes - s->network - IPV6_BYTES);
    return;
  }
  store16(ip + 2, bytes - s->network);
  store16(ip + 4, load16(ip + 4) + index);
  store16(ip + 10, 0);
  store16(ip + 10, (uint16_t)~ones_sum(ip, s->transport - s->network));
}

static void patch_tcp(const segments_t *s, uint8_t *tcp, bool is_last) {
  uint32_t sequence = load32(tcp + 4) + (s->next - s->header_bytes);
  store16(tcp + 4, sequence >> 16);
  store16(tcp + 6, sequence);
  if (s->next > s->header_bytes) tcp[TCP_FLAGS_AT] &= (uint8_t)~TCP_CWR;
  if (!is_last) tcp[TCP_FLAGS_AT] &= (uint8_t)~TCP_FIN_PSH;
}

uint32_t segments_cut(segments_t *s, uint8_t **segment) {
  uint32_t payload = s->bytes - s->next < s->segment_bytes ? s->bytes - s->next : s->segment_bytes;
  uint32_t bytes = s->header_bytes + payload, index = (s->next - s->header_bytes) / s->segment_bytes;
  uint32_t end = s->next + payload;
  uint8_t *out = s->frame + s->next - s->header_bytes;
  memcpy(out, s->header, s->header_bytes);
  patch_network(s, out, bytes, index);
  uint8_t *transport = out + s->transport;
  uint32_t checksum_at = s->is_udp ? UDP_CHECKSUM_AT : TCP_CHECKSUM_AT;
  // The field holds the sum of the pseudo header with the whole length: replace it by this segment's length.
  uint32_t whole = s->bytes - s->transport, part = bytes - s->transport;
  store16(transport + checksum_at,
          ones_fold((uint64_t)load16(transport + checksum_at) + (0xffff ^ ones_fold(whole)) + part));
  if (s->is_udp) store16(transport + 4, part);
  else patch_tcp(s, transport, end == s->bytes);
  const struct virtio_net_hdr sum = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                     .csum_start = (uint16_t)s->transport,
                                     .csum_offset = (uint16_t)checksum_at};
  offload_checksum(&sum, out, bytes);
  s->next = end;
  *segment = out;
  return bytes;
}
