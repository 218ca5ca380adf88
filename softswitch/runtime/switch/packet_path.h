// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// From a received frame to packets on egress ports, in the order of simple_switch. After ingress: clone, digest,
// resubmit or multicast or unicast or drop. After egress: clone, drop or recirculate or transmit.
// The caller holds the switch's lock.
#ifndef SOFTSWITCH_PACKET_PATH_H
#define SOFTSWITCH_PACKET_PATH_H

#include "replication.h"

#define PASSES_AT_ONCE 16u       // right after a packet, so that the next packet comes after all of its passes
#define PASSES_PER_BATCH 256u    // at the end of a batch
#define PASSES_SYNCHRONOUS 4096u // in a synchronous call; packets that still wait then are dropped

// Take a frame from the wire through the impairments and the program.
void path_receive(replication_t *, batch_t *, port_t *, const frame_t *);
// Run the packets that the impairments of `in` release by now.
void path_advance_in(replication_t *, batch_t *, port_t *, uint64_t now_ns);
// Run up to `passes` passes of packets that were resubmitted or recirculated.
void path_run_again(replication_t *, batch_t *, uint32_t passes);
void path_drop_again(replication_t *, batch_t *); // counted at their ingress ports

#endif
