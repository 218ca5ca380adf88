// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One slot of a stream, and what a worker knows of the chunk that it carries.
#ifndef SWITCHFOLD_SLOT_H
#define SWITCHFOLD_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

#define NOT_SENT INT64_MAX // number of a slot that waits for no result; no transmission is later

typedef struct {
  uint16_t tree_id; // on the wire
  uint16_t tree;    // index among the view's trees
  uint32_t local;   // number of the slot in its tree

  source_t *source; // of the latest chunk
  uint32_t chunk;
  uint32_t round;
  bool is_busy;     // no result yet
  bool is_withheld; // this worker does not contribute, and waits for the others' result
  bool is_large;    // of large values: nothing of it is let go
  bool is_ahead;    // its packets may overtake others of its tree in queues: it has a higher priority

  // See recovery.h.
  bool is_again; // sent more than once, or withheld: its result tells no round trip
  int64_t number, first;
  double sent_s, deadline_s;
  double again_s; // when it was sent for the second time

  // See tolerance.h and closing.h.
  uint32_t paid;  // contributions that this worker lets go, at most
  uint32_t signs; // how often its result was found late
  double hold_s;  // it is not sent again before, and looked at then; infinite: it is not held
  double begun_s; // when it was first sent
  bool may_be_late; // this worker closes it if it takes too long
  bool has_lacked; // the result of its round before lacked somebody, who may not have it yet
  bool is_over;      // its round, as a contribution of another worker says; see stale.h
  bool is_set_aside; // it may be done without, see stale.h
  uint32_t aside_at; // its place among those, then

  // See straggler.h.
  double flush_s, pause_s;
  uint32_t level;
} slot_t;

#endif
