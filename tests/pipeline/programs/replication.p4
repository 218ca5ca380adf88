// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything that simple_switch's replication engine does, chosen by the command in the packet; egress writes into the
// packet what it sees of the metadata.
#include <core.p4>
#include <v1model.p4>

header frame_h {
    bit<8> command;
    bit<8> argument;
    bit<8> instance_type;
    bit<8> rid;
    bit<16> ingress_port;
    bit<16> length;
    bit<8> kept;
    bit<8> turn;
    bit<8> touched;
    bit<8> ingress_turn;
}
header tag_h { bit<32> value; }
struct headers_t { tag_h tag; frame_h frame; }
struct metadata_t {
    @field_list(1) bit<8> kept;
    @field_list(1, 2) bit<8> turn;
    @field_list(1) bit<70> long_value;
    bit<8> lost;
}
struct sample_t { bit<8> command; bit<9> port; bit<8> turn; bit<70> long_value; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        md.lost = 99;
        transition select(packet.lookahead<bit<8>>()) { 0xee: tagged; default: frame; }
    }
    state tagged { packet.extract(hdr.tag); transition frame; }
    state frame { packet.extract(hdr.frame); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    counter(16, CounterType.packets_and_bytes) seen;
    action multicast(bit<16> group) { sm.mcast_grp = group; }
    apply {
        seen.count((bit<32>) sm.instance_type);
        sm.egress_spec = 2;
        hdr.frame.touched = hdr.frame.touched + 1;
        hdr.frame.ingress_turn = md.turn;
        md.kept = hdr.frame.argument + 1;
        md.long_value = (bit<70>) hdr.frame.argument;
        bit<8> command = hdr.frame.command;
        if (command == 1) { clone(CloneType.I2E, 5); }
        else if (command == 2) { clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.frame.argument, 1); }
        else if (command == 3) { md.turn = 7; digest<sample_t>(1, { command, sm.ingress_port, md.turn, md.long_value }); }
        else if (command == 4 && md.turn < hdr.frame.argument) { md.turn = md.turn + 1; resubmit_preserving_field_list(2); }
        else if (command == 7) { truncate((bit<32>) hdr.frame.argument); }
        else if (command == 8) { truncate((bit<32>) hdr.frame.argument); multicast(1); }
        else if (command == 9) { resubmit_preserving_field_list(2); }
        else if (command == 12) { multicast(2); }
        else if (command == 13) { clone_preserving_field_list(CloneType.I2E, 5, 1); mark_to_drop(sm); }
        else if (command == 15) { clone_preserving_field_list(CloneType.I2E, 5, 2); hdr.tag.setValid(); hdr.tag.value = 0xee000001; }
        else if (command == 16) { sm.egress_spec = 400; }
        else if (command == 17 && sm.instance_type == 0) { resubmit_preserving_field_list(2); multicast(1); clone(CloneType.I2E, 5); hdr.frame.command = 0; }
        else if (command == 18) { hdr.tag.setInvalid(); }
        else if (command == 19) { multicast(77); }
        else if (command == 20) { multicast(1); mark_to_drop(sm); }
        else if (command == 21) { sm.egress_spec = 511; multicast(1); }
        if (sm.instance_type == 4 && command == 16) { sm.egress_spec = 3; }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {
        bit<8> command = hdr.frame.command;
        if (command == 5 && md.turn < hdr.frame.argument) { md.turn = md.turn + 1; recirculate_preserving_field_list(1); }
        else if (command == 6 && md.turn < hdr.frame.argument) { md.turn = md.turn + 1; clone_preserving_field_list(CloneType.E2E, 6, 2); }
        else if (command == 10) { recirculate_preserving_field_list(2); }
        else if (command == 11) { clone(CloneType.E2E, 6); }
        else if (command == 14 && sm.instance_type == 0) { clone(CloneType.E2E, 6); mark_to_drop(sm); recirculate_preserving_field_list(1); }
        else if (command == 16 && sm.egress_port == 400) { recirculate_preserving_field_list(1); }
        else if (command == 22) { truncate((bit<32>) hdr.frame.argument); truncate(1000); }
        else if (command == 23 && md.turn == 0) { md.turn = 1; truncate(4); hdr.tag.setValid(); hdr.tag.value = 0xee000002; recirculate_preserving_field_list(1); }
        else if (command == 24 && sm.instance_type == 0) { clone_preserving_field_list(CloneType.E2E, 7, 1); hdr.tag.setValid(); hdr.tag.value = 0xee000003; }
        hdr.frame.instance_type = (bit<8>) sm.instance_type;
        hdr.frame.rid = (bit<8>) sm.egress_rid;
        hdr.frame.ingress_port = (bit<16>) sm.ingress_port;
        hdr.frame.length = (bit<16>) sm.packet_length;
        hdr.frame.kept = md.kept + (bit<8>) md.long_value;
        hdr.frame.turn = md.turn + md.lost;
    }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
