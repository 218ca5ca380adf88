// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Unsupported features, all at once: functions and objects of a vendor, which p4c emits with --emit-externs.
#include <core.p4>
#include <v1model.p4>

extern void vendor_stamp<T>(in T value);
extern void vendor_seal();
extern vendor_queue { vendor_queue(bit<8> depth); void push(in bit<8> value); }

header tag_h { bit<8> kind; bit<8> bottom; }
struct headers_t { tag_h tag; }
struct metadata_t { bit<2> colour; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.tag); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    @userextern @name("queue") vendor_queue(8w4) queue;
    action forward(bit<9> port) { sm.egress_spec = port; vendor_stamp(hdr.tag.kind); }
    action seal() { vendor_seal(); queue.push(hdr.tag.kind); }
    table choose { key = { hdr.tag.kind: exact; } actions = { forward; seal; } }
    apply { choose.apply(); }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
