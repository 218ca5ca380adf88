// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every field of standard_metadata: what ingress and egress see, and what egress still sees of what ingress wrote.
#include <core.p4>
#include <v1model.p4>

header view_h {
    bit<16> ingress_port; bit<16> egress_spec; bit<16> egress_port; bit<32> instance_type; bit<32> packet_length;
    bit<16> mcast_grp; bit<16> egress_rid; bit<8> checksum_error; bit<8> parser_error; bit<8> priority;
    bit<48> ingress_global_timestamp; bit<48> egress_global_timestamp;
    bit<32> enq_timestamp; bit<32> enq_qdepth; bit<32> deq_timedelta; bit<32> deq_qdepth;
}
header command_h { bit<8> command; bit<8> argument; bit<16> sum; }
header extra_h { bit<24> a; }
struct headers_t { command_h command; extra_h extra; extra_h[2] list; view_h ingress_view; view_h egress_view; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.command); transition select(hdr.command.command) { 5: short; 6: extra; 7: wrong; default: accept; } }
    state short { packet.advance(80000); transition accept; }
    state extra { packet.extract(hdr.extra); transition accept; }
    state wrong { verify(hdr.command.argument == 0, error.NoMatch); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) {
    apply { verify_checksum(hdr.command.command == 4, { hdr.command.command, hdr.command.argument }, hdr.command.sum, HashAlgorithm.csum16); }
}
control Look(out view_h view, in standard_metadata_t sm) {
    apply {
        view.setValid();
        view.ingress_port = (bit<16>) sm.ingress_port;
        view.egress_spec = (bit<16>) sm.egress_spec;
        view.egress_port = (bit<16>) sm.egress_port;
        view.instance_type = sm.instance_type;
        view.packet_length = sm.packet_length;
        view.mcast_grp = sm.mcast_grp;
        view.egress_rid = sm.egress_rid;
        view.checksum_error = (bit<8>) sm.checksum_error;
        view.parser_error = 3;
        if (sm.parser_error == error.NoError) { view.parser_error = 0; }
        if (sm.parser_error == error.PacketTooShort) { view.parser_error = 1; }
        if (sm.parser_error == error.NoMatch) { view.parser_error = 2; }
        view.priority = (bit<8>) sm.priority;
        view.ingress_global_timestamp = sm.ingress_global_timestamp;
        view.egress_global_timestamp = sm.egress_global_timestamp;
        view.enq_timestamp = sm.enq_timestamp;
        view.enq_qdepth = (bit<32>) sm.enq_qdepth;
        view.deq_timedelta = sm.deq_timedelta;
        view.deq_qdepth = (bit<32>) sm.deq_qdepth;
    }
}
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    Look() look;
    apply {
        look.apply(hdr.ingress_view, sm);
        sm.egress_spec = 2;
        bit<8> command = hdr.command.command;
        if (command == 1) { sm.ingress_port = 77; sm.egress_rid = 55; sm.instance_type = 3; sm.packet_length = 9; sm.egress_port = 5; sm.enq_qdepth = 4; sm.ingress_global_timestamp = 0xabc; }
        else if (command == 2) { sm.mcast_grp = 3; sm.egress_rid = 44; }
        else if (command == 3) { sm.parser_error = error.NoMatch; sm.checksum_error = 1; }
        else if (command == 6) { hdr.extra.setInvalid(); hdr.list[0].setValid(); hdr.list[1].setValid(); hdr.list[1].setValid(); hdr.list.pop_front(1); }
        else if (command == 8) { mark_to_drop(sm); sm.egress_spec = 2; }
        else if (command == 9) { sm.mcast_grp = 3; mark_to_drop(sm); sm.egress_spec = (bit<9>) hdr.command.argument; }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    Look() look;
    counter(4, CounterType.bytes) sizes;
    apply {
        look.apply(hdr.egress_view, sm);
        sizes.count(0);
        if (hdr.command.command == 8) { sm.egress_spec = 3; sm.egress_port = 3; }
    }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
