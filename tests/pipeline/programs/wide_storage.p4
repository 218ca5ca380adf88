// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fields of odd wide widths at odd offsets: looked at, selected on, matched, set from entries, kept in registers.
#include <core.p4>
#include <v1model.p4>

header key_h { bit<8> operation; bit<3> tag; bit<65> a; bit<127> b; int<130> c; bit<256> e; bit<1000> f; bit<3> pad; }
header value_h { bit<5> path; bit<65> a; bit<127> b; int<130> c; bit<256> e; bit<1000> f; bit<100> seen; bit<5> pad; }
struct headers_t { key_h key; value_h value; }
struct metadata_t { bit<5> path; bit<100> seen; bit<65> a; bit<256> e; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        md.path = 0;
        md.seen = packet.lookahead<bit<100>>();
        transition select(packet.lookahead<bit<76>>()) {
            76w0x07A8000000000000001: on_lookahead;
            default: take;
        }
    }
    state on_lookahead { md.path = 1; transition take; }
    state take {
        packet.extract(hdr.key);
        transition select(hdr.key.a, hdr.key.tag, hdr.key.b) {
            (65w0x10000000000000001, 3w5, _): on_value;
            (_, 3w6, 127w0x70000000_00000000_00000000_000000AB): on_long_value;
            (65w0x1F000000000000000 &&& 65w0x1F000000000000000, _, 127w1 &&& 127w1): on_mask;
            default: accept;
        }
    }
    state on_value { md.path = md.path + 2; transition accept; }
    state on_long_value { md.path = md.path + 4; transition accept; }
    state on_mask { md.path = md.path + 8; transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    register<bit<9>>(8) short_register;
    register<bit<65>>(8) odd_register;
    register<int<130>>(8) signed_register;
    register<bit<256>>(8) long_register;
    register<bit<2000>>(8) longest_register;
    action set_a(bit<65> a) { hdr.value.a = a; }
    action set_b(bit<127> b, bit<3> tag) { hdr.value.b = b + (bit<127>)tag; }
    action set_c(int<130> c) { hdr.value.c = c; }
    action set_e(bit<256> e) { hdr.value.e = e; }
    action set_f(bit<1> one, bit<1000> f, bit<9> port) { hdr.value.f = f ^ (bit<1000>)one; sm.egress_spec = port; }
    table by_a { key = { hdr.key.a: exact; } actions = { set_a; NoAction; } default_action = NoAction; }
    table by_fixed_a { key = { hdr.key.a: exact; } actions = { set_a; NoAction; } default_action = NoAction; const entries = { 65w0x1FFFFFFFFFFFFFFFF: set_a(65w0x10000000000000003); } }
    table by_b { key = { hdr.key.b: lpm; hdr.key.tag: exact; } actions = { set_b; NoAction; } default_action = NoAction; }
    table by_c { key = { hdr.key.c: ternary; hdr.key.f: ternary; } actions = { set_c; NoAction; } default_action = NoAction; }
    table by_e { key = { hdr.key.e: range; } actions = { set_e; NoAction; } default_action = set_e(256w0xFFFF_0000_0000_0000_0000_0000_0000_0001); }
    table by_f { key = { hdr.key.f[980:3]: exact; hdr.key.e & 256w0xFF00000000000000000000000000000000000000000000000000000000000F: exact; } actions = { set_f; NoAction; } default_action = NoAction; }
    action keep() {
        bit<32> index = (bit<32>)hdr.key.tag;
        bit<9> s; bit<65> o; int<130> c; bit<256> l; bit<2000> ll;
        short_register.read(s, index); short_register.write(index, s + (bit<9>)hdr.key.e);
        odd_register.read(o, index); odd_register.write(index, o + hdr.key.a);
        signed_register.read(c, index); signed_register.write(index, c - hdr.key.c);
        long_register.read(l, index); long_register.write(index, l * 3 + hdr.key.e);
        longest_register.read(ll, index); longest_register.write(index, ((bit<2000>)hdr.key.f << 250) | (ll >> 250));
        hdr.value.a = o; hdr.value.c = c; hdr.value.e = l; hdr.value.f = ll[1999:1000]; hdr.value.b = (bit<127>)s;
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.key.isValid()) {
            hdr.value.setValid();
            hdr.value.path = md.path; hdr.value.seen = md.seen; hdr.value.pad = 0;
            hdr.value.a = 0; hdr.value.b = 0; hdr.value.c = -1; hdr.value.e = 0; hdr.value.f = 0;
            if (hdr.key.operation == 1) { keep(); } else { by_a.apply(); by_fixed_a.apply(); by_b.apply(); by_c.apply(); by_e.apply(); by_f.apply(); }
            hdr.key.b[70:5] = hdr.key.e[100:35];
            hdr.key.c = hdr.key.c + 1;
        }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.value); packet.emit(hdr.key); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
