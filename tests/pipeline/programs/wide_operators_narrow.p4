// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operator at several widths; written by tests/pipeline/wide_operators.py.
#include <core.p4>
#include <v1model.p4>

header case_h { bit<8> number; }
header operands_bit1_h {
    bit<1> a; bit<1> c; bit<8> d; bit<1> b;
    bit<13> pad0;
}
header results_bit1_h {
    bit<1> add;
    bit<1> subtract;
    bit<1> multiply;
    bit<1> mixed;
    bit<1> saturated_add;
    bit<1> saturated_subtract;
    bit<1> both;
    bit<1> either;
    bit<1> differ;
    bit<1> inverted;
    bit<1> negated;
    bit<1> left;
    bit<1> right;
    bit<1> left_constant;
    bit<1> right_constant;
    bit<1> sum_right;
    bit<1> chosen;
    bit<1> larger;
    bit<1> flag;
    bit<10> widened;
    bit<8> flags;
    bit<1> slice;
    bit<1> sum_slice;
    bit<1> top;
    bit<1> cast;
    bit<1> as_signed;
    bit<3> joined;
    bit<3> pad;
}
header operands_bit7_h {
    bit<7> a; bit<1> c; bit<8> d; bit<7> b;
    bit<9> pad0;
}
header results_bit7_h {
    bit<7> add;
    bit<7> subtract;
    bit<7> multiply;
    bit<7> mixed;
    bit<7> saturated_add;
    bit<7> saturated_subtract;
    bit<7> both;
    bit<7> either;
    bit<7> differ;
    bit<7> inverted;
    bit<7> negated;
    bit<7> left;
    bit<7> right;
    bit<7> left_constant;
    bit<7> right_constant;
    bit<7> sum_right;
    bit<7> chosen;
    bit<7> larger;
    bit<7> flag;
    bit<16> widened;
    bit<8> flags;
    bit<4> slice;
    bit<4> sum_slice;
    bit<1> top;
    bit<4> cast;
    bit<7> as_signed;
    bit<15> joined;
}
header operands_int7_h {
    int<7> a; bit<1> c; bit<8> d; int<7> b;
    bit<9> pad0;
}
header results_int7_h {
    int<7> add;
    int<7> subtract;
    int<7> multiply;
    int<7> mixed;
    int<7> saturated_add;
    int<7> saturated_subtract;
    int<7> both;
    int<7> either;
    int<7> differ;
    int<7> inverted;
    int<7> negated;
    int<7> left;
    int<7> right;
    int<7> left_constant;
    int<7> right_constant;
    int<7> sum_right;
    int<7> chosen;
    int<7> larger;
    int<7> flag;
    bit<16> widened;
    bit<8> flags;
    bit<7> as_unsigned;
    bit<5> narrowed;
    bit<1> below;
    bit<6> pad;
}
header operands_bit8_h {
    bit<8> a; bit<1> c; bit<8> d; bit<8> b;
    bit<15> pad0;
}
header results_bit8_h {
    bit<8> add;
    bit<8> subtract;
    bit<8> multiply;
    bit<8> mixed;
    bit<8> saturated_add;
    bit<8> saturated_subtract;
    bit<8> both;
    bit<8> either;
    bit<8> differ;
    bit<8> inverted;
    bit<8> negated;
    bit<8> left;
    bit<8> right;
    bit<8> left_constant;
    bit<8> right_constant;
    bit<8> sum_right;
    bit<8> chosen;
    bit<8> larger;
    bit<8> flag;
    bit<17> widened;
    bit<8> flags;
    bit<5> slice;
    bit<5> sum_slice;
    bit<1> top;
    bit<4> cast;
    bit<8> as_signed;
    bit<17> joined;
    bit<7> pad;
}
header operands_int8_h {
    int<8> a; bit<1> c; bit<8> d; int<8> b;
    bit<15> pad0;
}
header results_int8_h {
    int<8> add;
    int<8> subtract;
    int<8> multiply;
    int<8> mixed;
    int<8> saturated_add;
    int<8> saturated_subtract;
    int<8> both;
    int<8> either;
    int<8> differ;
    int<8> inverted;
    int<8> negated;
    int<8> left;
    int<8> right;
    int<8> left_constant;
    int<8> right_constant;
    int<8> sum_right;
    int<8> chosen;
    int<8> larger;
    int<8> flag;
    bit<17> widened;
    bit<8> flags;
    bit<8> as_unsigned;
    bit<5> narrowed;
    bit<1> below;
    bit<1> pad;
}
header operands_bit31_h {
    bit<31> a; bit<1> c; bit<8> d; bit<31> b;
    bit<9> pad0;
}
header results_bit31_h {
    bit<31> add;
    bit<31> subtract;
    bit<31> multiply;
    bit<31> mixed;
    bit<31> saturated_add;
    bit<31> saturated_subtract;
    bit<31> both;
    bit<31> either;
    bit<31> differ;
    bit<31> inverted;
    bit<31> negated;
    bit<31> left;
    bit<31> right;
    bit<31> left_constant;
    bit<31> right_constant;
    bit<31> sum_right;
    bit<31> chosen;
    bit<31> larger;
    bit<31> flag;
    bit<40> widened;
    bit<8> flags;
    bit<15> slice;
    bit<15> sum_slice;
    bit<1> top;
    bit<16> cast;
    bit<31> as_signed;
    bit<63> joined;
    bit<6> pad;
}
header operands_int31_h {
    int<31> a; bit<1> c; bit<8> d; int<31> b;
    bit<9> pad0;
}
header results_int31_h {
    int<31> add;
    int<31> subtract;
    int<31> multiply;
    int<31> mixed;
    int<31> saturated_add;
    int<31> saturated_subtract;
    int<31> both;
    int<31> either;
    int<31> differ;
    int<31> inverted;
    int<31> negated;
    int<31> left;
    int<31> right;
    int<31> left_constant;
    int<31> right_constant;
    int<31> sum_right;
    int<31> chosen;
    int<31> larger;
    int<31> flag;
    bit<40> widened;
    bit<8> flags;
    bit<31> as_unsigned;
    bit<17> narrowed;
    bit<1> below;
    bit<2> pad;
}
header operands_bit33_h {
    bit<33> a; bit<1> c; bit<8> d; bit<33> b;
    bit<13> pad0;
}
header results_bit33_h {
    bit<33> add;
    bit<33> subtract;
    bit<33> multiply;
    bit<33> mixed;
    bit<33> saturated_add;
    bit<33> saturated_subtract;
    bit<33> both;
    bit<33> either;
    bit<33> differ;
    bit<33> inverted;
    bit<33> negated;
    bit<33> left;
    bit<33> right;
    bit<33> left_constant;
    bit<33> right_constant;
    bit<33> sum_right;
    bit<33> chosen;
    bit<33> larger;
    bit<33> flag;
    bit<42> widened;
    bit<8> flags;
    bit<16> slice;
    bit<16> sum_slice;
    bit<1> top;
    bit<17> cast;
    bit<33> as_signed;
    bit<67> joined;
    bit<5> pad;
}
header operands_int33_h {
    int<33> a; bit<1> c; bit<8> d; int<33> b;
    bit<13> pad0;
}
header results_int33_h {
    int<33> add;
    int<33> subtract;
    int<33> multiply;
    int<33> mixed;
    int<33> saturated_add;
    int<33> saturated_subtract;
    int<33> both;
    int<33> either;
    int<33> differ;
    int<33> inverted;
    int<33> negated;
    int<33> left;
    int<33> right;
    int<33> left_constant;
    int<33> right_constant;
    int<33> sum_right;
    int<33> chosen;
    int<33> larger;
    int<33> flag;
    bit<42> widened;
    bit<8> flags;
    bit<33> as_unsigned;
    bit<18> narrowed;
    bit<1> below;
    bit<7> pad;
}
header operands_bit63_h {
    bit<63> a; bit<1> c; bit<8> d; bit<63> b;
    bit<9> pad0;
}
header results_bit63_h {
    bit<63> add;
    bit<63> subtract;
    bit<63> multiply;
    bit<63> mixed;
    bit<63> saturated_add;
    bit<63> saturated_subtract;
    bit<63> both;
    bit<63> either;
    bit<63> differ;
    bit<63> inverted;
    bit<63> negated;
    bit<63> left;
    bit<63> right;
    bit<63> left_constant;
    bit<63> right_constant;
    bit<63> sum_right;
    bit<63> chosen;
    bit<63> larger;
    bit<63> flag;
    bit<72> widened;
    bit<8> flags;
    bit<30> slice;
    bit<30> sum_slice;
    bit<1> top;
    bit<32> cast;
    bit<63> as_signed;
    bit<127> joined;
}
header operands_int63_h {
    int<63> a; bit<1> c; bit<8> d; int<63> b;
    bit<9> pad0;
}
header results_int63_h {
    int<63> add;
    int<63> subtract;
    int<63> multiply;
    int<63> mixed;
    int<63> saturated_add;
    int<63> saturated_subtract;
    int<63> both;
    int<63> either;
    int<63> differ;
    int<63> inverted;
    int<63> negated;
    int<63> left;
    int<63> right;
    int<63> left_constant;
    int<63> right_constant;
    int<63> sum_right;
    int<63> chosen;
    int<63> larger;
    int<63> flag;
    bit<72> widened;
    bit<8> flags;
    bit<63> as_unsigned;
    bit<33> narrowed;
    bit<1> below;
    bit<2> pad;
}
header operands_bit64_h {
    bit<64> a; bit<1> c; bit<8> d; bit<64> b;
    bit<15> pad0;
}
header results_bit64_h {
    bit<64> add;
    bit<64> subtract;
    bit<64> multiply;
    bit<64> mixed;
    bit<64> saturated_add;
    bit<64> saturated_subtract;
    bit<64> both;
    bit<64> either;
    bit<64> differ;
    bit<64> inverted;
    bit<64> negated;
    bit<64> left;
    bit<64> right;
    bit<64> left_constant;
    bit<64> right_constant;
    bit<64> sum_right;
    bit<64> chosen;
    bit<64> larger;
    bit<64> flag;
    bit<73> widened;
    bit<8> flags;
    bit<31> slice;
    bit<31> sum_slice;
    bit<1> top;
    bit<32> cast;
    bit<64> as_signed;
    bit<129> joined;
    bit<7> pad;
}
header operands_int64_h {
    int<64> a; bit<1> c; bit<8> d; int<64> b;
    bit<15> pad0;
}
header results_int64_h {
    int<64> add;
    int<64> subtract;
    int<64> multiply;
    int<64> mixed;
    int<64> saturated_add;
    int<64> saturated_subtract;
    int<64> both;
    int<64> either;
    int<64> differ;
    int<64> inverted;
    int<64> negated;
    int<64> left;
    int<64> right;
    int<64> left_constant;
    int<64> right_constant;
    int<64> sum_right;
    int<64> chosen;
    int<64> larger;
    int<64> flag;
    bit<73> widened;
    bit<8> flags;
    bit<64> as_unsigned;
    bit<33> narrowed;
    bit<1> below;
    bit<5> pad;
}
struct headers_t { case_h which; operands_bit1_h bit1; results_bit1_h to_bit1; operands_bit7_h bit7; results_bit7_h to_bit7; operands_int7_h int7; results_int7_h to_int7; operands_bit8_h bit8; results_bit8_h to_bit8; operands_int8_h int8; results_int8_h to_int8; operands_bit31_h bit31; results_bit31_h to_bit31; operands_int31_h int31; results_int31_h to_int31; operands_bit33_h bit33; results_bit33_h to_bit33; operands_int33_h int33; results_int33_h to_int33; operands_bit63_h bit63; results_bit63_h to_bit63; operands_int63_h int63; results_int63_h to_int63; operands_bit64_h bit64; results_bit64_h to_bit64; operands_int64_h int64; results_int64_h to_int64; }
struct metadata_t { }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.which);
        transition select(hdr.which.number) {
            0: bit1;
            1: bit7;
            2: int7;
            3: bit8;
            4: int8;
            5: bit31;
            6: int31;
            7: bit33;
            8: int33;
            9: bit63;
            10: int63;
            11: bit64;
            12: int64;
            default: accept;
        }
    }
    state bit1 { packet.extract(hdr.bit1); transition accept; }
    state bit7 { packet.extract(hdr.bit7); transition accept; }
    state int7 { packet.extract(hdr.int7); transition accept; }
    state bit8 { packet.extract(hdr.bit8); transition accept; }
    state int8 { packet.extract(hdr.int8); transition accept; }
    state bit31 { packet.extract(hdr.bit31); transition accept; }
    state int31 { packet.extract(hdr.int31); transition accept; }
    state bit33 { packet.extract(hdr.bit33); transition accept; }
    state int33 { packet.extract(hdr.int33); transition accept; }
    state bit63 { packet.extract(hdr.bit63); transition accept; }
    state int63 { packet.extract(hdr.int63); transition accept; }
    state bit64 { packet.extract(hdr.bit64); transition accept; }
    state int64 { packet.extract(hdr.int64); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action compute_bit1(inout operands_bit1_h from, inout results_bit1_h to) {
        bit<1> a = from.a; bit<1> b = from.b;
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
        to.left_constant = a << 0;
        to.right_constant = a >> 0;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<1>)(bit<1>)c;
        to.widened = (bit<10>)(bit<10>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[0:0];
        to.sum_slice = (a + b)[0:0];
        to.top = a[0:0];
        to.cast = (bit<1>)(a ^ b);
        to.as_signed = a;
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_bit7(inout operands_bit7_h from, inout results_bit7_h to) {
        bit<7> a = from.a; bit<7> b = from.b;
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
        to.left_constant = a << 3;
        to.right_constant = a >> 3;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<7>)(bit<7>)c;
        to.widened = (bit<16>)(bit<16>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[5:2];
        to.sum_slice = (a + b)[5:2];
        to.top = a[6:6];
        to.cast = (bit<4>)(a ^ b);
        to.as_signed = (bit<7>)((int<7>)a >> d);
        to.joined = a ++ c ++ b;
    }
    action compute_int7(inout operands_int7_h from, inout results_int7_h to) {
        int<7> a = from.a; int<7> b = from.b;
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
        to.left_constant = a << 3;
        to.right_constant = a >> 3;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<7>)(bit<7>)c;
        to.widened = (bit<16>)(int<16>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<7>)a >> d;
        to.narrowed = (bit<5>)(bit<7>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit8(inout operands_bit8_h from, inout results_bit8_h to) {
        bit<8> a = from.a; bit<8> b = from.b;
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
        to.left_constant = a << 4;
        to.right_constant = a >> 4;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<8>)(bit<8>)c;
        to.widened = (bit<17>)(bit<17>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[6:2];
        to.sum_slice = (a + b)[6:2];
        to.top = a[7:7];
        to.cast = (bit<4>)(a ^ b);
        to.as_signed = (bit<8>)((int<8>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int8(inout operands_int8_h from, inout results_int8_h to) {
        int<8> a = from.a; int<8> b = from.b;
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
        to.left_constant = a << 4;
        to.right_constant = a >> 4;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<8>)(bit<8>)c;
        to.widened = (bit<17>)(int<17>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<8>)a >> d;
        to.narrowed = (bit<5>)(bit<8>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit31(inout operands_bit31_h from, inout results_bit31_h to) {
        bit<31> a = from.a; bit<31> b = from.b;
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
        to.left_constant = a << 15;
        to.right_constant = a >> 15;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<31>)(bit<31>)c;
        to.widened = (bit<40>)(bit<40>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[24:10];
        to.sum_slice = (a + b)[24:10];
        to.top = a[30:30];
        to.cast = (bit<16>)(a ^ b);
        to.as_signed = (bit<31>)((int<31>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int31(inout operands_int31_h from, inout results_int31_h to) {
        int<31> a = from.a; int<31> b = from.b;
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
        to.left_constant = a << 15;
        to.right_constant = a >> 15;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<31>)(bit<31>)c;
        to.widened = (bit<40>)(int<40>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<31>)a >> d;
        to.narrowed = (bit<17>)(bit<31>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit33(inout operands_bit33_h from, inout results_bit33_h to) {
        bit<33> a = from.a; bit<33> b = from.b;
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
        to.left_constant = a << 16;
        to.right_constant = a >> 16;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<33>)(bit<33>)c;
        to.widened = (bit<42>)(bit<42>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[26:11];
        to.sum_slice = (a + b)[26:11];
        to.top = a[32:32];
        to.cast = (bit<17>)(a ^ b);
        to.as_signed = (bit<33>)((int<33>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int33(inout operands_int33_h from, inout results_int33_h to) {
        int<33> a = from.a; int<33> b = from.b;
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
        to.left_constant = a << 16;
        to.right_constant = a >> 16;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<33>)(bit<33>)c;
        to.widened = (bit<42>)(int<42>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<33>)a >> d;
        to.narrowed = (bit<18>)(bit<33>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit63(inout operands_bit63_h from, inout results_bit63_h to) {
        bit<63> a = from.a; bit<63> b = from.b;
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
        to.left_constant = a << 31;
        to.right_constant = a >> 31;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (bit<63>)(bit<63>)c;
        to.widened = (bit<72>)(bit<72>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[50:21];
        to.sum_slice = (a + b)[50:21];
        to.top = a[62:62];
        to.cast = (bit<32>)(a ^ b);
        to.as_signed = (bit<63>)((int<63>)a >> d);
        to.joined = a ++ c ++ b;
    }
    action compute_int63(inout operands_int63_h from, inout results_int63_h to) {
        int<63> a = from.a; int<63> b = from.b;
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
        to.left_constant = a << 31;
        to.right_constant = a >> 31;
        to.sum_right = (a + b) >> d;
        to.chosen = c == 1 ? a : b;
        to.larger = a > b ? a : b;
        to.flag = (int<63>)(bit<63>)c;
        to.widened = (bit<72>)(int<72>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<63>)a >> d;
        to.narrowed = (bit<33>)(bit<63>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    action compute_bit64(inout operands_bit64_h from, inout results_bit64_h to) {
        bit<64> a = from.a; bit<64> b = from.b;
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
        to.flag = (bit<64>)(bit<64>)c;
        to.widened = (bit<73>)(bit<73>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.slice = a[51:21];
        to.sum_slice = (a + b)[51:21];
        to.top = a[63:63];
        to.cast = (bit<32>)(a ^ b);
        to.as_signed = (bit<64>)((int<64>)a >> d);
        to.joined = a ++ c ++ b;
        to.pad = 0;
    }
    action compute_int64(inout operands_int64_h from, inout results_int64_h to) {
        int<64> a = from.a; int<64> b = from.b;
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
        to.flag = (int<64>)(bit<64>)c;
        to.widened = (bit<73>)(int<73>)a;
        to.flags = (a == b ? 1w1 : 1w0) ++ (a != b ? 1w1 : 1w0) ++ (a < b ? 1w1 : 1w0) ++ (a <= b ? 1w1 : 1w0) ++ (a > b ? 1w1 : 1w0) ++ (a >= b ? 1w1 : 1w0) ++ (a + b > b ? 1w1 : 1w0) ++ (c == 1 ? 1w1 : 1w0);
        to.as_unsigned = (bit<64>)a >> d;
        to.narrowed = (bit<33>)(bit<64>)(a - b);
        to.below = (a < -5 ? 1w1 : 1w0);
        to.pad = 0;
    }
    apply {
        if (hdr.bit1.isValid()) {
            hdr.to_bit1.setValid();
            compute_bit1(hdr.bit1, hdr.to_bit1);
            hdr.bit1.setInvalid();
        }
        if (hdr.bit7.isValid()) {
            hdr.to_bit7.setValid();
            compute_bit7(hdr.bit7, hdr.to_bit7);
            hdr.bit7.setInvalid();
        }
        if (hdr.int7.isValid()) {
            hdr.to_int7.setValid();
            compute_int7(hdr.int7, hdr.to_int7);
            hdr.int7.setInvalid();
        }
        if (hdr.bit8.isValid()) {
            hdr.to_bit8.setValid();
            compute_bit8(hdr.bit8, hdr.to_bit8);
            hdr.bit8.setInvalid();
        }
        if (hdr.int8.isValid()) {
            hdr.to_int8.setValid();
            compute_int8(hdr.int8, hdr.to_int8);
            hdr.int8.setInvalid();
        }
        if (hdr.bit31.isValid()) {
            hdr.to_bit31.setValid();
            compute_bit31(hdr.bit31, hdr.to_bit31);
            hdr.bit31.setInvalid();
        }
        if (hdr.int31.isValid()) {
            hdr.to_int31.setValid();
            compute_int31(hdr.int31, hdr.to_int31);
            hdr.int31.setInvalid();
        }
        if (hdr.bit33.isValid()) {
            hdr.to_bit33.setValid();
            compute_bit33(hdr.bit33, hdr.to_bit33);
            hdr.bit33.setInvalid();
        }
        if (hdr.int33.isValid()) {
            hdr.to_int33.setValid();
            compute_int33(hdr.int33, hdr.to_int33);
            hdr.int33.setInvalid();
        }
        if (hdr.bit63.isValid()) {
            hdr.to_bit63.setValid();
            compute_bit63(hdr.bit63, hdr.to_bit63);
            hdr.bit63.setInvalid();
        }
        if (hdr.int63.isValid()) {
            hdr.to_int63.setValid();
            compute_int63(hdr.int63, hdr.to_int63);
            hdr.int63.setInvalid();
        }
        if (hdr.bit64.isValid()) {
            hdr.to_bit64.setValid();
            compute_bit64(hdr.bit64, hdr.to_bit64);
            hdr.bit64.setInvalid();
        }
        if (hdr.int64.isValid()) {
            hdr.to_int64.setValid();
            compute_int64(hdr.int64, hdr.to_int64);
            hdr.int64.setInvalid();
        }
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(),
    TheDeparser()) main;
