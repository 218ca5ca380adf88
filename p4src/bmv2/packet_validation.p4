// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that need only the packet. The first check that fails gives the outcome.
control PacketValidation(inout headers_t hdr,
                         inout metadata_t md,
                         in standard_metadata_t standard_metadata) {
    apply {
        // 64 bits: chunk_index * VALUES_PER_PACKET must not wrap around into a valid start.
        bit<64> grid_start = 0;
        bit<32> range_elements = 0;
        if (!hdr.lanes.isValid()
            || hdr.ipv4.total_length != IPV4_TOTAL_LENGTH
            || hdr.udp.length != UDP_LENGTH
            || (hdr.ipv4.flags & IPV4_MORE_FRAGMENTS) != 0) {
            md.outcome = OUTCOME_BAD_LENGTH;
        } else if (standard_metadata.checksum_error == 1) {
            md.outcome = OUTCOME_BAD_CHECKSUM;
        } else if (hdr.switchfold.version != WIRE_VERSION) {
            md.outcome = OUTCOME_BAD_VERSION;
        } else if (hdr.switchfold.operation < OPERATION_AGGREGATE_ADD
                   || hdr.switchfold.operation > OPERATION_WRITE) {
            md.outcome = OUTCOME_BAD_OPERATION;
        } else {
            grid_start = (bit<64>)hdr.switchfold.chunk_index * (bit<64>)VALUES_PER_PACKET;
            range_elements = hdr.switchfold.range_end - hdr.switchfold.range_start;
            if (hdr.switchfold.range_start >= hdr.switchfold.range_end
                || range_elements > VALUES_PER_PACKET) {
                md.outcome = OUTCOME_BAD_RANGE;
            } else if (grid_start != (bit<64>)hdr.switchfold.range_start) {
                md.outcome = OUTCOME_OFF_GRID;
            }
        }
    }
}
