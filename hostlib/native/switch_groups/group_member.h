// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A member of a switch group: sends the chunks of its update to the switch until the server has their sums.
//
// The server tells by TCP which sums it has; nothing else makes a chunk done. A chunk that lacks while later ones have come
// is sent again, once in a round trip. If nothing comes for a timeout, the oldest chunks are: at first one, and twice as
// many each time. The switch's notices, that it has a chunk, only postpone that: it may be restarted, and forget.
#ifndef SWITCHFOLD_GROUP_MEMBER_H
#define SWITCHFOLD_GROUP_MEMBER_H

#include "../slots/congestion.h"
#include "../timing/rtt.h"
#include "group_stream.h"

typedef enum {
  CHUNK_UNSENT,
  CHUNK_SENT,
  CHUNK_KEPT, // the switch has told that it has this member's part
  CHUNK_DONE, // the server has the sum
} group_chunk_state_t;

typedef struct {
  group_stream_t stream;
  uint32_t bit; // of this member in bitmaps
  const float *values;
  const float *scales;      // by chunk: 2^shift, from the exponents that the members have agreed on
  const uint8_t *exponents; // by chunk, for readers of the wire
  uint8_t *states;          // by chunk
  uint8_t *tries;           // by chunk: how often it was sent, at most 255
  double *sent_s;           // by chunk: when it was sent last
  uint32_t done;            // all chunks before are done
  uint32_t next;            // no chunk from here on was sent
  uint32_t end;             // no chunk from here on is done
  uint32_t under_way;       // chunks that were sent and are not done
  uint32_t num_resent;      // packets
  double heard_s;           // when a chunk last became done, or a timeout passed
  rtt_t rtt;
  congestion_t window;
} group_member_t;

void group_member_begin(group_member_t *, double now_s); // all fields up to `sent_s` are set

// Take what the server says: it has all chunks before `done`, and those whose bits are set from there on, bit i of byte
// i / 8 for chunk done + i. `num_marked` sums have met congestion since it last said so.
void group_member_note(group_member_t *, uint32_t done, const uint8_t *bits, uint32_t num_bits, uint32_t num_marked,
                       double now_s);

// Take what the switch answers to packets that were sent again.
void group_member_take(group_member_t *, const uint8_t *packets, uint32_t count, double now_s);

// Write the packets that are due; returns how many. Call again while they fill the room.
uint32_t group_member_fill(group_member_t *, uint8_t *packets, uint32_t room, double now_s);

double group_member_due_s(const group_member_t *); // when `fill` has something to do if nothing is heard; infinite: never

#endif
