// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One table of each kind and mixture of kinds, large; the packet names the table and gets the entry's two numbers back.
#include <core.p4>
#include <v1model.p4>

header query_h { bit<8> kind; bit<32> a; bit<16> b; bit<9> c; bit<7> d; bit<32> first; bit<32> second; }
header extra_h { bit<16> e; }
struct headers_t { query_h query; extra_h extra; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.query); transition select(hdr.query.d) { 1: extra; 2: gone; default: accept; } }
    state extra { packet.extract(hdr.extra); transition accept; }
    state gone { packet.extract(hdr.extra); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action answer(bit<32> first, bit<32> second) { hdr.query.first = first; hdr.query.second = second; }
    action other(bit<32> second) { hdr.query.first = 7; hdr.query.second = second; }
    table exact_small { key = { hdr.query.a: exact; } actions = { answer; other; NoAction; } size = 1024; default_action = NoAction(); }
    table exact_large { key = { hdr.query.a: exact; hdr.query.b: exact; } actions = { answer; other; NoAction; } size = 1048576; default_action = NoAction(); }
    table prefixes { key = { hdr.query.b: exact; hdr.query.a: lpm; } actions = { answer; other; NoAction; } size = 1048576; default_action = NoAction(); }
    table masks { key = { hdr.query.a: ternary; hdr.query.b: ternary; } actions = { answer; other; NoAction; } size = 32768; default_action = NoAction(); }
    table ranges { key = { hdr.query.b: range; } actions = { answer; other; NoAction; } size = 32768; default_action = NoAction(); }
    table mixture { key = { hdr.query.b: range; hdr.query.a: lpm; hdr.query.c: range; hdr.query.d: optional; hdr.extra.isValid(): exact; } actions = { answer; other; NoAction; } size = 4096; default_action = NoAction(); }
    table masked { key = { hdr.query.a & 0x00ffff00: exact; hdr.extra.e: ternary; } actions = { answer; other; NoAction; } size = 64; default_action = NoAction(); }
    table no_key { actions = { answer; other; } default_action = answer(11, 12); }
    table initial { key = { hdr.query.b: range; hdr.query.c: ternary; } actions = { answer; other; NoAction; } default_action = other(9);
        const entries = { (5..9, _): answer(1, 1); (7..12, 3): answer(2, 2); (7..12, 4 &&& 6): answer(3, 3); (_, 5): other(4); } }
    apply {
        if (hdr.query.d == 2) { hdr.extra.setInvalid(); }
        if (hdr.query.kind == 1) { exact_small.apply(); }
        else if (hdr.query.kind == 2) { exact_large.apply(); }
        else if (hdr.query.kind == 3) { prefixes.apply(); }
        else if (hdr.query.kind == 4) { masks.apply(); }
        else if (hdr.query.kind == 5) { ranges.apply(); }
        else if (hdr.query.kind == 6) { mixture.apply(); }
        else if (hdr.query.kind == 7) { masked.apply(); }
        else if (hdr.query.kind == 8) { no_key.apply(); }
        else if (hdr.query.kind == 9) { initial.apply(); }
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.query); packet.emit(hdr.extra); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
