// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of the controls, the same for every variant.
//
//   frame -> from the controller or not IPv4 -> packet_io
//         -> other IPv4 -----------------------> ipv4_forward
//         -> UDP to UDP_PORT:
//              packet_validation -> worker_admission -> hot_row -> slot_epoch
//                -> worker_bitmap -> lanes -> round_flags -> result_header -> outcome
//
// Up to worker_bitmap, each stage acts only while no earlier stage has given the packet its outcome;
// the stages after it act on that outcome. All state lies in ingress.
// Egress: result_delivery -> congestion_mark.
control SwitchfoldIngress(inout headers_t hdr,
                          inout metadata_t md,
                          inout standard_metadata_t standard_metadata) {
    counter(PORT_COUNTER_SIZE, CounterType.packets_and_bytes) port_in;
    counter(ORDINARY_COUNTER_SIZE, CounterType.packets_and_bytes) ordinary_outcomes;

    PacketIo() packet_io;
    Ipv4Forward() ipv4_forward;
    PacketValidation() packet_validation;
    WorkerAdmission() worker_admission;
    HotRow() hot_row;
    SlotEpoch() slot_epoch;
    WorkerBitmap() worker_bitmap;
    Lanes() lanes;
    RoundFlags() round_flags;
    ResultHeader() result_header;
    Outcome() outcome;

    apply {
        bit<32> ordinary_outcome;
        port_in.count((bit<32>)standard_metadata.ingress_port);
        if (hdr.packet_out.isValid() || !hdr.ipv4.isValid()) {
            packet_io.apply(hdr, standard_metadata, ordinary_outcome);
            ordinary_outcomes.count(ordinary_outcome);
        } else if (hdr.udp.isValid() && hdr.udp.dst_port == UDP_PORT) {
            packet_validation.apply(hdr, md, standard_metadata);
            worker_admission.apply(hdr, md, standard_metadata);
            hot_row.apply(hdr, md);
            slot_epoch.apply(hdr, md);
            worker_bitmap.apply(hdr, md);
            lanes.apply(hdr, md);
            round_flags.apply(hdr, md);
            result_header.apply(hdr, md, standard_metadata);
            outcome.apply(hdr, md);
        } else {
            ipv4_forward.apply(hdr, standard_metadata, ordinary_outcome);
            ordinary_outcomes.count(ordinary_outcome);
        }
    }
}

control SwitchfoldEgress(inout headers_t hdr,
                         inout metadata_t md,
                         inout standard_metadata_t standard_metadata) {
    counter(PORT_COUNTER_SIZE, CounterType.packets_and_bytes) port_out;

    ResultDelivery() result_delivery;
    CongestionMark() congestion_mark;

    apply {
        result_delivery.apply(hdr, md, standard_metadata);
        if (md.is_undelivered == 0) {
            congestion_mark.apply(hdr, md, standard_metadata);
        }
        if (md.is_undelivered == 0) {
            port_out.count((bit<32>)standard_metadata.egress_port);
        }
    }
}
