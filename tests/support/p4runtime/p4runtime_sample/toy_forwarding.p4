// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One of everything that the P4Runtime server handles: every match kind, const and default entries, counters, a register, packet I/O.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 255;

@controller_header("packet_in")
header packet_in_h {
  bit<9> ingress_port;
  bit<7> _pad;
}

@controller_header("packet_out")
header packet_out_h {
  bit<9> egress_port;
  bit<7> _pad;
}

header ethernet_h {
  bit<48> dst_address;
  bit<48> src_address;
  bit<16> ether_type;
}

struct headers_t {
  packet_in_h packet_in;
  packet_out_h packet_out;
  ethernet_h ethernet;
}

struct metadata_t {}

parser ToyParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t standard_metadata) {
  state start {
    transition select(standard_metadata.ingress_port) {
      CPU_PORT: parse_packet_out;
      default: parse_ethernet;
    }
  }
  state parse_packet_out {
    packet.extract(hdr.packet_out);
    transition parse_ethernet;
  }
  state parse_ethernet {
    packet.extract(hdr.ethernet);
    transition accept;
  }
}

control VerifyNothing(inout headers_t hdr, inout metadata_t md) { apply {} }

control ToyIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t standard_metadata) {
  direct_counter(CounterType.packets_and_bytes) station_counter;
  counter(4, CounterType.packets_and_bytes) ports;
  register<bit<32>>(4) last_type;

  action drop_packet() { mark_to_drop(standard_metadata); }
  action forward(bit<9> port, bit<48> mac) {
    standard_metadata.egress_spec = port;
    hdr.ethernet.dst_address = mac;
  }
  action replicate(bit<16> group) { standard_metadata.mcast_grp = group; }
  action punt() {
    standard_metadata.egress_spec = CPU_PORT;
    hdr.packet_in.setValid();
    hdr.packet_in.ingress_port = standard_metadata.ingress_port;
    hdr.packet_in._pad = 0;
  }

  table station {
    key = {
      hdr.ethernet.dst_address: exact @name("dst_address");
      standard_metadata.ingress_port: exact @name("ingress_port");
    }
    actions = { forward; replicate; drop_packet; }
    default_action = drop_packet();
    size = 8;
    counters = station_counter;
  }
  table prefix {
    key = { hdr.ethernet.src_address: lpm @name("src_address"); }
    actions = { forward; drop_packet; NoAction; }
    size = 64;
  }
  table policy {
    key = {
      hdr.ethernet.ether_type: ternary @name("ether_type");
      standard_metadata.ingress_port: range @name("ingress_port");
      hdr.ethernet.src_address: optional @name("src_address");
    }
    actions = { punt; drop_packet; NoAction; }
    const default_action = NoAction();
    size = 64;
  }
  table known_type {
    key = { hdr.ethernet.ether_type: exact @name("ether_type"); }
    actions = { punt; NoAction; }
    const entries = {
      0x0806: punt();
      0x88cc: punt();
    }
  }

  apply {
    ports.count((bit<32>)standard_metadata.ingress_port);
    last_type.write(0, (bit<32>)hdr.ethernet.ether_type);
    if (hdr.packet_out.isValid()) {
      standard_metadata.egress_spec = hdr.packet_out.egress_port;
      hdr.packet_out.setInvalid();
    } else {
      station.apply();
      prefix.apply();
      policy.apply();
      known_type.apply();
    }
  }
}

control ToyEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t standard_metadata) { apply {} }
control UpdateNothing(inout headers_t hdr, inout metadata_t md) { apply {} }

control ToyDeparser(packet_out packet, in headers_t hdr) {
  apply {
    packet.emit(hdr.packet_in);
    packet.emit(hdr.ethernet);
  }
}

V1Switch(ToyParser(), VerifyNothing(), ToyIngress(), ToyEgress(), UpdateNothing(), ToyDeparser()) main;
