// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A packet names its port and priority, and carries what egress sees of its queue.
#include <core.p4>
#include <v1model.p4>

header frame_h {
    bit<8> command;
    bit<8> priority;
    bit<16> port;
    bit<16> serial;
    bit<32> enq_qdepth;
}
struct headers_t { frame_h frame; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.frame); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = (bit<9>) hdr.frame.port;
        sm.priority = (bit<3>) hdr.frame.priority;
        if (hdr.frame.command == 1) { sm.mcast_grp = 1; }
        else if (hdr.frame.command == 2) { clone(CloneType.I2E, 5); }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {
        hdr.frame.enq_qdepth = (bit<32>) sm.enq_qdepth;
        if (sm.instance_type == 1 || sm.instance_type == 2) { hdr.frame.command = 0xff; }
        else if (hdr.frame.command == 3) { clone(CloneType.E2E, 5); }
        sm.priority = 0; // too late: the packet has its queue
    }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
