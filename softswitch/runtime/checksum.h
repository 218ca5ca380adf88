// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Completion of UDP and TCP checksums that a sender left to its network card.
#ifndef SOFTSWITCH_CHECKSUM_H
#define SOFTSWITCH_CHECKSUM_H

#include <stdint.h>

// Write the checksum of an IPv4 or IPv6 frame (after up to two VLAN tags). Frames that carry neither UDP nor TCP, and
// fragments, are left as they are.
void checksum_complete(uint8_t *frame, uint32_t bytes);

#endif
