// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the controls tell each other about one packet.
#ifndef SWITCHFOLD_METADATA_P4
#define SWITCHFOLD_METADATA_P4

// The packet's (generation, round) against its slot copy's.
typedef bit<2> epoch_t;
const epoch_t EPOCH_NEWER = 0;      // the copy holds an older generation or round
const epoch_t EPOCH_SAME = 1;
const epoch_t EPOCH_OLDER = 2;      // same generation, the copy holds a newer round
const epoch_t EPOCH_SUPERSEDED = 3; // the copy belongs to a newer generation

// What happens to the lanes, the exponent and the flags of the slot copy.
typedef bit<3> slot_access_t;
const slot_access_t SLOT_ACCESS_NONE = 0;
const slot_access_t SLOT_ACCESS_OVERWRITE = 1;
const slot_access_t SLOT_ACCESS_ADD = 2;
const slot_access_t SLOT_ACCESS_MAX = 3;
const slot_access_t SLOT_ACCESS_READ = 4;

// What the switch sends.
typedef bit<2> reply_t;
const reply_t REPLY_NONE = 0;
const reply_t REPLY_SENDER = 1;  // unicast to where the packet came from
const reply_t REPLY_WORKERS = 2; // multicast to all workers of the job

struct metadata_t {
    outcome_t       outcome;

    // From the tables job and worker.
    generation_t    job_generation;
    slot_index_t    slot_base;
    slot_index_t    slot_count;
    bit<16>         num_workers;
    bit<16>         multicast_group_id;
    bit<1>          is_partial_allowed;
    worker_bitmap_t worker_bit;

    // The slot copy: its registers, after this packet's change.
    slot_copy_t     slot_copy;
    epoch_t         epoch;
    bit<1>          is_contribution;
    generation_t    copy_generation;
    round_t         copy_round;
    worker_bitmap_t copy_bitmap;
    bit<16>         copy_count;
    bit<1>          copy_is_closed;
    slot_access_t   slot_access;
    exponent_t      copy_exponent;
    bit<16>         copy_flags;
    bit<1>          is_saturated;

    // Delivery.
    reply_t         reply;
    bit<1>          is_undelivered;
    bit<16>         zero; // never written: what a correct UDP checksum sums up to
}

#endif
