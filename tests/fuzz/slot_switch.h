// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A correct switch for the fuzzer: the slot protocol of docs/protocol.md for trees of one switch.
#ifndef SWITCHFOLD_FUZZ_SLOT_SWITCH_H
#define SWITCHFOLD_FUZZ_SLOT_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "slots/header.h"

typedef struct {
  uint32_t round, bitmap, num_contributors;
  bool is_closed;
  uint8_t header[HEADER_BYTES]; // of the contribution that came last
  int32_t *values;
} slot_copy_t;

typedef struct {
  uint32_t num_workers, num_slots, values_per_packet;
  slot_copy_t *copies; // two for each slot, by the parity of the round
} slot_switch_t;

typedef enum { NO_REPLY, REPLY_TO_SENDER, REPLY_TO_ALL } reply_t;

void slot_switch_init(slot_switch_t *, uint32_t num_workers, uint32_t num_slots, uint32_t values_per_packet);
void slot_switch_close(slot_switch_t *);

// Take a worker's datagram for a slot; `reply` has room for a datagram.
reply_t slot_switch_process(slot_switch_t *, uint32_t slot, const uint8_t *datagram, uint8_t *reply);

#endif
