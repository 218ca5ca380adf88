// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A relay impairs one direction of a link that the kernel carries, whatever is at its ends. A program of the kernel
// redirects the frames that leave through the interface of the sender to the relay. The relay passes them through a
// stage of impairments and sends them through the same interface, with a mark by which the program lets them pass.
//
//   sender -> interface: marked? --yes-> the interface's own queue -> cable
//                           |no                  ^
//                           +--> relay: impairments
//
// Frames have no VLAN tag and are at most FRAME_BYTES_MAX long. Functions return 0 or a negative errno. Each may be
// called from any thread; one thread runs the relay.
#ifndef SOFTSWITCH_RELAY_H
#define SOFTSWITCH_RELAY_H

#include "impairments.h"

// After the counters of the impairments. All that arrived is seen, all that was seen is sent, lost or waits.
enum { RELAY_SEEN = IMPAIRMENT_COUNTERS, RELAY_SENT,
       RELAY_MISSED,    // the kernel had no room for it before the relay
       RELAY_LINK_FULL, // the interface's own queue had no room
       RELAY_REFUSED,   // the interface did not take it for another reason: it is down, for instance
       RELAY_COUNTERS };

typedef struct relay relay_t;

// The sockets stay the caller's, and are open until relay_destroy. NULL without memory or descriptors.
relay_t *relay_create(int receiver, int sender);
void relay_set(relay_t *, const impairments_t *, uint64_t stream); // what it holds is sent at once
// Relay frames until relay_stop; then send whatever has arrived.
int relay_run(relay_t *);
void relay_stop(relay_t *);
void relay_counters(relay_t *, uint64_t *values); // RELAY_COUNTERS of them
void relay_destroy(relay_t *);                    // once relay_run has returned

// Load the kernel's program: frames with this mark pass, others go to the interface of this index. Returns its fd.
int relay_program(uint32_t mark, uint32_t interface_index);

#endif
