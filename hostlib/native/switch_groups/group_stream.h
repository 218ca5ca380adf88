// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the chunks of a switch group lie: rows that the server leases, used as one endless stream of chunks. Chunk i of the
// stream is in row i mod num_rows, in round first_round + i / num_rows. A group has the chunks from `first` on, so each of
// its packets names the group and the chunk, and no (row, round) is used twice.
//
// A row has two copies. So a member sends chunk i only when the server has all chunks up to i - 2 * num_rows: those that the
// switch overwrites.
#ifndef SWITCHFOLD_GROUP_STREAM_H
#define SWITCHFOLD_GROUP_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "../slots/header.h"

typedef struct {
  uint8_t head[HEADER_BYTES]; // the fields that all packets of a member, or of the server, share
  uint32_t num_lanes;
  uint32_t first_row, num_rows;
  uint32_t epoch;
  uint32_t first_round;
  uint32_t num_chunks; // of the group
  uint32_t num_values; // the last chunk may have fewer than num_lanes
  uint32_t num_members;
  uint64_t first; // number of the group's first chunk in the stream
} group_stream_t;

static inline uint32_t group_packet_bytes(const group_stream_t *stream) {
  return HEADER_BYTES + VALUE_BYTES * stream->num_lanes;
}

static inline uint32_t group_window(const group_stream_t *stream) { return 2 * stream->num_rows; }

static inline uint32_t group_chunk_values(const group_stream_t *stream, uint32_t chunk) {
  uint32_t left = stream->num_values - chunk * stream->num_lanes;
  return left < stream->num_lanes ? left : stream->num_lanes;
}

// Write the header of a packet about a chunk; all but the lanes.
void group_stream_write(const group_stream_t *, operation_t, uint32_t chunk, uint8_t *packet);

// The chunk that a received packet is about, or -1 if it is none of this group.
int64_t group_stream_chunk(const group_stream_t *, const uint8_t *packet);

#endif
