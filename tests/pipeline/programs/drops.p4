// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets that end after ingress: dropped by a function that works on p4c's copy of standard_metadata, dropped by a
// priority that has no queue.
#include <core.p4>
#include <v1model.p4>

header command_h {
    bit<8> command;
    bit<8> value;
    bit<8> seen;
}
struct headers_t { command_h command; }
struct metadata_t { }

bit<8> drop_below(in bit<8> value, in bit<8> bound, inout standard_metadata_t metadata) {
    if (value < bound) {
        mark_to_drop(metadata);
        return 1;
    }
    return value;
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.command); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action send(bit<9> port) { sm.egress_spec = port; }
    table wanted {
        key = { hdr.command.value : exact; }
        actions = { send; NoAction; }
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.command.command == 1) {
            hdr.command.seen[7:0] = drop_below(hdr.command.value, 8, sm) + (bit<8>) (bit<1>) wanted.apply().hit;
        } else if (hdr.command.command == 2) {
            sm.priority = (bit<3>) hdr.command.value;
        } else if (hdr.command.command == 3) {
            sm.priority = (bit<3>) hdr.command.value;
            sm.mcast_grp = 1;
        }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply { if (hdr.command.command == 2) { hdr.command.seen = (bit<8>) sm.priority; } }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
