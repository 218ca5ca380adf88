// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Signed parameters of actions: widened, compared, shifted, beside signed operands.
#include <core.p4>
#include <v1model.p4>

header in_h { int<8> x; int<16> y; int<70> z; bit<2> pad; }
header out_h { bit<8> flags; int<32> wider; int<100> widest; bit<4> pad; int<16> shifted; int<16> larger; int<16> total; int<70> sum; bit<2> end; }
struct headers_t { in_h in_; out_h out_; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.in_); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action compute(int<16> p, int<70> q, int<8> r, bit<16> u) {
        hdr.out_.wider = (int<32>)p;
        hdr.out_.widest = (int<100>)q;
        hdr.out_.shifted = p >> 2;
        hdr.out_.larger = p > hdr.in_.y ? p : hdr.in_.y;
        hdr.out_.total = (int<16>)r |+| hdr.in_.y;
        hdr.out_.sum = q + hdr.in_.z;
        hdr.out_.flags = (p < 0 ? 8w1 : 0) | (q < hdr.in_.z ? 8w2 : 0) | (r == hdr.in_.x ? 8w4 : 0) | ((bit<32>)u > 32w0x7FFF ? 8w8 : 0);
    }
    table by_x { key = { hdr.in_.x: exact; } actions = { compute; } const default_action = compute(5, 7, 1, 0xFFFF); const entries = { 4: compute(32767, 70, 12, 0x8000); } }
    apply {
        hdr.out_.setValid(); hdr.out_.pad = 0; hdr.out_.end = 0;
        by_x.apply();
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
