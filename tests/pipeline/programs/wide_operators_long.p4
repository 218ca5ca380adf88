// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operator at several widths; written by tests/pipeline/wide_operators.py.
#include <core.p4>
#include <v1model.p4>

header case_h { bit<8> number; }
header operands_bit255_h {
    bit<255> a; bit<1> c; bit<8> d; bit<255> b;
    bit<2048> pad0;
    bit<489> pad1;
}
header results_bit255_h {
    bit<255> add;
    bit<255> subtract;
    bit<255> multiply;
    bit<255> mixed;
    bit<255> saturated_add;
    bit<255> saturated_subtract;
    bit<255> both;
    bit<255> either;
    bit<255> differ;
    bit<255> inverted;
    bit<255> negated;
    bit<255> left;
    bit<255> right;
    bit<255> left_constant;
    bit<255> right_constant;
    bit<255> sum_right;
    bit<255> chosen;
    bit<255> larger;
    bit<255> flag;
    bit<264> widened;
    bit<8> flags;
    bit<119> slice;
    bit<119> sum_slice;
    bit<1> top;
    bit<128> cast;
    bit<255> as_signed;
    bit<511> joined;
    bit<6> pad;
}
header operands_int255_h {
    int<255> a; bit<1> c; bit<8> d; int<255> b;
    bit<1785> pad0;
}
header results_int255_h {
    int<255> add;
    int<255> subtract;
    int<255> multiply;
    int<255> mixed;
    int<255> saturated_add;
    int<255> saturated_subtract;
    int<255> both;
    int<255> either;
    int<255> differ;
    int<255> inverted;
    int<255> negated;
    int<255> left;
    int<255> right;
    int<255> left_constant;
    int<255> right_constant;
    int<255> sum_right;
    int<255> chosen;
    int<255> larger;
    int<255> flag;
    bit<264> widened;
    bit<8> flags;
    bit<255> as_unsigned;
    bit<129> narrowed;
    bit<1> below;
    bit<2> pad;
}
header operands_bit256_h {
    bit<256> a; bit<1> c; bit<8> d; bit<256> b;
    bit<2048> pad0;
    bit<519> pad1;
}
header results_bit256_h {
    bit<256> add;
    bit<256> subtract;
    bit<256> multiply;
    bit<256> mixed;
    bit<256> saturated_add;
    bit<256> saturated_subtract;
    bit<256> both;
    bit<256> either;
    bit<256> differ;
    bit<256> inverted;
    bit<256> negated;
    bit<256> left;
    bit<256> right;
    bit<256> left_constant;
    bit<256> right_constant;
    bit<256> sum_right;
    bit<256> chosen;
    bit<256> larger;
    bit<256> flag;
    bit<265> widened;
    bit<8> flags;
    bit<120> slice;
    bit<120> sum_slice;
    bit<1> top;
    bit<128> cast;
    bit<256> as_signed;
    bit<513> joined;
    bit<5> pad;
}
header operands_int256_h {
    int<256> a; bit<1> c; bit<8> d; int<256> b;
    bit<1815> pad0;
}
header results_int256_h {
    int<256> add;
    int<256> subtract;
    int<256> multiply;
    int<256> mixed;
    int<256> saturated_add;
    int<256> saturated_subtract;
    int<256> both;
    int<256> either;
    int<256> differ;
    int<256> inverted;
    int<256> negated;
    int<256> left;
    int<256> right;
    int<256> left_constant;
    int<256> right_constant;
    int<256> sum_right;
    int<256> chosen;
    int<256> larger;
    int<256> flag;
    bit<265> widened;
    bit<8> flags;
    bit<256> as_unsigned;
    bit<129> narrowed;
    bit<1> below;
    bit<5> pad;
}
struct headers_t { case_h which; operands_bit255_h bit255; results_bit255_h to_bit255; operands_int255_h int255; results_int255_h to_int255; operands_bit256_h bit256; results_bit256_h to_bit256; operands_int256_h int256; results_int256_h to_int256; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.which);
        transition select(hdr.which.number) {
            0: bit255;
            1: int255;
            2: bit256;
            3: int256;
            default: accept;
        }
    }
    state bit255 { packet.extract(hdr.bit255); transition accept; }
    state int255 { packet.extract(hdr.int255); transition accept; }
    state bit256 { packet.extract(hdr.bit256); transition accept; }
    state int256 { packet.extract(hdr.int256); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action compute_bit255(inout operands_bit255_h from, inout results_bit255_h to) {
        bit<255> a = from.a; bit<255> b = from.b;
        bit<1> c = from.c; bit<8> d = from.d;
        to.add = a + b;
        to.subtract = a - b;
        to.multiply = a * b;
        to.mixed = a * b - (b + a) * a;
        to.saturated_add = a |+| b;
        to.saturated_subtract = a |-| b;
        to.both = a & b;
        to.either = a | b;
        to.differ = a ^ b;
        to.inverted = ~a;
        to.negated = -a;
        to.left = a << d;
        to.right = a >> d;
        to.left_constant = a << 127;
        to.right_constant = a >> 127;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<255>)(bit<255>)c;
        to.widened = (bit<264>)(bit<264>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[203:85];
        to.sum_slice = (a + b)[203:85];
        to.top = a[254:254];
        to.cast = (bit<128>)(a ^ b);
        to.as_signed = (bit<255>)((int<255>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int255(inout operands_int255_h from, inout results_int255_h to) {
        int<255> a = from.a; int<255> b = from.b;
        bit<1> c = from.c; bit<8> d = from.d;
        to.add = a + b;
        to.subtract = a - b;
        to.multiply = a * b;
        to.mixed = a * b - (b + a) * a;
        to.saturated_add = a |+| b;
        to.saturated_subtract = a |-| b;
        to.both = a & b;
        to.either = a | b;
        to.differ = a ^ b;
        to.inverted = ~a;
        to.negated = -a;
        to.left = a << d;
        to.right = a >> d;
        to.left_constant = a << 127;
        to.right_constant = a >> 127;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<255>)(bit<255>)c;
        to.widened = (bit<264>)(int<264>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<255>)a >> d;
        to.narrowed = (bit<129>)(bit<255>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit256(inout operands_bit256_h from, inout results_bit256_h to) {
        bit<256> a = from.a; bit<256> b = from.b;
        bit<1> c = from.c; bit<8> d = from.d;
        to.add = a + b;
        to.subtract = a - b;
        to.multiply = a * b;
        to.mixed = a * b - (b + a) * a;
        to.saturated_add = a |+| b;
        to.saturated_subtract = a |-| b;
        to.both = a & b;
        to.either = a | b;
        to.differ = a ^ b;
        to.inverted = ~a;
        to.negated = -a;
        to.left = a << d;
        to.right = a >> d;
        to.left_constant = a << 128;
        to.right_constant = a >> 128;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<256>)(bit<256>)c;
        to.widened = (bit<265>)(bit<265>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[204:85];
        to.sum_slice = (a + b)[204:85];
        to.top = a[255:255];
        to.cast = (bit<128>)(a ^ b);
        to.as_signed = (bit<256>)((int<256>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int256(inout operands_int256_h from, inout results_int256_h to) {
        int<256> a = from.a; int<256> b = from.b;
        bit<1> c = from.c; bit<8> d = from.d;
        to.add = a + b;
        to.subtract = a - b;
        to.multiply = a * b;
        to.mixed = a * b - (b + a) * a;
        to.saturated_add = a |+| b;
        to.saturated_subtract = a |-| b;
        to.both = a & b;
        to.either = a | b;
        to.differ = a ^ b;
        to.inverted = ~a;
        to.negated = -a;
        to.left = a << d;
        to.right = a >> d;
        to.left_constant = a << 128;
        to.right_constant = a >> 128;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<256>)(bit<256>)c;
        to.widened = (bit<265>)(int<265>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<256>)a >> d;
        to.narrowed = (bit<129>)(bit<256>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    apply {
        if (hdr.bit255.isValid()) {
            hdr.to_bit255.setValid();
            compute_bit255(hdr.bit255, hdr.to_bit255);
            hdr.bit255.setInvalid();
        }
        if (hdr.int255.isValid()) {
            hdr.to_int255.setValid();
            compute_int255(hdr.int255, hdr.to_int255);
            hdr.int255.setInvalid();
        }
        if (hdr.bit256.isValid()) {
            hdr.to_bit256.setValid();
            compute_bit256(hdr.bit256, hdr.to_bit256);
            hdr.bit256.setInvalid();
        }
        if (hdr.int256.isValid()) {
            hdr.to_int256.setValid();
            compute_int256(hdr.int256, hdr.to_int256);
            hdr.int256.setInvalid();
        }
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(),
    TheDeparser()) main;
