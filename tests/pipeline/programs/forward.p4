// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The smallest useful program: one header, one exact table, one register. Its generated C is a golden file.
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst_address;
    bit<48> src_address;
    bit<16> ethertype;
}

struct headers_t {
    ethernet_h ethernet;
}

struct metadata_t {}

parser ForwardParser(packet_in packet,
                     out headers_t hdr,
                     inout metadata_t md,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t md) {
    apply {}
}

control ForwardIngress(inout headers_t hdr,
                       inout metadata_t md,
                       inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1) forwarded;

    action forward(bit<9> port) {
        bit<32> count;
        forwarded.read(count, 0);
        forwarded.write(0, count + 1);
        standard_metadata.egress_spec = port;
    }

    action drop_packet() {
        mark_to_drop(standard_metadata);
    }

    table station {
        key = {
            hdr.ethernet.dst_address: exact @name("dst_address");
        }
        actions = {
            forward;
            drop_packet;
        }
        default_action = drop_packet();
        size = 64;
    }

    apply {
        station.apply();
    }
}

control NoEgress(inout headers_t hdr,
                 inout metadata_t md,
                 inout standard_metadata_t standard_metadata) {
    apply {}
}

control NoCompute(inout headers_t hdr, inout metadata_t md) {
    apply {}
}

control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(ForwardParser(), NoVerify(), ForwardIngress(), NoEgress(), NoCompute(), ForwardDeparser()) main;
