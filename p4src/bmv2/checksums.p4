// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// IPv4 header checksum and UDP checksum (RFC 768: pseudo header, UDP header, datagram).
//
// Verification includes the received UDP checksum in the sum: a correct datagram gives zero, also if
// the sender wrote a computed zero as 0xffff, as it must. A datagram without a checksum (0x0000) is
// not verified. In results the switch writes both checksums; a computed zero stays 0x0000 there,
// which means "no checksum". IPv4 headers with options are not verified: Switchfold packets have no
// options, and hosts verify their own packets.
#define IPV4_CHECKSUM_FIELDS                                                      \
    hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,                  \
    hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags,               \
    hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,                    \
    hdr.ipv4.src_address, hdr.ipv4.dst_address

#define UDP_CHECKSUM_FIELDS                                                       \
    hdr.ipv4.src_address, hdr.ipv4.dst_address,                                   \
    8w0, hdr.ipv4.protocol, hdr.udp.length,                                       \
    hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length,                           \
    hdr.switchfold, hdr.lanes

control SwitchfoldVerifyChecksum(inout headers_t hdr, inout metadata_t md) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid() && hdr.ipv4.ihl == IPV4_IHL_WITHOUT_OPTIONS,
            { IPV4_CHECKSUM_FIELDS },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16);
        verify_checksum(
            hdr.lanes.isValid() && hdr.udp.checksum != 0,
            { UDP_CHECKSUM_FIELDS, hdr.udp.checksum },
            md.zero,
            HashAlgorithm.csum16);
    }
}

control SwitchfoldComputeChecksum(inout headers_t hdr, inout metadata_t md) {
    apply {
        update_checksum(
            md.reply != REPLY_NONE,
            { IPV4_CHECKSUM_FIELDS },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16);
        update_checksum(
            md.reply != REPLY_NONE,
            { UDP_CHECKSUM_FIELDS },
            hdr.udp.checksum,
            HashAlgorithm.csum16);
    }
}
