// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames from and to the controller: a packet-out leaves unchanged at the port that it names; a
// frame that is not IPv4 goes to the controller as packet-in with its ingress port.
control PacketIo(inout headers_t hdr,
                 inout standard_metadata_t standard_metadata,
                 out bit<32> ordinary_outcome) {
    action send_from_cpu() {
        standard_metadata.egress_spec = hdr.packet_out.egress_port;
        hdr.packet_out.setInvalid();
        ordinary_outcome = ORDINARY_FROM_CPU;
    }

    action send_to_cpu() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in._pad = 0;
        standard_metadata.egress_spec = CPU_PORT;
        ordinary_outcome = ORDINARY_TO_CPU;
    }

    action drop_truncated() {
        mark_to_drop(standard_metadata);
        ordinary_outcome = ORDINARY_TRUNCATED;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            drop_truncated();
        } else if (hdr.packet_out.isValid()) {
            send_from_cpu();
        } else if (hdr.ethernet.ethertype == ETHERTYPE_IPV4) {
            // The IPv4 header did not fit.
            drop_truncated();
        } else {
            send_to_cpu();
        }
    }
}
