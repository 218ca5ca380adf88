// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Headers on the wire and to the controller. The lanes' header comes from the generated
// lanes_<variant>.p4.
#ifndef SWITCHFOLD_HEADERS_P4
#define SWITCHFOLD_HEADERS_P4

@controller_header("packet_in")
header packet_in_h {
    port_t ingress_port;
    bit<7> _pad;
}

@controller_header("packet_out")
header packet_out_h {
    port_t egress_port;
    bit<7> _pad;
}

header ethernet_h {
    mac_address_t dst_address;
    mac_address_t src_address;
    bit<16>       ethertype;
}

header ipv4_h {
    bit<4>         version;
    bit<4>         ihl;
    bit<6>         dscp;
    bit<2>         ecn;
    bit<16>        total_length;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        fragment_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        checksum;
    ipv4_address_t src_address;
    ipv4_address_t dst_address;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header switchfold_h {
    bit<8>          version;
    operation_t     operation;
    bit<16>         flags;
    job_id_t        job_id;
    worker_id_t     worker_id;
    bit<8>          priority;
    generation_t    generation;
    slot_index_t    slot_index;
    round_t         round;
    bit<32>         tensor_id;
    bit<32>         chunk_index;
    bit<32>         range_start;
    bit<32>         range_end;
    worker_bitmap_t worker_bitmap;
    bit<16>         num_contributors;
    exponent_t      exponent;
    bit<8>          expected;
}

struct headers_t {
    packet_in_h  packet_in;
    packet_out_h packet_out;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
    udp_h        udp;
    switchfold_h switchfold;
    lanes_h      lanes;
}

#endif
