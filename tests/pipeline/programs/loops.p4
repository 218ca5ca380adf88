// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Actions with loops, break, continue, return and exit; messages, claims and random numbers.
#include <core.p4>
#include <v1model.p4>

header numbers_h { bit<8> command; bit<8> count; bit<16> sum; bit<32> drawn; int<8> small; bit<72> long_value; int<72> signed_value; }
struct headers_t { numbers_h numbers; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.numbers); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action sum_below(bit<8> limit) {
        for (bit<8> i = 0; i < limit; i = i + 1) {
            if (i == hdr.numbers.count) { break; }
            if ((i & 1) == 0) { continue; }
            hdr.numbers.sum = hdr.numbers.sum + (bit<16>) i;
        }
    }
    action product() {
        for (bit<8> i = 0; i < hdr.numbers.count; i = i + 1) {
            for (bit<8> j = 0; j < hdr.numbers.count; j = j + 1) { hdr.numbers.sum = hdr.numbers.sum + 1; }
        }
    }
    action endless() {
        for (bit<8> i = 0; i < 2; i = i * 2) { hdr.numbers.sum = hdr.numbers.sum + 1; }
    }
    action first_of_two() {
        if (hdr.numbers.count == 1) { hdr.numbers.sum = 1; return; }
        if (hdr.numbers.count == 2) { hdr.numbers.sum = 2; exit; }
        hdr.numbers.sum = 3;
    }
    action draw() { random(hdr.numbers.drawn, 10, 12); }
    action draw_nothing() { random(hdr.numbers.drawn, 12, 10); }
    action draw_all() { random(hdr.numbers.drawn, 0, 0xffffffff); }
    action draw_long() { random(hdr.numbers.long_value, 5, 5); }
    action say() {
        log_msg("{} and {}, \\{not\\} {x}.", { hdr.numbers.count, hdr.numbers.small, hdr.numbers.long_value });
        log_msg("no value");
        log_msg("{}", { hdr.numbers.signed_value });
    }
    action claim() { assert(hdr.numbers.count == 1); assume(hdr.numbers.sum == 0); }
    table choose {
        key = { hdr.numbers.command: exact; }
        actions = { sum_below; product; endless; first_of_two; draw; draw_nothing; draw_all; draw_long; say; claim; NoAction; }
        default_action = NoAction;
        const entries = {
            1: sum_below(200);
            2: product();
            3: endless();
            4: first_of_two();
            5: draw();
            6: draw_nothing();
            7: draw_all();
            8: say();
            9: claim();
            10: draw_long();
        }
    }
    apply {
        sm.egress_spec = 2;
        choose.apply();
        if (hdr.numbers.command == 4) { hdr.numbers.drawn = 1; }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
