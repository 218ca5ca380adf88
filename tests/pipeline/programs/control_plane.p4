// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One of each object that P4Runtime writes: profile, selector, meters, digest, idle timeouts, value sets, clone sessions.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 255;
const bit<32> CLONE_SESSION = 7;

enum bit<8> Kind { plain = 0, learned = 1 }

@controller_header("packet_in")
header packet_in_h { bit<9> ingress_port; bit<7> _pad; bit<128> stamp; }
@controller_header("packet_out")
header packet_out_h { bit<9> egress_port; bit<7> _pad; }
header ethernet_h { bit<48> dst; bit<48> src; bit<16> ether_type; }
header tag_h { bit<4> kind; bit<12> id; bit<16> ether_type; }
header ipv4_h {
  bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length; bit<16> id; bit<16> fragment; bit<8> ttl; bit<8> protocol;
  bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { packet_in_h packet_in; packet_out_h packet_out; ethernet_h ethernet; tag_h tag; ipv4_h ipv4; }
struct metadata_t { bit<2> color; bit<2> entry_color; bit<16> hash; Kind kind; }
struct learned_t { bit<48> address; bit<9> port; Kind kind; }
struct tag_key_t { bit<16> ether_type; bit<9> port; }

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
  value_set<bit<16>>(4) tag_types;
  value_set<tag_key_t>(4) port_tags;
  state start {
    transition select(sm.ingress_port) { CPU_PORT: packet_out_header; default: ethernet; }
  }
  state packet_out_header { packet.extract(hdr.packet_out); transition ethernet; }
  state ethernet {
    packet.extract(hdr.ethernet);
    transition select(hdr.ethernet.ether_type) { 0x0800: ipv4; tag_types: tag; default: by_port; }
  }
  state by_port {
    transition select(hdr.ethernet.ether_type, sm.ingress_port) { port_tags: tag; default: accept; }
  }
  state tag {
    packet.extract(hdr.tag);
    transition select(hdr.tag.ether_type) { 0x0800: ipv4; default: accept; }
  }
  state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}

control VerifyNothing(inout headers_t hdr, inout metadata_t md) { apply {} }

control TheIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
  action_profile(32) hops;
  action_selector(HashAlgorithm.crc16, 32w64, 32w16) paths;
  meter(4, MeterType.packets) port_meter;
  direct_meter<bit<2>>(MeterType.bytes) host_meter;
  direct_counter(CounterType.packets_and_bytes) host_counter;
  counter(4, CounterType.packets) kinds;
  register<bit<72>>(4) wide;

  action drop_packet() { mark_to_drop(sm); }
  action forward(bit<9> port) { sm.egress_spec = port; }
  action forward_to(bit<9> port, bit<48> mac) { sm.egress_spec = port; hdr.ethernet.dst = mac; }
  action known(bit<9> port) { host_meter.read(md.entry_color); host_counter.count(); sm.egress_spec = port; }
  action learn() {
    host_meter.read(md.entry_color);
    host_counter.count();
    digest<learned_t>(1, { hdr.ethernet.src, sm.ingress_port, Kind.learned });
  }
  action mirror() { clone(CloneType.I2E, CLONE_SESSION); }
  action replicate(bit<16> group) { sm.mcast_grp = group; }
  action punt() {
    sm.egress_spec = CPU_PORT;
    hdr.packet_in.setValid();
    hdr.packet_in.ingress_port = sm.ingress_port;
    hdr.packet_in._pad = 0;
    hdr.packet_in.stamp = 0x0102030405060708090a0b0c0d0e0f10;
  }

  table host {
    key = { hdr.ethernet.src: exact @name("src"); }
    actions = { known; learn; }
    default_action = learn();
    size = 64;
    support_timeout = true;
    meters = host_meter;
    counters = host_counter;
  }
  table next_hop {
    key = { hdr.ipv4.dst: lpm @name("dst"); }
    actions = { forward_to; drop_packet; NoAction; }
    implementation = hops;
    size = 32;
  }
  table path {
    key = {
      hdr.ethernet.dst: exact @name("dst");
      hdr.ipv4.src: selector;
      hdr.ipv4.dst: selector;
    }
    actions = { forward; drop_packet; NoAction; }
    implementation = paths;
    size = 32;
  }
  table special {
    key = { hdr.ethernet.ether_type: ternary @name("ether_type"); hdr.tag.id: range @name("tag"); }
    actions = { mirror; replicate; punt; drop_packet; NoAction; }
    size = 32;
  }
  table fixed {
    key = { hdr.ethernet.ether_type: ternary @name("ether_type"); }
    actions = { punt; NoAction; }
    const entries = { 0x88cc: punt(); 0x9000 &&& 0xff00: NoAction(); }
    const default_action = NoAction();
  }
  table started {
    key = { hdr.ethernet.ether_type: exact @name("ether_type"); }
    actions = { drop_packet; NoAction; }
    entries = { const 0x9100: drop_packet(); 0x9200: drop_packet(); }
    size = 8;
  }

  apply {
    if (hdr.packet_out.isValid()) {
      sm.egress_spec = hdr.packet_out.egress_port;
      hdr.packet_out.setInvalid();
    } else {
      port_meter.execute_meter((bit<32>)sm.ingress_port & 3, md.color);
      kinds.count((bit<32>)md.color);
      wide.write(0, hdr.ethernet.src ++ (bit<24>)sm.ingress_port);
      host.apply();
      if (hdr.ipv4.isValid()) { next_hop.apply(); }
      path.apply();
      special.apply();
      fixed.apply();
      started.apply();
      if (md.color == 2 || md.entry_color == 2) { drop_packet(); }
    }
  }
}

control TheEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) { apply {} }
control UpdateNothing(inout headers_t hdr, inout metadata_t md) { apply {} }
control TheDeparser(packet_out packet, in headers_t hdr) {
  apply {
    packet.emit(hdr.packet_in);
    packet.emit(hdr.ethernet);
    packet.emit(hdr.tag);
    packet.emit(hdr.ipv4);
  }
}

V1Switch(TheParser(), VerifyNothing(), TheIngress(), TheEgress(), UpdateNothing(), TheDeparser()) main;
