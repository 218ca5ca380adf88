// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// An IPv4 router: longest-prefix routes, next hops, load shared over equal paths by a hash of the flow,
// answers to ARP for its own addresses, an access list, and counters of what it drops and why.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;

enum bit<32> DropReason {
    PARSER = 0,
    CHECKSUM = 1,
    TTL = 2,
    NO_ROUTE = 3,
    DENIED = 4
}

header ethernet_h {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ethertype;
}

header arp_h {
    bit<16> hardware;
    bit<16> protocol;
    bit<8>  hardware_bytes;
    bit<8>  protocol_bytes;
    bit<16> operation;
    bit<48> sender_mac;
    bit<32> sender_addr;
    bit<48> target_mac;
    bit<32> target_addr;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  header_words;
    bit<8>  tos;
    bit<16> total_bytes;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header ports_h {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_h ethernet;
    arp_h      arp;
    ipv4_h     ipv4;
    ports_h    ports;
}

struct metadata_t {
    bit<16> next_hop;
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_ARP: parse_arp;
            default: accept;
        }
    }
    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.header_words == 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, 6): parse_ports;
            (0, 17): parse_ports;
            default: accept;
        }
    }
    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control RouterVerify(inout headers_t hdr, inout metadata_t md) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.header_words, hdr.ipv4.tos, hdr.ipv4.total_bytes, hdr.ipv4.id,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    counter(8, CounterType.packets) drops;
    direct_counter(CounterType.packets_and_bytes) route_counter;

    action drop_packet(bit<32> reason) {
        drops.count(reason);
        mark_to_drop(sm);
    }
    action set_next_hop(bit<16> next_hop) {
        md.next_hop = next_hop;
    }
    // Next hops base to base + paths - 1 lead to the same place: a flow stays on one of them.
    action share_load(bit<16> base, bit<16> paths) {
        hash(md.next_hop, HashAlgorithm.crc16, base,
            { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, paths);
    }
    table routes {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { set_next_hop; share_load; drop_packet; }
        default_action = drop_packet(DropReason.NO_ROUTE);
        counters = route_counter;
        size = 1024;
    }

    action forward(bit<9> port, bit<48> src_addr, bit<48> dst_addr) {
        sm.egress_spec = port;
        hdr.ethernet.src_addr = src_addr;
        hdr.ethernet.dst_addr = dst_addr;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table next_hops {
        key = { md.next_hop: exact @name("next_hop"); }
        actions = { forward; drop_packet; }
        default_action = drop_packet(DropReason.NO_ROUTE);
        size = 256;
    }

    table access_list {
        key = {
            hdr.ipv4.src_addr: ternary @name("src_addr");
            hdr.ipv4.dst_addr: ternary @name("dst_addr");
            hdr.ports.dst: range @name("dst_port");
        }
        actions = { drop_packet; NoAction; }
        default_action = NoAction();
        size = 128;
    }

    action answer(bit<48> mac) {
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.sender_mac = mac;
        bit<32> asked = hdr.arp.target_addr;
        hdr.arp.target_addr = hdr.arp.sender_addr;
        hdr.arp.sender_addr = asked;
        hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = mac;
        sm.egress_spec = sm.ingress_port;
    }
    table own_addresses {
        key = { hdr.arp.target_addr: exact @name("addr"); }
        actions = { answer; drop_packet; }
        default_action = drop_packet(DropReason.NO_ROUTE);
        size = 64;
    }

    apply {
        if (sm.parser_error != error.NoError) {
            drop_packet(DropReason.PARSER);
        } else if (hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
            own_addresses.apply();
        } else if (!hdr.ipv4.isValid()) {
            drop_packet(DropReason.PARSER);
        } else if (sm.checksum_error == 1) {
            drop_packet(DropReason.CHECKSUM);
        } else if (hdr.ipv4.ttl <= 1) {
            drop_packet(DropReason.TTL);
        } else {
            switch (access_list.apply().action_run) {
                NoAction: {
                    switch (routes.apply().action_run) {
                        drop_packet: {}
                        default: { next_hops.apply(); }
                    }
                }
            }
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t sm) {
    apply {}
}

control RouterUpdate(inout headers_t hdr, inout metadata_t md) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.header_words, hdr.ipv4.tos, hdr.ipv4.total_bytes, hdr.ipv4.id,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterUpdate(), RouterDeparser()) main;
