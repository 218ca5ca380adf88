// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is not supported, all at once: header stacks, varbit, meters, action selectors, value sets.
#include <core.p4>
#include <v1model.p4>

header tag_h { bit<8> kind; bit<8> bottom; }
header options_h { bit<8> length; varbit<128> data; }
struct headers_t { tag_h[4] tags; options_h options; }
struct metadata_t { bit<2> colour; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) kinds;
    state start { packet.extract(hdr.tags.next); transition select(hdr.tags.last.kind) { kinds: start; 3: options; default: accept; } }
    state options { packet.extract(hdr.options, 32w64); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    meter(16, MeterType.bytes) rates;
    register<bit<128>>(4) long_register;
    action forward(bit<9> port) { sm.egress_spec = port; bit<128> x; long_register.read(x, 0); long_register.write(0, x); }
    table choose { key = { hdr.tags[0].kind: exact; sm.ingress_port: selector; } actions = { forward; } implementation = action_selector(HashAlgorithm.crc16, 16, 8); }
    apply { rates.execute_meter<bit<2>>(0, md.colour); choose.apply(); random(md.colour, 2w0, 2w3); }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
