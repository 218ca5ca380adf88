// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Indirect meters of packets and bytes, direct meters, direct counters of each type, entries that age.
#include <core.p4>
#include <v1model.p4>

header probe_h { bit<8> key; bit<32> at; bit<8> packets_colour; bit<8> bytes_colour; bit<8> entry_colour; bit<8> egress_colour; }
struct headers_t { probe_h probe; }
struct metadata_t { bit<2> colour; bit<8> wide_colour; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.probe); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    meter(32w16, MeterType.packets) by_packets;
    meter(32w1000000, MeterType.bytes) by_bytes;
    direct_meter<bit<2>>(MeterType.packets) per_entry;
    direct_meter<bit<8>>(MeterType.bytes) per_entry_bytes;
    direct_counter(CounterType.packets) in_packets;
    direct_counter(CounterType.bytes) in_bytes;
    counter(32w100000, CounterType.packets_and_bytes) colours;
    action mark() { per_entry.read(md.colour); in_packets.count(); }
    action mark_bytes() { per_entry_bytes.read(md.wide_colour); in_bytes.count(); }
    table metered { key = { hdr.probe.key: exact; } actions = { mark; NoAction; } meters = per_entry; counters = in_packets; size = 64; default_action = NoAction(); }
    table metered_bytes { key = { hdr.probe.key: ternary; } actions = { mark_bytes; NoAction; } meters = per_entry_bytes; counters = in_bytes; size = 64; support_timeout = true; default_action = NoAction(); }
    apply {
        by_packets.execute_meter(hdr.probe.at, md.wide_colour);
        hdr.probe.packets_colour = md.wide_colour;
        md.wide_colour = 7;
        by_bytes.execute_meter(hdr.probe.at, md.wide_colour);
        hdr.probe.bytes_colour = md.wide_colour;
        colours.count((bit<32>) hdr.probe.packets_colour);
        md.colour = 3;
        metered.apply();
        hdr.probe.entry_colour = (bit<8>) md.colour;
        md.wide_colour = 9;
        metered_bytes.apply();
        hdr.probe.egress_colour = md.wide_colour;
        sm.egress_spec = 1;
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.probe); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
