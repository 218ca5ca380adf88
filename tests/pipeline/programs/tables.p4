// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every match kind, constant entries, direct counters, wide keys, checksums.
#include <core.p4>
#include <v1model.p4>

header ethernet_h { bit<48> dst; bit<48> src; bit<16> ethertype; }
header ipv4_h { bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length; bit<16> id; bit<3> flags; bit<13> fragment; bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst; }
header ipv6_h { bit<4> version; bit<8> traffic_class; bit<20> flow; bit<16> length; bit<8> next; bit<8> hops; bit<128> src; bit<128> dst; }
header ports_h { bit<16> src; bit<16> dst; }
struct headers_t { ethernet_h ethernet; ipv4_h ipv4; ipv6_h ipv6; ports_h ports; }
struct metadata_t { bit<8> mark; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.ethernet); transition select(hdr.ethernet.ethertype) { 0x0800: ipv4; 0x86dd: ipv6; default: accept; } }
    state ipv4 { packet.extract(hdr.ipv4); transition select(hdr.ipv4.protocol) { 6: ports; 17: ports; default: accept; } }
    state ipv6 { packet.extract(hdr.ipv6); transition accept; }
    state ports { packet.extract(hdr.ports); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) {
    apply { verify_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16); }
}
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) route_counter;
    action drop_packet() { mark_to_drop(sm); }
    action forward(bit<9> port, bit<48> mac) { sm.egress_spec = port; hdr.ethernet.src = hdr.ethernet.dst; hdr.ethernet.dst = mac; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; route_counter.count(); }
    action forward6(bit<9> port, bit<128> source) { sm.egress_spec = port; hdr.ipv6.src = source; }
    action set_mark(bit<8> mark) { md.mark = mark; }
    action replicate(bit<16> group) { sm.mcast_grp = group; }
    table route { key = { hdr.ipv4.dst: lpm; } actions = { forward; drop_packet; } default_action = drop_packet(); counters = route_counter; size = 1024; }
    table route6 { key = { hdr.ipv6.dst: lpm; } actions = { forward6; drop_packet; } default_action = drop_packet(); size = 64; }
    table exact6 { key = { hdr.ipv6.src: exact; hdr.ipv6.hops: exact; } actions = { forward6; NoAction; } default_action = NoAction(); size = 64; }
    table filter { key = { hdr.ipv4.src: ternary; hdr.ports.dst: range; hdr.ports.isValid(): exact; } actions = { drop_packet; replicate; NoAction; } default_action = NoAction(); size = 64; }
    table classify { key = { hdr.ipv4.tos: ternary; hdr.ipv4.protocol: ternary; } actions = { set_mark; NoAction; } default_action = NoAction(); size = 64; }
    table fixed { key = { hdr.ethernet.ethertype: ternary; } actions = { set_mark; NoAction; } const default_action = NoAction(); const entries = { 0x0806: set_mark(8w6); 0x0800 &&& 0xff00: set_mark(8w4); _: set_mark(8w9); } }
    apply {
        if (sm.checksum_error == 1) { drop_packet(); exit; }
        fixed.apply();
        if (hdr.ipv4.isValid()) {
            if (route.apply().hit) { filter.apply(); switch (classify.apply().action_run) { set_mark: { hdr.ipv4.tos = md.mark; } default: { } } }
        } else if (hdr.ipv6.isValid()) {
            if (!exact6.apply().hit) { route6.apply(); }
        } else { hdr.ethernet.src[7:0] = md.mark; sm.egress_spec = 7; }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { if (sm.egress_port == 13) { mark_to_drop(sm); } } }
control Compute(inout headers_t hdr, inout metadata_t md) {
    apply { update_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16); }
}
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
