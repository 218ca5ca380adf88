// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A union and a stack of unions: extracted by type, changed as the request asks, emitted. Frames: kind, type of the union,
// its header, options of one or two bytes until type 0, rest.
#include <core.p4>
#include <v1model.p4>

const bit<9> OUT_PORT = 2;

header request_h {
    bit<8> kind;
    bit<8> address_type;
}

header short_h {
    bit<8> number;
}

header long_h {
    bit<16> number;
    bit<8> checksum;
}

header tiny_option_h {
    bit<8> type;
}

header big_option_h {
    bit<8> type;
    bit<16> value;
}

header_union address_u {
    short_h short;
    long_h long;
}

header_union option_u {
    tiny_option_h tiny;
    big_option_h big;
}

header report_h {
    bit<8> parser_error;
    bit<8> flags;
    bit<16> number;
}

struct headers_t {
    report_h report;
    request_h request;
    address_u address;
    option_u[3] options;
}

struct metadata_t {}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.address_type) {
            1: parse_short;
            2: parse_long;
            default: parse_options;
        }
    }

    state parse_short {
        packet.extract(hdr.address.short);
        transition parse_options;
    }

    state parse_long {
        packet.extract(hdr.address.long);
        transition parse_options;
    }

    state parse_options {
        transition select(packet.lookahead<bit<8>>()) {
            0: accept;
            1: parse_tiny;
            default: parse_big;
        }
    }

    state parse_tiny {
        packet.extract(hdr.options.next.tiny);
        transition parse_options;
    }

    state parse_big {
        packet.extract(hdr.options.next.big);
        transition parse_options;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = OUT_PORT;
        if (hdr.request.kind == 1) {
            hdr.address.short.setValid();
            hdr.address.short.number = 17;
        } else if (hdr.request.kind == 2) {
            hdr.address.long.setValid();
        } else if (hdr.request.kind == 3) {
            hdr.address.short.setInvalid();
        } else if (hdr.request.kind == 4) {
            hdr.options[0] = hdr.options[1];
        } else if (hdr.request.kind == 5) {
            hdr.options[1].big.setValid();
            hdr.options[1].big.type = 9;
        } else if (hdr.request.kind == 6) {
            hdr.options[0].tiny = hdr.options[1].tiny;
        }
        bit<8> flags = 0;
        bit<16> number = 0;
        if (hdr.address.isValid()) {
            flags = flags | 1;
        }
        if (hdr.address.short.isValid()) {
            flags = flags | 2;
            number = (bit<16>)hdr.address.short.number;
        }
        if (hdr.address.long.isValid()) {
            flags = flags | 4;
            number = hdr.address.long.number;
        }
        if (hdr.options[0].tiny.isValid()) {
            flags = flags | 8;
        }
        if (hdr.options[0].big.isValid()) {
            flags = flags | 16;
        }
        if (hdr.options[1].tiny.isValid()) {
            flags = flags | 32;
        }
        if (hdr.options[1].big.isValid()) {
            flags = flags | 64;
        }
        if (hdr.options[2].big.isValid()) {
            flags = flags | 128;
        }
        hdr.report.setValid();
        hdr.report.parser_error = (bit<8>)(bit<1>)(standard_metadata.parser_error != error.NoError);
        hdr.report.flags = flags;
        hdr.report.number = number;
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
        packet.emit(hdr.address);
        packet.emit(hdr.options);
    }
}

V1Switch(TheParser(), NoVerify(), TheIngress(), NoEgress(), NoUpdate(), TheDeparser()) main;
