// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Marks packets if many packets wait for the port: by ECN (RFC 3168) in every IPv4 header that can
// carry the mark, and also in the header of a result, a multicast or values that were read, because
// not every host can read ECN. Ordinary packets that cannot carry the mark are dropped: otherwise
// their senders would fill the queue and starve senders that react to marks.
control CongestionMark(inout headers_t hdr,
                       inout metadata_t md,
                       inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets_and_bytes) congestion_drops;

    // The ECN bits are the lowest of their 16-bit word: if n is added there, the complement of n is
    // added to the checksum, and the carry at the end (RFC 1141). The switch's own packets get their
    // checksums later.
    action mark_packet() {
        bit<16> added = (bit<16>)(ECN_CONGESTION_EXPERIENCED - hdr.ipv4.ecn);
        bit<17> sum = (bit<17>)hdr.ipv4.checksum + (bit<17>)(~added);
        hdr.ipv4.checksum = (bit<16>)(sum + (sum >= 0xffff ? 17w1 : 17w0));
        hdr.ipv4.ecn = ECN_CONGESTION_EXPERIENCED;
    }

    action mark_result() {
        hdr.switchfold.flags = hdr.switchfold.flags | FLAG_ECN_ECHO;
    }

    action drop_congested() {
        congestion_drops.count(0);
        mark_to_drop(standard_metadata);
        md.is_undelivered = 1;
    }

    apply {
        if (standard_metadata.enq_qdepth >= CONGESTION_MARK_DEPTH && hdr.ipv4.isValid()) {
            if (hdr.ipv4.ecn == ECN_CAPABLE || hdr.ipv4.ecn == ECN_CAPABLE_1) {
                mark_packet();
                if (hdr.switchfold.isValid()
                    && (hdr.switchfold.operation == OPERATION_RESULT
                        || hdr.switchfold.operation == OPERATION_MULTICAST
                        || hdr.switchfold.operation == OPERATION_READ)) {
                    mark_result();
                }
            } else if (hdr.ipv4.ecn == ECN_NOT_CAPABLE && !hdr.switchfold.isValid()) {
                drop_congested();
            }
        }
    }
}
