// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One parser state for each thing that parsers can do; the first byte chooses. The report has the error, the path and what
// was read. Frames: kind, argument, rest.
#include <core.p4>
#include <v1model.p4>

const bit<9> OUT_PORT = 2;

error {
    WrongArgument,
    EvenArgument
}

header request_h {
    bit<8> kind;
    bit<8> argument;
}

header pair_h {
    bit<4> high;
    bit<12> low;
}

header long_h {
    bit<20> first;
    bit<100> second;
}

header empty_h { }

header report_h {
    bit<8> parser_error;
    bit<8> path;
    bit<8> flags;
    bit<32> value;
    bit<104> wide;
}

struct headers_t {
    report_h report;
    request_h request;
    pair_h pair;
    pair_h copy;
    long_h long;
    empty_h empty;
}

struct metadata_t {
    bit<8> path;
    bit<32> value;
    bit<104> wide;
}

struct kinds_t {
    bit<8> kind;
    bit<12> low;
}

parser PairParser(packet_in packet, out pair_h pair, inout bit<8> path) {
    state start {
        packet.extract(pair);
        path = path + 1;
        transition select(pair.high) {
            0: reject_it;
            default: accept;
        }
    }

    state reject_it {
        verify(false, error.WrongArgument);
        transition accept;
    }
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    PairParser() pair_parser;
    value_set<bit<8>>(4) known_kinds;
    value_set<kinds_t>(2) known_pairs;
    bit<8> rounds;

    state start {
        rounds = 0;
        packet.extract(hdr.request);
        transition select(hdr.request.kind) {
            known_kinds: known;
            1: look;
            2: look_wide;
            3: skip_constant;
            4: skip_argument;
            5: check;
            6: call;
            7: count;
            8: endless;
            9: choose;
            10: nothing;
            11: extract_long;
            12: change;
            13: pairs;
        }
    }

    state known {
        meta.path = 100;
        transition accept;
    }

    state look {
        meta.value = packet.lookahead<bit<32>>();
        pair_h ahead = packet.lookahead<pair_h>();
        meta.path = (bit<8>)ahead.high;
        hdr.copy = ahead;
        transition select(packet.lookahead<bit<12>>()) {
            0x123: take_pair;
            0x400 &&& 0xf00: accept;
            default: change;
        }
    }

    state look_wide {
        meta.wide = packet.lookahead<bit<104>>();
        long_h ahead = packet.lookahead<long_h>();
        meta.value = (bit<32>)ahead.first;
        transition select(packet.lookahead<bit<104>>()) {
            0x0102030405060708090a0b0c0d: take_pair;
            default: accept;
        }
    }

    state take_pair {
        packet.extract(hdr.pair);
        meta.path = meta.path + 40;
        transition accept;
    }

    state skip_constant {
        packet.advance(24);
        transition take_pair;
    }

    state skip_argument {
        packet.advance((bit<32>)hdr.request.argument);
        meta.path = 4;
        transition take_pair;
    }

    state check {
        verify(hdr.request.argument < 100, error.WrongArgument);
        verify(hdr.request.argument[0:0] == 1, error.EvenArgument);
        meta.path = 6;
        transition take_pair;
    }

    state call {
        pair_parser.apply(packet, hdr.pair, meta.path);
        pair_parser.apply(packet, hdr.copy, meta.path);
        meta.path = meta.path + 60;
        transition accept;
    }

    state count {
        rounds = rounds + 1;
        meta.path = rounds;
        packet.advance(8);
        transition select(rounds == hdr.request.argument) {
            true: accept;
            false: count;
        }
    }

    state endless {
        // Ends with the packet: each pass takes a byte.
        packet.advance(8);
        meta.path = meta.path + 1;
        transition endless;
    }

    state choose {
        packet.extract(hdr.pair);
        transition select(hdr.pair.high, hdr.pair.low, hdr.request.argument) {
            (1, 2, 3): choose_exact;
            (4 .. 7, _, 10 .. 20): choose_range;
            (_, 0x100 &&& 0xf00, _): choose_mask;
        }
    }

    state choose_exact {
        meta.path = 91;
        transition accept;
    }

    state choose_range {
        meta.path = 92;
        transition accept;
    }

    state choose_mask {
        meta.path = 93;
        transition accept;
    }

    state nothing {
        packet.extract(hdr.empty);
        meta.path = 10;
        transition accept;
    }

    state extract_long {
        packet.extract(hdr.long);
        meta.path = 11;
        transition accept;
    }

    state change {
        hdr.copy.setValid();
        hdr.copy.high = 3;
        hdr.copy.low = 7;
        hdr.request.argument = hdr.request.argument + 1;
        hdr.pair = hdr.copy;
        hdr.copy.setInvalid();
        meta.path = meta.path + 12;
        transition accept;
    }

    state pairs {
        packet.extract(hdr.pair);
        meta.path = 13;
        transition select(hdr.request.argument, hdr.pair.low) {
            known_pairs: known;
            (0, 0): accept;
            default: change;
        }
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = OUT_PORT;
        bit<8> code = 255;
        if (standard_metadata.parser_error == error.NoError) {
            code = 0;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            code = 1;
        } else if (standard_metadata.parser_error == error.WrongArgument) {
            code = 2;
        } else if (standard_metadata.parser_error == error.EvenArgument) {
            code = 3;
        } else if (standard_metadata.parser_error == error.ParserInvalidArgument) {
            code = 4;
        }
        bit<8> flags = 0;
        if (hdr.pair.isValid()) {
            flags = flags | 1;
        }
        if (hdr.copy.isValid()) {
            flags = flags | 2;
        }
        if (hdr.long.isValid()) {
            flags = flags | 4;
        }
        if (hdr.empty.isValid()) {
            flags = flags | 8;
        }
        if (hdr.request.isValid()) {
            flags = flags | 16;
        }
        hdr.report.setValid();
        hdr.report.parser_error = code;
        hdr.report.path = meta.path;
        hdr.report.flags = flags;
        hdr.report.value = meta.value;
        hdr.report.wide = meta.wide;
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    apply { }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TheDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.request);
        packet.emit(hdr.pair);
        packet.emit(hdr.copy);
        packet.emit(hdr.long);
        packet.emit(hdr.empty);
    }
}

V1Switch(TheParser(), NoVerify(), TheIngress(), NoEgress(), NoUpdate(), TheDeparser()) main;
