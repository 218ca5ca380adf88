// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the replication engine does not do: clones, resubmission, recirculation, digests, truncation, ageing.
#include <core.p4>
#include <v1model.p4>

header frame_h { bit<8> command; bit<8> seen; }
struct headers_t { frame_h frame; }
struct metadata_t { @field_list(1) bit<8> kept; }
struct digest_t { bit<8> command; bit<9> port; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.frame); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    table stations { key = { hdr.frame.seen: exact; } actions = { NoAction; } support_timeout = true; }
    apply {
        sm.egress_spec = 3;
        stations.apply();
        if (hdr.frame.command == 0) { clone(CloneType.I2E, 5); }
        if (hdr.frame.command == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        if (hdr.frame.command == 2) { digest<digest_t>(1, { hdr.frame.command, sm.ingress_port }); }
        if (hdr.frame.command == 3) { resubmit_preserving_field_list(1); }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {
        if (hdr.frame.command == 4) { clone(CloneType.E2E, 6); }
        if (hdr.frame.command == 5) { recirculate_preserving_field_list(1); }
        if (hdr.frame.command == 6) { truncate(20); }
    }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
