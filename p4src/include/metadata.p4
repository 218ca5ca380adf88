// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Facts about one packet that the controls pass to each other.
#ifndef SWITCHFOLD_METADATA_P4
#define SWITCHFOLD_METADATA_P4

// The packet's (generation, round), compared with its slot copy's.
typedef bit<2> epoch_t;
const epoch_t EPOCH_NEWER = 0;      // the copy holds an older generation or round
const epoch_t EPOCH_SAME = 1;
const epoch_t EPOCH_OLDER = 2;      // same generation, the copy holds a newer round
const epoch_t EPOCH_SUPERSEDED = 3; // the copy belongs to a newer generation

// Access to the lanes and the flags of the slot copy.
typedef bit<3> slot_access_t;
const slot_access_t SLOT_ACCESS_NONE = 0;
const slot_access_t SLOT_ACCESS_OVERWRITE = 1;
const slot_access_t SLOT_ACCESS_ADD = 2;
const slot_access_t SLOT_ACCESS_MAX = 3;
const slot_access_t SLOT_ACCESS_READ = 4;

// Receivers of the packet that the switch sends.
typedef bit<2> reply_t;
const reply_t REPLY_NONE = 0;
const reply_t REPLY_SENDER = 1;   // unicast to the sender of the packet
const reply_t REPLY_GROUP = 2;    // multicast
const reply_t REPLY_PARENT = 3;   // unicast to the next switch towards the root

// State of a slot copy's round.
typedef bit<2> slot_state_t;
const slot_state_t SLOT_STATE_OPEN = 0;
const slot_state_t SLOT_STATE_SENT_UP = 1; // the sum went up, the result has not arrived
const slot_state_t SLOT_STATE_CLOSED = 2;  // the copy holds the result

struct metadata_t {
    outcome_t       outcome;

    // From the tables job and worker.
    generation_t    job_generation;
    slot_index_t    slot_base;
    slot_index_t    slot_count;
    worker_bitmap_t children_bitmap;
    bit<16>         multicast_group_id;
    bit<1>          is_partial_allowed;
    bit<16>         level;          // switches below, on the longest path down to a worker
    bit<1>          is_root;
    bit<16>         quorum;         // of a root
    bit<16>         num_workers;    // of a root: in the whole tree
    port_t          parent_port;    // this and the next three: not of a root
    ipv4_address_t  parent_address;
    worker_id_t     child_id;
    worker_bitmap_t child_bitmap;
    worker_bitmap_t worker_bit;     // 0: a server
    worker_bitmap_t contributor_mask;
    bit<16>         max_contributors;
    priority_t      max_priority;
    bit<1>          is_from_parent;

    // From the table hot_row.
    bit<1>          is_hot;         // about a row, whose number is in slot_index
    bit<32>         row_epoch;
    bit<16>         server_group_id;
    bit<16>         copies_group_id;

    // The slot copy: its registers, after this packet's change.
    slot_copy_t     slot_copy;
    epoch_t         epoch;
    bit<1>          is_contribution;
    generation_t    copy_generation;
    round_t         copy_round;
    operation_t     copy_operation;
    worker_bitmap_t copy_arrived;
    worker_bitmap_t copy_bitmap;
    bit<16>         copy_count;
    slot_state_t    copy_state;
    slot_access_t   slot_access;
    bit<16>         copy_flags;
    bit<32>         saturated_bits; // bits of any lane in which its sum differs from the wrapped sum

    // Delivery.
    reply_t         reply;
    bit<1>          is_undelivered;
    bit<16>         zero; // never written: the sum of a datagram with a correct UDP checksum
}

#endif
