// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fields of variable length: a byte-aligned one whose length the packet gives in bits, and one between two half bytes in a
// stack. Frames: kind, length in bits (16 bits), options, items of a length in bytes (4 bits) until length 0, rest.
#include <core.p4>
#include <v1model.p4>

const bit<9> OUT_PORT = 2;

header request_h {
    bit<8> kind;
    bit<16> length_bits;
}

header options_h {
    bit<8> before;
    varbit<64> data;
    bit<16> after;
}

header item_h {
    bit<4> count;
    varbit<40> data;
    bit<4> tail;
}

header report_h {
    bit<8> parser_error;
    bit<8> flags;
    bit<16> checksum;
    bit<32> crc;
}

struct headers_t {
    report_h report;
    request_h request;
    options_h options;
    options_h copy;
    item_h[2] items;
}

struct metadata_t {
    bit<1> is_equal;
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        packet.extract(hdr.options, (bit<32>)hdr.request.length_bits);
        transition parse_items;
    }

    state parse_items {
        bit<4> count = packet.lookahead<bit<4>>();
        transition select(count) {
            0: accept;
            default: parse_item;
        }
    }

    state parse_item {
        bit<4> count = packet.lookahead<bit<4>>();
        packet.extract(hdr.items.next, ((bit<32>)count - 1) << 3);
        transition parse_items;
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
            hdr.copy = hdr.options;
            hdr.copy.before = 1;
        } else if (hdr.request.kind == 2) {
            hdr.options.setInvalid();
            hdr.options.setValid();
        } else if (hdr.request.kind == 3) {
            hdr.items.pop_front(1);
        } else if (hdr.request.kind == 4) {
            hdr.items.push_front(1);
        } else if (hdr.request.kind == 5 && hdr.options.isValid()) {
            hdr.copy.setValid();
            hdr.copy.data = hdr.options.data;
            hdr.copy.after = 5;
        } else if (hdr.request.kind == 6) {
            hdr.items[0] = hdr.items[1];
        } else if (hdr.request.kind == 7) {
            hdr.options.setInvalid();
        }
        hdr.report.setValid();
        hdr.report.parser_error = 0;
        if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.report.parser_error = 1;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.report.parser_error = 2;
        } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.report.parser_error = 3;
        } else if (standard_metadata.parser_error == error.ParserInvalidArgument) {
            hdr.report.parser_error = 4;
        }
        bit<8> flags = 0;
        if (hdr.options.isValid()) {
            flags = flags | 1;
        }
        if (hdr.items[0].isValid()) {
            flags = flags | 2;
        }
        if (hdr.items[1].isValid()) {
            flags = flags | 4;
        }
        if (hdr.items[0].isValid() && hdr.items[1].isValid()) {
            if (hdr.items[0].data == hdr.items[1].data) {
                flags = flags | 8;
            }
        }
        if (hdr.items[0] == hdr.items[1]) {
            flags = flags | 16;
        }
        hdr.report.flags = flags;
    }
}

control TheEgress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply { }
}

control TheUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(true,
            { hdr.request.kind, hdr.options.before, hdr.options.data, hdr.options.after,
              hdr.items[0].count, hdr.items[0].data, hdr.items[0].tail },
            hdr.report.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.options.isValid(),
            { hdr.options.data, hdr.report.checksum },
            hdr.report.crc, HashAlgorithm.crc32);
    }
}

control TheDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.request);
        packet.emit(hdr.options);
        packet.emit(hdr.copy);
        packet.emit(hdr.items);
    }
}

V1Switch(TheParser(), NoVerify(), TheIngress(), TheEgress(), TheUpdate(), TheDeparser()) main;
