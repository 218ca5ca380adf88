// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checksums verified and updated, with conditions, payload, several algorithms, fields of invalid headers, odd widths, and in
// an order that matters. Frames: flags (which headers follow), then those headers, rest.
#include <core.p4>
#include <v1model.p4>

const bit<9> OUT_PORT = 2;

header request_h {
    bit<8> flags;
    bit<16> checksum;
}

header odd_h {
    bit<3> first;
    bit<13> second;
    bit<8> third;
}

header wide_h {
    bit<4> nibble;
    bit<100> number;
}

header label_h {
    bit<24> value;
}

header result_h {
    bit<8> checksum_error;
    bit<16> sum;
    bit<16> sum_of_payload;
    bit<16> crc16;
    bit<32> crc32;
    bit<32> crc32_of_payload;
    bit<16> xor16;
    bit<64> same;
    bit<16> custom;
    bit<16> skipped;
    bit<32> of_sums;
    bit<16> in_control;
}

struct headers_t {
    result_h result;
    request_h request;
    odd_h odd;
    wide_h wide;
    label_h[2] labels;
}

struct metadata_t {
    bit<5> constant;
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        meta.constant = 21;
        transition select(hdr.request.flags[0:0]) {
            1: parse_odd;
            default: after_odd;
        }
    }

    state parse_odd {
        packet.extract(hdr.odd);
        transition after_odd;
    }

    state after_odd {
        transition select(hdr.request.flags[1:1]) {
            1: parse_wide;
            default: after_wide;
        }
    }

    state parse_wide {
        packet.extract(hdr.wide);
        transition after_wide;
    }

    state after_wide {
        transition select(hdr.request.flags[3:2]) {
            1: parse_label;
            2: parse_two_labels;
            default: accept;
        }
    }

    state parse_two_labels {
        packet.extract(hdr.labels.next);
        transition parse_label;
    }

    state parse_label {
        packet.extract(hdr.labels.next);
        transition accept;
    }
}

control TheVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.request.flags[7:7] == 1, { hdr.request.flags, hdr.odd, hdr.labels[0], hdr.labels[1] },
                        hdr.request.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.request.flags[6:6] == 1, { hdr.request.flags },
                                     hdr.request.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.request.flags[5:5] == 1, { hdr.request.flags, hdr.wide },
                        hdr.request.checksum, HashAlgorithm.crc32);
    }
}

control TheIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = OUT_PORT;
        hdr.result.setValid();
        hdr.result.checksum_error = (bit<8>)standard_metadata.checksum_error;
        hdr.result.skipped = 0xabcd;
        if (hdr.odd.isValid() && hdr.wide.isValid()) {
            hash(hdr.result.in_control, HashAlgorithm.crc16, 16w0,
                 { hdr.odd.first, hdr.wide.number, hdr.odd.second, meta.constant }, 32w0x10000);
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    apply { }
}

control TheUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(true, { hdr.request, hdr.odd, hdr.wide, 24w0x123456, hdr.labels[0], hdr.labels[1] },
                        hdr.result.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.request.flags, hdr.labels[0].value },
                                     hdr.result.sum_of_payload, HashAlgorithm.csum16);
        update_checksum(true, { hdr.odd.third, hdr.odd.first, hdr.odd.second, meta.constant },
                        hdr.result.crc16, HashAlgorithm.crc16);
        update_checksum(true, { hdr.request.flags, hdr.wide.number, hdr.wide.nibble, hdr.labels[0], hdr.labels[1] },
                        hdr.result.crc32, HashAlgorithm.crc32);
        update_checksum_with_payload(true, { hdr.request.flags, hdr.odd.first },
                                     hdr.result.crc32_of_payload, HashAlgorithm.crc32);
        update_checksum_with_payload(true, { hdr.request.flags, hdr.labels[1].value },
                                     hdr.result.xor16, HashAlgorithm.xor16);
        update_checksum_with_payload(true, { hdr.request.flags, hdr.odd.third, hdr.wide.nibble },
                                     hdr.result.same, HashAlgorithm.identity);
        update_checksum(true, { hdr.labels[0], hdr.labels[1], hdr.request.flags },
                        hdr.result.custom, HashAlgorithm.crc16_custom);
        update_checksum(hdr.wide.isValid() && hdr.odd.isValid(), { hdr.request.flags },
                        hdr.result.skipped, HashAlgorithm.csum16);
        update_checksum(true, { hdr.result.sum, hdr.result.crc16, hdr.result.skipped },
                        hdr.result.of_sums, HashAlgorithm.crc32_custom);
    }
}

control TheDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(TheParser(), TheVerify(), TheIngress(), NoEgress(), TheUpdate(), TheDeparser()) main;
