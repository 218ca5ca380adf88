// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Slots of a job in the switch, or in those of the hosts: two copies each, by the slot protocol.
#ifndef SWITCHFOLD_SIMULATED_AGGREGATION_H
#define SWITCHFOLD_SIMULATED_AGGREGATION_H

#include <stdint.h>

#include "clock.h"

#define SLOTS 112u // value slots of a job that has 128

// The view's slot that a datagram names: those of several trees take turns.
uint32_t slot_of(const uint8_t *datagram);

// A contribution or a FLUSH has come to the switch.
void aggregation_take(const event_t *);

#endif
