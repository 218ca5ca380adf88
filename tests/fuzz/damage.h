// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Damages packets: every field, every length, pieces of other packets.
#ifndef SWITCHFOLD_FUZZ_DAMAGE_H
#define SWITCHFOLD_FUZZ_DAMAGE_H

#include <stdint.h>

#define MOST_BYTES 2048u // of a packet
#define MOST_GROWTH 64u

typedef struct {
  uint32_t bytes;
  uint8_t data[MOST_BYTES];
} packet_t;

// Damage a packet whose Switchfold header begins at `header_at`; pieces come from `other`.
void damage(packet_t *, uint32_t header_at, const packet_t *other);

#endif
