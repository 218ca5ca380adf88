// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operator at several widths; written by tests/pipeline/wide_operators.py.
#include <core.p4>
#include <v1model.p4>

header case_h { bit<8> number; }
header operands_bit1000_h {
    bit<1000> a; bit<1> c; bit<8> d; bit<1000> b;
    bit<2048> pad0;
    bit<2048> pad1;
    bit<2048> pad2;
    bit<2048> pad3;
    bit<2048> pad4;
    bit<2048> pad5;
    bit<2048> pad6;
    bit<2048> pad7;
    bit<2048> pad8;
    bit<823> pad9;
}
header results_bit1000_h {
    bit<1000> add;
    bit<1000> subtract;
    bit<1000> multiply;
    bit<1000> mixed;
    bit<1000> saturated_add;
    bit<1000> saturated_subtract;
    bit<1000> both;
    bit<1000> either;
    bit<1000> differ;
    bit<1000> inverted;
    bit<1000> negated;
    bit<1000> left;
    bit<1000> right;
    bit<1000> left_constant;
    bit<1000> right_constant;
    bit<1000> sum_right;
    bit<1000> chosen;
    bit<1000> larger;
    bit<1000> flag;
    bit<1009> widened;
    bit<8> flags;
    bit<467> slice;
    bit<467> sum_slice;
    bit<1> top;
    bit<500> cast;
    bit<1000> as_signed;
    bit<2001> joined;
    bit<3> pad;
}
header operands_int1000_h {
    int<1000> a; bit<1> c; bit<8> d; int<1000> b;
    bit<2048> pad0;
    bit<2048> pad1;
    bit<2048> pad2;
    bit<2048> pad3;
    bit<2048> pad4;
    bit<2048> pad5;
    bit<2048> pad6;
    bit<1983> pad7;
}
header results_int1000_h {
    int<1000> add;
    int<1000> subtract;
    int<1000> multiply;
    int<1000> mixed;
    int<1000> saturated_add;
    int<1000> saturated_subtract;
    int<1000> both;
    int<1000> either;
    int<1000> differ;
    int<1000> inverted;
    int<1000> negated;
    int<1000> left;
    int<1000> right;
    int<1000> left_constant;
    int<1000> right_constant;
    int<1000> sum_right;
    int<1000> chosen;
    int<1000> larger;
    int<1000> flag;
    bit<1009> widened;
    bit<8> flags;
    bit<1000> as_unsigned;
    bit<501> narrowed;
    bit<1> below;
    bit<1> pad;
}
header operands_bit2048_h {
    bit<2048> a; bit<1> c; bit<8> d; bit<2048> b;
    bit<2048> pad0;
    bit<2048> pad1;
    bit<2048> pad2;
    bit<2048> pad3;
    bit<2048> pad4;
    bit<2048> pad5;
    bit<2048> pad6;
    bit<2048> pad7;
    bit<2048> pad8;
    bit<2048> pad9;
    bit<2048> pad10;
    bit<2048> pad11;
    bit<2048> pad12;
    bit<2048> pad13;
    bit<2048> pad14;
    bit<2048> pad15;
    bit<2048> pad16;
    bit<2048> pad17;
    bit<1799> pad18;
}
header results_bit2048_h {
    bit<2048> add;
    bit<2048> subtract;
    bit<2048> multiply;
    bit<2048> mixed;
    bit<2048> saturated_add;
    bit<2048> saturated_subtract;
    bit<2048> both;
    bit<2048> either;
    bit<2048> differ;
    bit<2048> inverted;
    bit<2048> negated;
    bit<2048> left;
    bit<2048> right;
    bit<2048> left_constant;
    bit<2048> right_constant;
    bit<2048> sum_right;
    bit<2048> chosen;
    bit<2048> larger;
    bit<2048> flag;
    bit<2048> widened;
    bit<8> flags;
    bit<957> slice;
    bit<957> sum_slice;
    bit<1> top;
    bit<1024> cast;
    bit<2048> as_signed;
    bit<5> pad;
}
header operands_int2048_h {
    int<2048> a; bit<1> c; bit<8> d; int<2048> b;
    bit<2048> pad0;
    bit<2048> pad1;
    bit<2048> pad2;
    bit<2048> pad3;
    bit<2048> pad4;
    bit<2048> pad5;
    bit<2048> pad6;
    bit<2048> pad7;
    bit<2048> pad8;
    bit<2048> pad9;
    bit<2048> pad10;
    bit<2048> pad11;
    bit<2048> pad12;
    bit<2048> pad13;
    bit<2048> pad14;
    bit<2048> pad15;
    bit<2048> pad16;
    bit<1935> pad17;
}
header results_int2048_h {
    int<2048> add;
    int<2048> subtract;
    int<2048> multiply;
    int<2048> mixed;
    int<2048> saturated_add;
    int<2048> saturated_subtract;
    int<2048> both;
    int<2048> either;
    int<2048> differ;
    int<2048> inverted;
    int<2048> negated;
    int<2048> left;
    int<2048> right;
    int<2048> left_constant;
    int<2048> right_constant;
    int<2048> sum_right;
    int<2048> chosen;
    int<2048> larger;
    int<2048> flag;
    bit<2048> widened;
    bit<8> flags;
    bit<2048> as_unsigned;
    bit<1025> narrowed;
    bit<1> below;
    bit<6> pad;
}
struct headers_t { case_h which; operands_bit1000_h bit1000; results_bit1000_h to_bit1000; operands_int1000_h int1000; results_int1000_h to_int1000; operands_bit2048_h bit2048; results_bit2048_h to_bit2048; operands_int2048_h int2048; results_int2048_h to_int2048; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.which);
        transition select(hdr.which.number) {
            0: bit1000;
            1: int1000;
            2: bit2048;
            3: int2048;
            default: accept;
        }
    }
    state bit1000 { packet.extract(hdr.bit1000); transition accept; }
    state int1000 { packet.extract(hdr.int1000); transition accept; }
    state bit2048 { packet.extract(hdr.bit2048); transition accept; }
    state int2048 { packet.extract(hdr.int2048); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action compute_bit1000(inout operands_bit1000_h from, inout results_bit1000_h to) {
        bit<1000> a = from.a; bit<1000> b = from.b;
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
        to.left_constant = a << 255;
        to.right_constant = a >> 255;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<1000>)(bit<1000>)c;
        to.widened = (bit<1009>)(bit<1009>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[799:333];
        to.sum_slice = (a + b)[799:333];
        to.top = a[999:999];
        to.cast = (bit<500>)(a ^ b);
        to.as_signed = (bit<1000>)((int<1000>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int1000(inout operands_int1000_h from, inout results_int1000_h to) {
        int<1000> a = from.a; int<1000> b = from.b;
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
        to.left_constant = a << 255;
        to.right_constant = a >> 255;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<1000>)(bit<1000>)c;
        to.widened = (bit<1009>)(int<1009>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<1000>)a >> d;
        to.narrowed = (bit<501>)(bit<1000>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit2048(inout operands_bit2048_h from, inout results_bit2048_h to) {
        bit<2048> a = from.a; bit<2048> b = from.b;
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
        to.left_constant = a << 255;
        to.right_constant = a >> 255;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<2048>)(bit<2048>)c;
        to.widened = (bit<2048>)(bit<2048>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[1638:682];
        to.sum_slice = (a + b)[1638:682];
        to.top = a[2047:2047];
        to.cast = (bit<1024>)(a ^ b);
        to.as_signed = (bit<2048>)((int<2048>)a >> d);
        to.pad = 0;
    }
    action compute_int2048(inout operands_int2048_h from, inout results_int2048_h to) {
        int<2048> a = from.a; int<2048> b = from.b;
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
        to.left_constant = a << 255;
        to.right_constant = a >> 255;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<2048>)(bit<2048>)c;
        to.widened = (bit<2048>)(int<2048>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<2048>)a >> d;
        to.narrowed = (bit<1025>)(bit<2048>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    apply {
        if (hdr.bit1000.isValid()) {
            hdr.to_bit1000.setValid();
            compute_bit1000(hdr.bit1000, hdr.to_bit1000);
            hdr.bit1000.setInvalid();
        }
        if (hdr.int1000.isValid()) {
            hdr.to_int1000.setValid();
            compute_int1000(hdr.int1000, hdr.to_int1000);
            hdr.int1000.setInvalid();
        }
        if (hdr.bit2048.isValid()) {
            hdr.to_bit2048.setValid();
            compute_bit2048(hdr.bit2048, hdr.to_bit2048);
            hdr.bit2048.setInvalid();
        }
        if (hdr.int2048.isValid()) {
            hdr.to_int2048.setValid();
            compute_int2048(hdr.int2048, hdr.to_int2048);
            hdr.int2048.setInvalid();
        }
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(),
    TheDeparser()) main;
