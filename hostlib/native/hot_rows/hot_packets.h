// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of one worker about hot rows in one generation, in a buffer that the caller sends; docs/wire_format.md says
// what their fields mean.
#ifndef SWITCHFOLD_HOT_PACKETS_H
#define SWITCHFOLD_HOT_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "../slots/header.h"
#include "row_map.h"

#define MOST_LANE 0x1p25f // largest absolute value of a lane: 32 workers' sum fits

typedef struct {
  uint8_t head[HEADER_BYTES]; // the fields that all packets share
  uint32_t num_workers;       // so many pushes close a round
  uint32_t capacity;          // packets
  uint32_t count;             // packets that are to be sent
  uint8_t *packets;           // NULL: the switch cannot be reached, and nothing is written
} hot_packets_t;

static inline uint32_t hot_packet_bytes(const row_map_t *map) { return HEADER_BYTES + VALUE_BYTES * map->num_lanes; }

// Whether a received datagram is about rows of this generation.
bool hot_packets_are_ours(const hot_packets_t *, const uint8_t *datagram);

// Add a packet about a row. Without room it is lost, like any packet.
void hot_packets_add_push(hot_packets_t *, const row_map_t *, int64_t row, int64_t round, const float *gradients);
void hot_packets_add_flush(hot_packets_t *, const row_map_t *, int64_t row, int64_t round, uint32_t level);
void hot_packets_add_read(hot_packets_t *, const row_map_t *, int64_t row, uint32_t version);

// Whether all gradients of a row fit its lanes.
bool hot_packets_fit(const row_map_t *, int64_t row, const float *gradients);

#endif
