// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Equal statements over ten lanes: in a branch, with falling lanes, as conditions, and one lane after the other.
#include <core.p4>
#include <v1model.p4>

header command_h { bit<8> command; bit<8> index; bit<16> seen; }
header lanes_h { bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; bit<32> v4; bit<32> v5; bit<32> v6; bit<32> v7; bit<32> v8; bit<32> v9; }
struct headers_t { command_h command; lanes_h lanes; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.command); packet.extract(hdr.lanes); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    register<bit<32>>(4) r0;
    register<bit<32>>(4) r1;
    register<bit<32>>(4) r2;
    register<bit<32>>(4) r3;
    register<bit<32>>(4) r4;
    register<bit<32>>(4) r5;
    register<bit<32>>(4) r6;
    register<bit<32>>(4) r7;
    register<bit<32>>(4) r8;
    register<bit<32>>(4) r9;
    action add() {
        bit<32> held;
        if (hdr.command.index < 4) {
            r0.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v0 = hdr.lanes.v0 + held;
            r0.write((bit<32>) hdr.command.index, hdr.lanes.v0);
            r1.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v1 = hdr.lanes.v1 + held;
            r1.write((bit<32>) hdr.command.index, hdr.lanes.v1);
            r2.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v2 = hdr.lanes.v2 + held;
            r2.write((bit<32>) hdr.command.index, hdr.lanes.v2);
            r3.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v3 = hdr.lanes.v3 + held;
            r3.write((bit<32>) hdr.command.index, hdr.lanes.v3);
            r4.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v4 = hdr.lanes.v4 + held;
            r4.write((bit<32>) hdr.command.index, hdr.lanes.v4);
            r5.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v5 = hdr.lanes.v5 + held;
            r5.write((bit<32>) hdr.command.index, hdr.lanes.v5);
            r6.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v6 = hdr.lanes.v6 + held;
            r6.write((bit<32>) hdr.command.index, hdr.lanes.v6);
            r7.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v7 = hdr.lanes.v7 + held;
            r7.write((bit<32>) hdr.command.index, hdr.lanes.v7);
            r8.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v8 = hdr.lanes.v8 + held;
            r8.write((bit<32>) hdr.command.index, hdr.lanes.v8);
            r9.read(held, (bit<32>) hdr.command.index);
            hdr.lanes.v9 = hdr.lanes.v9 + held;
            r9.write((bit<32>) hdr.command.index, hdr.lanes.v9);
            hdr.command.seen = 1;
        }
    }
    action add_first() {
        bit<32> held;
        if (hdr.command.index < 4) {
            r0.read(held, 0);
            hdr.lanes.v0 = hdr.lanes.v0 + held;
            r1.read(held, 0);
            hdr.lanes.v1 = hdr.lanes.v1 + held;
            r2.read(held, 0);
            hdr.lanes.v2 = hdr.lanes.v2 + held;
            r3.read(held, 0);
            hdr.lanes.v3 = hdr.lanes.v3 + held;
            r4.read(held, 0);
            hdr.lanes.v4 = hdr.lanes.v4 + held;
            r5.read(held, 0);
            hdr.lanes.v5 = hdr.lanes.v5 + held;
            r6.read(held, 0);
            hdr.lanes.v6 = hdr.lanes.v6 + held;
            r7.read(held, 0);
            hdr.lanes.v7 = hdr.lanes.v7 + held;
            r8.read(held, 0);
            hdr.lanes.v8 = hdr.lanes.v8 + held;
            r9.read(held, 0);
            hdr.lanes.v9 = hdr.lanes.v9 + held;
        }
    }
    action store_reversed() {
        r0.write((bit<32>) hdr.command.index, hdr.lanes.v9);
        r1.write((bit<32>) hdr.command.index, hdr.lanes.v8);
        r2.write((bit<32>) hdr.command.index, hdr.lanes.v7);
        r3.write((bit<32>) hdr.command.index, hdr.lanes.v6);
        r4.write((bit<32>) hdr.command.index, hdr.lanes.v5);
        r5.write((bit<32>) hdr.command.index, hdr.lanes.v4);
        r6.write((bit<32>) hdr.command.index, hdr.lanes.v3);
        r7.write((bit<32>) hdr.command.index, hdr.lanes.v2);
        r8.write((bit<32>) hdr.command.index, hdr.lanes.v1);
        r9.write((bit<32>) hdr.command.index, hdr.lanes.v0);
    }
    action clear_odd() {
        if ((hdr.lanes.v0 & 1) == 1) { hdr.lanes.v0 = 0; }
        if ((hdr.lanes.v1 & 1) == 1) { hdr.lanes.v1 = 0; }
        if ((hdr.lanes.v2 & 1) == 1) { hdr.lanes.v2 = 0; }
        if ((hdr.lanes.v3 & 1) == 1) { hdr.lanes.v3 = 0; }
        if ((hdr.lanes.v4 & 1) == 1) { hdr.lanes.v4 = 0; }
        if ((hdr.lanes.v5 & 1) == 1) { hdr.lanes.v5 = 0; }
        if ((hdr.lanes.v6 & 1) == 1) { hdr.lanes.v6 = 0; }
        if ((hdr.lanes.v7 & 1) == 1) { hdr.lanes.v7 = 0; }
        if ((hdr.lanes.v8 & 1) == 1) { hdr.lanes.v8 = 0; }
        if ((hdr.lanes.v9 & 1) == 1) { hdr.lanes.v9 = 0; }
    }
    action prefix_sums() {
        hdr.lanes.v1 = hdr.lanes.v1 + hdr.lanes.v0;
        hdr.lanes.v2 = hdr.lanes.v2 + hdr.lanes.v1;
        hdr.lanes.v3 = hdr.lanes.v3 + hdr.lanes.v2;
        hdr.lanes.v4 = hdr.lanes.v4 + hdr.lanes.v3;
        hdr.lanes.v5 = hdr.lanes.v5 + hdr.lanes.v4;
        hdr.lanes.v6 = hdr.lanes.v6 + hdr.lanes.v5;
        hdr.lanes.v7 = hdr.lanes.v7 + hdr.lanes.v6;
        hdr.lanes.v8 = hdr.lanes.v8 + hdr.lanes.v7;
        hdr.lanes.v9 = hdr.lanes.v9 + hdr.lanes.v8;
    }
    table choose {
        key = { hdr.command.command: exact; }
        actions = { add; add_first; store_reversed; clear_odd; prefix_sums; NoAction; }
        default_action = NoAction;
        const entries = {
            1: add();
            2: store_reversed();
            3: clear_odd();
            4: prefix_sums();
            5: add_first();
        }
    }
    apply { sm.egress_spec = 2; choose.apply(); }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
