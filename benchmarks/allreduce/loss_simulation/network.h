// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Links with rate, delay, queue and loss. Each worker has one to the switch and one from it; worker i of every job uses the
// same two.
#ifndef SWITCHFOLD_SIMULATED_NETWORK_H
#define SWITCHFOLD_SIMULATED_NETWORK_H

#include <stdint.h>

#include "clock.h"

void network_init(void);

// Send a packet of a worker to the switch, or back, by `kind`: AT_SWITCH or AT_WORKER.
void network_send(kind_t kind, uint32_t job, uint32_t worker, const uint8_t *datagram);

// Send a packet of a flow over the link from host 0, or over the one to it if its `worker` is 1.
void network_send_beside(event_t);

// Let a packet that is AT_LINK go on.
void network_forward(event_t);

// The host of the root of a datagram's tree, if each has one.
uint32_t root_of(const uint8_t *datagram);

uint64_t network_dropped(void); // packets that found a queue full

#endif
