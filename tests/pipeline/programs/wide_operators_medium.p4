// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operator at several widths; written by tests/pipeline/wide_operators.py.
#include <core.p4>
#include <v1model.p4>

header case_h { bit<8> number; }
header operands_bit65_h {
    bit<65> a; bit<1> c; bit<8> d; bit<65> b;
    bit<13> pad0;
}
header results_bit65_h {
    bit<65> add;
    bit<65> subtract;
    bit<65> multiply;
    bit<65> mixed;
    bit<65> saturated_add;
    bit<65> saturated_subtract;
    bit<65> both;
    bit<65> either;
    bit<65> differ;
    bit<65> inverted;
    bit<65> negated;
    bit<65> left;
    bit<65> right;
    bit<65> left_constant;
    bit<65> right_constant;
    bit<65> sum_right;
    bit<65> chosen;
    bit<65> larger;
    bit<65> flag;
    bit<74> widened;
    bit<8> flags;
    bit<31> slice;
    bit<31> sum_slice;
    bit<1> top;
    bit<33> cast;
    bit<65> as_signed;
    bit<131> joined;
    bit<7> pad;
}
header operands_int65_h {
    int<65> a; bit<1> c; bit<8> d; int<65> b;
    bit<13> pad0;
}
header results_int65_h {
    int<65> add;
    int<65> subtract;
    int<65> multiply;
    int<65> mixed;
    int<65> saturated_add;
    int<65> saturated_subtract;
    int<65> both;
    int<65> either;
    int<65> differ;
    int<65> inverted;
    int<65> negated;
    int<65> left;
    int<65> right;
    int<65> left_constant;
    int<65> right_constant;
    int<65> sum_right;
    int<65> chosen;
    int<65> larger;
    int<65> flag;
    bit<74> widened;
    bit<8> flags;
    bit<65> as_unsigned;
    bit<34> narrowed;
    bit<1> below;
    bit<7> pad;
}
header operands_bit127_h {
    bit<127> a; bit<1> c; bit<8> d; bit<127> b;
    bit<9> pad0;
}
header results_bit127_h {
    bit<127> add;
    bit<127> subtract;
    bit<127> multiply;
    bit<127> mixed;
    bit<127> saturated_add;
    bit<127> saturated_subtract;
    bit<127> both;
    bit<127> either;
    bit<127> differ;
    bit<127> inverted;
    bit<127> negated;
    bit<127> left;
    bit<127> right;
    bit<127> left_constant;
    bit<127> right_constant;
    bit<127> sum_right;
    bit<127> chosen;
    bit<127> larger;
    bit<127> flag;
    bit<136> widened;
    bit<8> flags;
    bit<60> slice;
    bit<60> sum_slice;
    bit<1> top;
    bit<64> cast;
    bit<127> as_signed;
    bit<255> joined;
    bit<4> pad;
}
header operands_int127_h {
    int<127> a; bit<1> c; bit<8> d; int<127> b;
    bit<9> pad0;
}
header results_int127_h {
    int<127> add;
    int<127> subtract;
    int<127> multiply;
    int<127> mixed;
    int<127> saturated_add;
    int<127> saturated_subtract;
    int<127> both;
    int<127> either;
    int<127> differ;
    int<127> inverted;
    int<127> negated;
    int<127> left;
    int<127> right;
    int<127> left_constant;
    int<127> right_constant;
    int<127> sum_right;
    int<127> chosen;
    int<127> larger;
    int<127> flag;
    bit<136> widened;
    bit<8> flags;
    bit<127> as_unsigned;
    bit<65> narrowed;
    bit<1> below;
    bit<2> pad;
}
header operands_bit128_h {
    bit<128> a; bit<1> c; bit<8> d; bit<128> b;
    bit<15> pad0;
}
header results_bit128_h {
    bit<128> add;
    bit<128> subtract;
    bit<128> multiply;
    bit<128> mixed;
    bit<128> saturated_add;
    bit<128> saturated_subtract;
    bit<128> both;
    bit<128> either;
    bit<128> differ;
    bit<128> inverted;
    bit<128> negated;
    bit<128> left;
    bit<128> right;
    bit<128> left_constant;
    bit<128> right_constant;
    bit<128> sum_right;
    bit<128> chosen;
    bit<128> larger;
    bit<128> flag;
    bit<137> widened;
    bit<8> flags;
    bit<61> slice;
    bit<61> sum_slice;
    bit<1> top;
    bit<64> cast;
    bit<128> as_signed;
    bit<257> joined;
    bit<3> pad;
}
header operands_int128_h {
    int<128> a; bit<1> c; bit<8> d; int<128> b;
    bit<15> pad0;
}
header results_int128_h {
    int<128> add;
    int<128> subtract;
    int<128> multiply;
    int<128> mixed;
    int<128> saturated_add;
    int<128> saturated_subtract;
    int<128> both;
    int<128> either;
    int<128> differ;
    int<128> inverted;
    int<128> negated;
    int<128> left;
    int<128> right;
    int<128> left_constant;
    int<128> right_constant;
    int<128> sum_right;
    int<128> chosen;
    int<128> larger;
    int<128> flag;
    bit<137> widened;
    bit<8> flags;
    bit<128> as_unsigned;
    bit<65> narrowed;
    bit<1> below;
    bit<5> pad;
}
header operands_bit129_h {
    bit<129> a; bit<1> c; bit<8> d; bit<129> b;
    bit<13> pad0;
}
header results_bit129_h {
    bit<129> add;
    bit<129> subtract;
    bit<129> multiply;
    bit<129> mixed;
    bit<129> saturated_add;
    bit<129> saturated_subtract;
    bit<129> both;
    bit<129> either;
    bit<129> differ;
    bit<129> inverted;
    bit<129> negated;
    bit<129> left;
    bit<129> right;
    bit<129> left_constant;
    bit<129> right_constant;
    bit<129> sum_right;
    bit<129> chosen;
    bit<129> larger;
    bit<129> flag;
    bit<138> widened;
    bit<8> flags;
    bit<61> slice;
    bit<61> sum_slice;
    bit<1> top;
    bit<65> cast;
    bit<129> as_signed;
    bit<259> joined;
    bit<3> pad;
}
header operands_int129_h {
    int<129> a; bit<1> c; bit<8> d; int<129> b;
    bit<13> pad0;
}
header results_int129_h {
    int<129> add;
    int<129> subtract;
    int<129> multiply;
    int<129> mixed;
    int<129> saturated_add;
    int<129> saturated_subtract;
    int<129> both;
    int<129> either;
    int<129> differ;
    int<129> inverted;
    int<129> negated;
    int<129> left;
    int<129> right;
    int<129> left_constant;
    int<129> right_constant;
    int<129> sum_right;
    int<129> chosen;
    int<129> larger;
    int<129> flag;
    bit<138> widened;
    bit<8> flags;
    bit<129> as_unsigned;
    bit<66> narrowed;
    bit<1> below;
    bit<7> pad;
}
struct headers_t { case_h which; operands_bit65_h bit65; results_bit65_h to_bit65; operands_int65_h int65; results_int65_h to_int65; operands_bit127_h bit127; results_bit127_h to_bit127; operands_int127_h int127; results_int127_h to_int127; operands_bit128_h bit128; results_bit128_h to_bit128; operands_int128_h int128; results_int128_h to_int128; operands_bit129_h bit129; results_bit129_h to_bit129; operands_int129_h int129; results_int129_h to_int129; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.which);
        transition select(hdr.which.number) {
            0: bit65;
            1: int65;
            2: bit127;
            3: int127;
            4: bit128;
            5: int128;
            6: bit129;
            7: int129;
            default: accept;
        }
    }
    state bit65 { packet.extract(hdr.bit65); transition accept; }
    state int65 { packet.extract(hdr.int65); transition accept; }
    state bit127 { packet.extract(hdr.bit127); transition accept; }
    state int127 { packet.extract(hdr.int127); transition accept; }
    state bit128 { packet.extract(hdr.bit128); transition accept; }
    state int128 { packet.extract(hdr.int128); transition accept; }
    state bit129 { packet.extract(hdr.bit129); transition accept; }
    state int129 { packet.extract(hdr.int129); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action compute_bit65(inout operands_bit65_h from, inout results_bit65_h to) {
        bit<65> a = from.a; bit<65> b = from.b;
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
        to.left_constant = a << 32;
        to.right_constant = a >> 32;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<65>)(bit<65>)c;
        to.widened = (bit<74>)(bit<74>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[51:21];
        to.sum_slice = (a + b)[51:21];
        to.top = a[64:64];
        to.cast = (bit<33>)(a ^ b);
        to.as_signed = (bit<65>)((int<65>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int65(inout operands_int65_h from, inout results_int65_h to) {
        int<65> a = from.a; int<65> b = from.b;
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
        to.left_constant = a << 32;
        to.right_constant = a >> 32;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<65>)(bit<65>)c;
        to.widened = (bit<74>)(int<74>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<65>)a >> d;
        to.narrowed = (bit<34>)(bit<65>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit127(inout operands_bit127_h from, inout results_bit127_h to) {
        bit<127> a = from.a; bit<127> b = from.b;
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
        to.left_constant = a << 63;
        to.right_constant = a >> 63;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<127>)(bit<127>)c;
        to.widened = (bit<136>)(bit<136>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[101:42];
        to.sum_slice = (a + b)[101:42];
        to.top = a[126:126];
        to.cast = (bit<64>)(a ^ b);
        to.as_signed = (bit<127>)((int<127>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int127(inout operands_int127_h from, inout results_int127_h to) {
        int<127> a = from.a; int<127> b = from.b;
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
        to.left_constant = a << 63;
        to.right_constant = a >> 63;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<127>)(bit<127>)c;
        to.widened = (bit<136>)(int<136>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<127>)a >> d;
        to.narrowed = (bit<65>)(bit<127>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit128(inout operands_bit128_h from, inout results_bit128_h to) {
        bit<128> a = from.a; bit<128> b = from.b;
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
        to.left_constant = a << 64;
        to.right_constant = a >> 64;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<128>)(bit<128>)c;
        to.widened = (bit<137>)(bit<137>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[102:42];
        to.sum_slice = (a + b)[102:42];
        to.top = a[127:127];
        to.cast = (bit<64>)(a ^ b);
        to.as_signed = (bit<128>)((int<128>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int128(inout operands_int128_h from, inout results_int128_h to) {
        int<128> a = from.a; int<128> b = from.b;
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
        to.left_constant = a << 64;
        to.right_constant = a >> 64;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<128>)(bit<128>)c;
        to.widened = (bit<137>)(int<137>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<128>)a >> d;
        to.narrowed = (bit<65>)(bit<128>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit129(inout operands_bit129_h from, inout results_bit129_h to) {
        bit<129> a = from.a; bit<129> b = from.b;
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
        to.left_constant = a << 64;
        to.right_constant = a >> 64;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<129>)(bit<129>)c;
        to.widened = (bit<138>)(bit<138>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[103:43];
        to.sum_slice = (a + b)[103:43];
        to.top = a[128:128];
        to.cast = (bit<65>)(a ^ b);
        to.as_signed = (bit<129>)((int<129>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int129(inout operands_int129_h from, inout results_int129_h to) {
        int<129> a = from.a; int<129> b = from.b;
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
        to.left_constant = a << 64;
        to.right_constant = a >> 64;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<129>)(bit<129>)c;
        to.widened = (bit<138>)(int<138>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<129>)a >> d;
        to.narrowed = (bit<66>)(bit<129>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    apply {
        if (hdr.bit65.isValid()) {
            hdr.to_bit65.setValid();
            compute_bit65(hdr.bit65, hdr.to_bit65);
            hdr.bit65.setInvalid();
        }
        if (hdr.int65.isValid()) {
            hdr.to_int65.setValid();
            compute_int65(hdr.int65, hdr.to_int65);
            hdr.int65.setInvalid();
        }
        if (hdr.bit127.isValid()) {
            hdr.to_bit127.setValid();
            compute_bit127(hdr.bit127, hdr.to_bit127);
            hdr.bit127.setInvalid();
        }
        if (hdr.int127.isValid()) {
            hdr.to_int127.setValid();
            compute_int127(hdr.int127, hdr.to_int127);
            hdr.int127.setInvalid();
        }
        if (hdr.bit128.isValid()) {
            hdr.to_bit128.setValid();
            compute_bit128(hdr.bit128, hdr.to_bit128);
            hdr.bit128.setInvalid();
        }
        if (hdr.int128.isValid()) {
            hdr.to_int128.setValid();
            compute_int128(hdr.int128, hdr.to_int128);
            hdr.int128.setInvalid();
        }
        if (hdr.bit129.isValid()) {
            hdr.to_bit129.setValid();
            compute_bit129(hdr.bit129, hdr.to_bit129);
            hdr.bit129.setInvalid();
        }
        if (hdr.int129.isValid()) {
            hdr.to_int129.setValid();
            compute_int129(hdr.int129, hdr.to_int129);
            hdr.int129.setInvalid();
        }
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(),
    TheDeparser()) main;
