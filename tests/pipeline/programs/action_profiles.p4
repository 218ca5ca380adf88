// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Action profiles and selectors: one table each, two tables that share one, selectors of several hash functions.
#include <core.p4>
#include <v1model.p4>

header flow_h { bit<8> kind; bit<8> key; bit<9> c; bit<7> d; bit<32> e; bit<8> hit; bit<8> ran; bit<16> value; bit<16> shared; }
header more_h { bit<48> f; }
struct headers_t { flow_h flow; more_h more; }
struct metadata_t { bit<16> seed; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.flow); transition select(hdr.flow.d) { 1: more; default: accept; } }
    state more { packet.extract(hdr.more); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action_profile(32w16) members_only;
    action_selector(HashAlgorithm.crc16, 32w64, 32w16) by_crc16;
    action_selector(HashAlgorithm.crc32, 32w64, 32w32) by_crc32;
    action_selector(HashAlgorithm.identity, 32w64, 32w32) by_identity;
    action_selector(HashAlgorithm.csum16, 32w64, 32w32) by_sum;
    action set_value(bit<16> value) { hdr.flow.value = value; }
    action set_shared(bit<16> value) { hdr.flow.shared = value; }
    action both(bit<16> value, bit<16> shared) { hdr.flow.value = value; hdr.flow.shared = shared; }
    table profile { key = { hdr.flow.key: exact; } actions = { set_value; both; NoAction; } implementation = members_only; size = 64; }
    table profile_twin { key = { hdr.flow.e: lpm; } actions = { both; set_value; NoAction; } implementation = members_only; size = 64; }
    table crc16 { key = { hdr.flow.key: exact; hdr.flow.c: selector; hdr.flow.e: selector; hdr.flow.d: selector; } actions = { set_value; both; } implementation = by_crc16; size = 64; }
    table crc32 { key = { hdr.flow.key: ternary; hdr.flow.c: selector; hdr.flow.e: selector; hdr.more.f: selector; } actions = { set_value; NoAction; } implementation = by_crc32; size = 64; }
    table identity { key = { hdr.flow.key: exact; hdr.flow.e: selector; } actions = { set_value; NoAction; } implementation = by_identity; size = 64; }
    table sum { key = { hdr.flow.key: exact; hdr.flow.e: selector; md.seed: selector; } actions = { set_value; NoAction; } implementation = by_sum; size = 64; }
    apply {
        md.seed = hdr.flow.value;
        hdr.flow.value = 0;
        hdr.flow.hit = 0;
        if (hdr.flow.kind == 1) {
            if (profile.apply().hit) { hdr.flow.hit = 1; }
        } else if (hdr.flow.kind == 2) {
            // simple_switch exits if the next table after a shared profile's member depends on the action.
            if (profile_twin.apply().hit) { hdr.flow.hit = 1; }
        }
        else if (hdr.flow.kind == 3) {
            switch (crc16.apply().action_run) { set_value: { hdr.flow.ran = 1; } both: { hdr.flow.ran = 2; } default: { hdr.flow.ran = 3; } }
        }
        else if (hdr.flow.kind == 4) { if (crc32.apply().hit) { hdr.flow.hit = 1; } }
        else if (hdr.flow.kind == 5) { if (identity.apply().hit) { hdr.flow.hit = 1; } else { hdr.flow.hit = 2; } }
        else if (hdr.flow.kind == 6) { if (sum.apply().hit) { hdr.flow.hit = 1; } }
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.flow); packet.emit(hdr.more); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
