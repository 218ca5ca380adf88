// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Types that controllers write in another form than the switch holds: ports and routing instances as strings, next hops
// as numbers of 32 bits.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("", string)
type bit<9> port_name_t;
@p4runtime_translation("", string)
type bit<3> instance_name_t;
@p4runtime_translation("", 32)
type bit<12> next_hop_t;

header address_h { bit<8> address; }
@controller_header("packet_in")
header packet_in_h { port_name_t ingress_port; bit<7> pad; }
@controller_header("packet_out")
header packet_out_h { port_name_t egress_port; bit<7> pad; }
struct headers_t { packet_in_h packet_in; packet_out_h packet_out; address_h address; }
struct metadata_t { instance_name_t instance; next_hop_t next_hop; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start { transition select(sm.ingress_port) { 255: controller; default: address; } }
    state controller { packet.extract(hdr.packet_out); transition address; }
    state address { packet.extract(hdr.address); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    action set_instance(instance_name_t instance) { md.instance = instance; }
    action set_next_hop(next_hop_t next_hop) { md.next_hop = next_hop; }
    action send(port_name_t port) { sm.egress_spec = (bit<9>) port; }
    action to_controller() { sm.egress_spec = 255; }
    table instances {
        key = { (port_name_t) sm.ingress_port : optional @name("port"); }
        actions = { set_instance; NoAction; }
        default_action = NoAction();
    }
    table routes {
        key = { md.instance : exact @name("instance"); hdr.address.address : lpm @name("address"); }
        actions = { set_next_hop; to_controller; }
        default_action = to_controller();
    }
    table next_hops {
        key = { md.next_hop : exact @name("next_hop"); }
        actions = { send; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.packet_out.isValid()) {
            send(hdr.packet_out.egress_port);
            hdr.packet_out.setInvalid();
        } else {
            instances.apply();
            if (routes.apply().hit) { next_hops.apply(); }
        }
    }
}
control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 255) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (port_name_t) sm.ingress_port;
        }
    }
}
control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }
control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(), TheDeparser()) main;
