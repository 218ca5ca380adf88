// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operator on unsigned, signed and odd-sized operands; the results go out in the packet.
#include <core.p4>
#include <v1model.p4>

header operands_h { bit<32> a; bit<32> b; bit<64> c; bit<64> d; bit<7> e; bit<13> f; bit<4> g; int<32> h; int<32> i; int<12> j; int<12> k; }
header results_h {
    bit<32> add; bit<32> subtract; bit<32> multiply; bit<32> saturated_add; bit<32> saturated_subtract;
    int<32> signed_add; int<32> signed_subtract; int<32> signed_saturated_add; int<32> signed_saturated_subtract;
    bit<64> wide_add; bit<64> wide_multiply; bit<64> wide_saturated_add; bit<64> wide_saturated_subtract;
    bit<32> left; bit<32> right; int<32> signed_right; bit<64> wide_left; bit<64> wide_right;
    bit<32> both; bit<32> either; bit<32> differ; bit<32> inverted; bit<20> concatenated; bit<12> slice;
    int<12> odd_saturated_add; int<12> odd_negated; bit<8> flags; int<32> larger; bit<64> widened; int<64> sign_extended;
}
struct headers_t { operands_h in_; results_h out_; }
struct metadata_t { bool unused; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.in_); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {
        hdr.out_.setValid();
        hdr.out_.add = hdr.in_.a + hdr.in_.b;
        hdr.out_.subtract = hdr.in_.a - hdr.in_.b;
        hdr.out_.multiply = hdr.in_.a * hdr.in_.b;
        hdr.out_.saturated_add = hdr.in_.a |+| hdr.in_.b;
        hdr.out_.saturated_subtract = hdr.in_.a |-| hdr.in_.b;
        hdr.out_.signed_add = hdr.in_.h + hdr.in_.i;
        hdr.out_.signed_subtract = hdr.in_.h - hdr.in_.i;
        hdr.out_.signed_saturated_add = hdr.in_.h |+| hdr.in_.i;
        hdr.out_.signed_saturated_subtract = hdr.in_.h |-| hdr.in_.i;
        hdr.out_.wide_add = hdr.in_.c + hdr.in_.d;
        hdr.out_.wide_multiply = hdr.in_.c * hdr.in_.d;
        hdr.out_.wide_saturated_add = hdr.in_.c |+| hdr.in_.d;
        hdr.out_.wide_saturated_subtract = hdr.in_.c |-| hdr.in_.d;
        hdr.out_.left = hdr.in_.a << (bit<8>)hdr.in_.e;
        hdr.out_.right = hdr.in_.a >> hdr.in_.e;
        hdr.out_.signed_right = hdr.in_.h >> hdr.in_.e;
        hdr.out_.wide_left = hdr.in_.c << (bit<8>)hdr.in_.e;
        hdr.out_.wide_right = hdr.in_.c >> hdr.in_.e;
        hdr.out_.both = hdr.in_.a & hdr.in_.b;
        hdr.out_.either = hdr.in_.a | hdr.in_.b;
        hdr.out_.differ = hdr.in_.a ^ hdr.in_.b;
        hdr.out_.inverted = ~hdr.in_.a;
        hdr.out_.concatenated = hdr.in_.e ++ hdr.in_.f;
        hdr.out_.slice = hdr.in_.a[21:10];
        hdr.out_.odd_saturated_add = hdr.in_.j |+| hdr.in_.k;
        hdr.out_.odd_negated = -hdr.in_.j;
        hdr.out_.flags = (hdr.in_.a == hdr.in_.b ? 1w1 : 1w0)
            ++ (hdr.in_.a < hdr.in_.b ? 1w1 : 1w0)
            ++ (hdr.in_.h < hdr.in_.i ? 1w1 : 1w0)
            ++ (hdr.in_.j >= hdr.in_.k ? 1w1 : 1w0)
            ++ (hdr.in_.c > hdr.in_.d ? 1w1 : 1w0)
            ++ ((hdr.in_.a != hdr.in_.b && hdr.in_.h <= hdr.in_.i) ? 1w1 : 1w0)
            ++ ((!(hdr.in_.a > hdr.in_.b) || hdr.in_.e == 3) ? 1w1 : 1w0)
            ++ (hdr.in_.g == 4w15 ? 1w1 : 1w0);
        if (hdr.in_.h > hdr.in_.i) { hdr.out_.larger = hdr.in_.h; } else { hdr.out_.larger = hdr.in_.i; }
        hdr.out_.widened = (bit<64>)hdr.in_.f + (bit<64>)hdr.in_.a;
        hdr.out_.sign_extended = (int<64>)hdr.in_.j;
        hdr.in_.setInvalid();
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.in_); packet.emit(hdr.out_); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
