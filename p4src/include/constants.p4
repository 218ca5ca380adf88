// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the wire format and the ids of the control plane. hostlib/slots/wire.py holds
// the same wire numbers; a test compares the two.
#ifndef SWITCHFOLD_CONSTANTS_P4
#define SWITCHFOLD_CONSTANTS_P4

const int MAX_WORKERS = 32;

typedef bit<9>  port_t;
typedef bit<48> mac_address_t;
typedef bit<32> ipv4_address_t;
typedef bit<16> job_id_t;
typedef bit<8>  worker_id_t;   // of the sender, among the children of the switch that receives
typedef bit<(MAX_WORKERS)> worker_bitmap_t;
typedef bit<32> generation_t;
typedef bit<32> round_t;
typedef bit<32> slot_index_t;
typedef bit<32> slot_copy_t; // physical row: (slot << 1) | parity of the round
typedef bit<8>  operation_t;
typedef bit<8>  outcome_t;
typedef bit<8>  exponent_t;
typedef bit<3>  priority_t;  // of the queues of a port; the largest leaves first

// Ethernet, IPv4, UDP.
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<4>  IPV4_VERSION = 4;
const bit<4>  IPV4_IHL_WITHOUT_OPTIONS = 5;
const bit<3>  IPV4_MORE_FRAGMENTS = 1; // bits of the IPv4 flags field
const bit<3>  IPV4_DONT_FRAGMENT = 2;
const bit<8>  IPV4_PROTOCOL_UDP = 17;
const bit<8>  IPV4_RESULT_TTL = 64;
const bit<2>  ECN_CAPABLE_1 = 1;
const bit<2>  ECN_NOT_CAPABLE = 0;
const bit<2>  ECN_CAPABLE = 2;
const bit<2>  ECN_CONGESTION_EXPERIENCED = 3;

// Wire format.
const bit<8>  WIRE_VERSION = 2;
const bit<16> UDP_PORT = 21318;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> HEADER_BYTES = 44;
const bit<16> VALUE_BYTES = 4;
const bit<32> NUM_SLOTS = 1024;
const bit<32> SLOT_COPIES = 2;

// Length of a port's queue, in packets, from which on the switch marks packets.
const bit<19> CONGESTION_MARK_DEPTH = 48;

// Operations.
const operation_t OPERATION_AGGREGATE_ADD = 1;
const operation_t OPERATION_AGGREGATE_MAX = 2;
const operation_t OPERATION_FLUSH = 3;
const operation_t OPERATION_PROBE = 4;
const operation_t OPERATION_RESULT = 5;
const operation_t OPERATION_NOTICE = 6;
const operation_t OPERATION_MULTICAST = 7;
const operation_t OPERATION_READ = 8;
const operation_t OPERATION_WRITE = 9;

// Flags.
const bit<16> FLAG_PARTIAL = 0x0001;
const bit<16> FLAG_FLUSHED = 0x0002;
const bit<16> FLAG_ECN_ECHO = 0x0004;
const bit<16> FLAG_OVERFLOW = 0x0008;
const bit<16> FLAG_LAST = 0x0010;
const bit<16> FLAG_REPLAY = 0x0020;
const bit<16> FLAG_REPORT = 0x0040;
const bit<16> FLAG_TO_SERVER = 0x0080;
const bit<16> FLAG_COLD = 0x0100;
const bit<16> FLAGS_FROM_BELOW = FLAG_ECN_ECHO | FLAG_OVERFLOW; // of contributions
const bit<16> FLAGS_FROM_ABOVE = FLAG_PARTIAL | FLAG_FLUSHED | FLAGS_FROM_BELOW; // of results
const bit<16> FLAGS_ECHOED = FLAG_LAST | FLAG_TO_SERVER; // of what the switch makes of a packet
const bit<16> FLAGS_OF_MULTICASTS = FLAG_LAST | FLAG_REPORT; // what a multicast keeps

// Outcomes of Switchfold packets: each packet has exactly one.
const outcome_t OUTCOME_NONE = 0;
const outcome_t OUTCOME_ABSORBED = 1;
const outcome_t OUTCOME_COMPLETED = 2;
const outcome_t OUTCOME_REPLAYED = 3;
const outcome_t OUTCOME_DUPLICATE = 4;
const outcome_t OUTCOME_STALE = 5;
const outcome_t OUTCOME_NOTIFIED = 6;
const outcome_t OUTCOME_FLUSHED = 7;
const outcome_t OUTCOME_FLUSH_IGNORED = 8;
const outcome_t OUTCOME_BAD_LENGTH = 9;
const outcome_t OUTCOME_BAD_CHECKSUM = 10;
const outcome_t OUTCOME_BAD_VERSION = 11;
const outcome_t OUTCOME_BAD_OPERATION = 12;
const outcome_t OUTCOME_BAD_RANGE = 13;
const outcome_t OUTCOME_OFF_GRID = 14;
const outcome_t OUTCOME_FOREIGN_JOB = 15;
const outcome_t OUTCOME_FOREIGN_WORKER = 16;
const outcome_t OUTCOME_BAD_GENERATION = 17;
const outcome_t OUTCOME_BAD_SLOT = 18;
const outcome_t OUTCOME_BAD_CONTRIBUTION = 19;
const outcome_t OUTCOME_MISMATCH = 20;
const outcome_t OUTCOME_FOREIGN_RESULT = 21;
const outcome_t OUTCOME_SENT_UP = 22;
const outcome_t OUTCOME_RESENT = 23;
const outcome_t OUTCOME_RESULT_STORED = 24;
const outcome_t OUTCOME_RESULT_IGNORED = 25;
const outcome_t OUTCOME_RELAYED = 26;
const outcome_t OUTCOME_MULTICAST = 27;
const outcome_t OUTCOME_MULTICAST_REFUSED = 28;
const outcome_t OUTCOME_COLD = 29;
const outcome_t OUTCOME_VALUES_READ = 30;
const outcome_t OUTCOME_VALUES_WRITTEN = 31;
const outcome_t OUTCOME_VALUES_KEPT = 32;
const outcome_t OUTCOME_WRITE_REFUSED = 33;

// Outcomes of all other frames: each frame has exactly one, so that ports, Switchfold and ordinary
// outcomes add up.
const bit<32> ORDINARY_FORWARDED = 0;
const bit<32> ORDINARY_NO_ROUTE = 1;
const bit<32> ORDINARY_TTL_EXPIRED = 2;
const bit<32> ORDINARY_BAD_IPV4 = 3;     // header damaged, or its checksum wrong
const bit<32> ORDINARY_TO_CPU = 4;
const bit<32> ORDINARY_FROM_CPU = 5;
const bit<32> ORDINARY_TRUNCATED = 6;    // ends inside the Ethernet, IPv4 or packet-out header
const bit<32> ORDINARY_SPOOFED = 7;      // could pass for a result, which only a switch sends

#endif
