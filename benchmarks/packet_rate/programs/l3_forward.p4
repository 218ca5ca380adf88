// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain IPv4 forwarding, as the packet rate benchmark measures it: header checksum verified, longest prefix match, MAC
// addresses rewritten, TTL decremented, checksum computed again.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;

header ethernet_h {
    bit<48> dst_address;
    bit<48> src_address;
    bit<16> ethertype;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_address;
    bit<32> dst_address;
}

struct headers_t {
    ethernet_h ethernet;
    ipv4_h     ipv4;
}

struct metadata_t {}

parser L3Parser(packet_in packet,
                out headers_t hdr,
                inout metadata_t md,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control VerifyL3(inout headers_t hdr, inout metadata_t md) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
                        {hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
                         hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
                         hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_address,
                         hdr.ipv4.dst_address},
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control L3Ingress(inout headers_t hdr,
                  inout metadata_t md,
                  inout standard_metadata_t standard_metadata) {
    action drop_packet() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port, bit<48> mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_address = hdr.ethernet.dst_address;
        hdr.ethernet.dst_address = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table route {
        key = {
            hdr.ipv4.dst_address: lpm @name("dst_address");
        }
        actions = {
            forward;
            drop_packet;
        }
        default_action = drop_packet();
        size = 1024;
    }

    apply {
        if (!hdr.ipv4.isValid() || standard_metadata.checksum_error == 1 || hdr.ipv4.ttl <= 1) {
            drop_packet();
        } else {
            route.apply();
        }
    }
}

control L3Egress(inout headers_t hdr,
                 inout metadata_t md,
                 inout standard_metadata_t standard_metadata) {
    apply {}
}

control ComputeL3(inout headers_t hdr, inout metadata_t md) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
                        {hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
                         hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
                         hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_address,
                         hdr.ipv4.dst_address},
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control L3Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(L3Parser(), VerifyL3(), L3Ingress(), L3Egress(), ComputeL3(), L3Deparser()) main;
