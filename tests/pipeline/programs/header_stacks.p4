// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A stack of labels: parsed until its bottom, then changed as the first byte of the packet asks. The report says what
// parser and control found. Frames: kind, argument, labels, rest.
#include <core.p4>
#include <v1model.p4>

const bit<9> OUT_PORT = 2;

header request_h {
    bit<8> kind;
    bit<8> argument;
}

header label_h {
    bit<7> tag;
    bit<1> is_bottom;
    bit<8> hops;
}

header report_h {
    bit<8> parser_error;
    bit<8> last_index;
    bit<8> last_hops;
    bit<8> seen;
    bit<8> flags;
}

struct headers_t {
    report_h report;
    request_h request;
    label_h[3] labels;
    label_h[3] saved;
}

struct metadata_t {
    bit<8> last_index;
    bit<8> last_hops;
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.kind) {
            0: accept;
            default: parse_label;
        }
    }

    state parse_label {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.is_bottom) {
            0: parse_label;
            1: parse_end;
        }
    }

    state parse_end {
        meta.last_index = (bit<8>)hdr.labels.lastIndex;
        meta.last_hops = hdr.labels.last.hops;
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<8> seen = 0;
    bit<8> flags = 0;

    action note(bit<8> value) {
        seen = value;
    }

    table first_label {
        key = {
            hdr.labels[0].isValid(): exact;
            hdr.labels[0].tag: ternary;
            hdr.labels[2].hops: ternary;
        }
        actions = { note; NoAction; }
        default_action = NoAction;
        const entries = {
            (true, 5, _): note(50);
            (true, _, 9): note(90);
            (false, _, _): note(99);
        }
    }

    apply {
        standard_metadata.egress_spec = OUT_PORT;
        first_label.apply();
        bit<8> at = hdr.request.argument;
        if (hdr.request.kind == 1) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].tag = 33;
            hdr.labels[0].hops = at;
        } else if (hdr.request.kind == 2) {
            hdr.labels.pop_front(1);
        } else if (hdr.request.kind == 3) {
            hdr.labels.pop_front(2);
            hdr.labels.push_front(1);
        } else if (hdr.request.kind == 4) {
            hdr.labels[at].hops = hdr.labels[at].hops - 1;
            seen = hdr.labels[at].hops;
        } else if (hdr.request.kind == 5) {
            hdr.labels[at].setInvalid();
        } else if (hdr.request.kind == 6) {
            hdr.saved = hdr.labels;
            hdr.labels[1].hops = 77;
        } else if (hdr.request.kind == 7) {
            hdr.labels[2] = hdr.labels[at];
        } else if (hdr.request.kind == 8) {
            if (hdr.labels[0] == hdr.labels[1]) {
                seen = 1;
            } else {
                seen = 2;
            }
        } else if (hdr.request.kind == 9) {
            hdr.labels.push_front(5);
        } else if (hdr.request.kind == 10) {
            hdr.labels.pop_front(3);
        }
        if (hdr.labels[0].isValid()) {
            flags = flags | 1;
        }
        if (hdr.labels[1].isValid()) {
            flags = flags | 2;
        }
        if (hdr.labels[2].isValid()) {
            flags = flags | 4;
        }
        hdr.report.setValid();
        hdr.report.parser_error = 0;
        if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.report.parser_error = 1;
        } else if (standard_metadata.parser_error != error.NoError) {
            hdr.report.parser_error = 2;
        }
        hdr.report.last_index = meta.last_index;
        hdr.report.last_hops = meta.last_hops;
        hdr.report.seen = seen;
        hdr.report.flags = flags;
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
        packet.emit(hdr.labels);
        packet.emit(hdr.saved);
    }
}

V1Switch(TheParser(), NoVerify(), TheIngress(), NoEgress(), NoUpdate(), TheDeparser()) main;
