// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "hot_packets.h"

#include <math.h>
#include <stddef.h>

#include "../values/vectorised.h"

bool hot_packets_are_ours(const hot_packets_t *packets, const uint8_t *datagram) {
  return datagram[VERSION_AT] == packets->head[VERSION_AT] && !memcmp(datagram + TREE_AT, packets->head + TREE_AT, 2) &&
         !memcmp(datagram + GENERATION_AT, packets->head + GENERATION_AT, 4) && (load16(datagram + FLAGS_AT) & TO_SERVER);
}

// Returns the packet, whose lanes are still to be written, or NULL.
static uint8_t *add(hot_packets_t *packets, const row_map_t *map, operation_t operation, int64_t row, uint32_t round) {
  if (!packets->packets || packets->count == packets->capacity) return NULL;
  uint8_t *packet = packets->packets + (size_t)packets->count++ * hot_packet_bytes(map);
  uint32_t number = map->numbers[row];
  memcpy(packet, packets->head, HEADER_BYTES);
  packet[OPERATION_AT] = (uint8_t)operation;
  store32(packet + SLOT_AT, number);
  store32(packet + ROUND_AT, round);
  store32(packet + TENSOR_AT, map->epochs[row]);
  store32(packet + CHUNK_AT, number);
  store32(packet + START_AT, number * map->num_lanes);
  store32(packet + END_AT, number * map->num_lanes + map->num_lanes);
  return packet;
}

static void clear_lanes(const row_map_t *map, uint8_t *packet) {
  memset(packet + HEADER_BYTES, 0, (size_t)VALUE_BYTES * map->num_lanes);
}

// Adding and subtracting 2^23 rounds to even what is smaller; what is not is whole already.
static inline float round_to_even(float number) {
  float rounded = (fabsf(number) + 0x1p23f) - 0x1p23f;
  return fabsf(number) < 0x1p23f ? copysignf(rounded, number) : number;
}

// A product that does not fit is that of 0 and an infinite scale.
VECTORISED static void write_lanes(const float *restrict gradients, float scale, uint8_t *restrict lanes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    float product = gradients[i] * scale;
    float whole = fabsf(product) <= MOST_LANE ? round_to_even(product) : 0;
    uint32_t word = __builtin_bswap32((uint32_t)(int32_t)whole);
    memcpy(lanes + VALUE_BYTES * (size_t)i, &word, sizeof word);
  }
}

VECTORISED static uint32_t num_unfit(const float *gradients, float scale, uint32_t count) {
  uint32_t unfit = 0;
  for (uint32_t i = 0; i < count; i++) {
    unfit += (uint32_t)(!(fabsf(gradients[i] * scale) <= MOST_LANE) & (gradients[i] != 0));
  }
  return unfit;
}

bool hot_packets_fit(const row_map_t *map, int64_t row, const float *gradients) {
  return !num_unfit(gradients, map->scales[row], map->num_lanes);
}

void hot_packets_add_push(hot_packets_t *packets, const row_map_t *map, int64_t row, int64_t round, const float *gradients) {
  uint8_t *packet = add(packets, map, AGGREGATE_ADD, row, (uint32_t)round);
  if (!packet) return;
  packet[EXPECTED_AT] = (uint8_t)packets->num_workers;
  write_lanes(gradients, map->scales[row], packet + HEADER_BYTES, map->num_lanes);
}

void hot_packets_add_flush(hot_packets_t *packets, const row_map_t *map, int64_t row, int64_t round, uint32_t level) {
  uint8_t *packet = add(packets, map, FLUSH, row, (uint32_t)round);
  if (!packet) return;
  store16(packet + CONTRIBUTORS_AT, (uint16_t)level);
  clear_lanes(map, packet);
}

void hot_packets_add_read(hot_packets_t *packets, const row_map_t *map, int64_t row, uint32_t version) {
  uint8_t *packet = add(packets, map, READ, row, version);
  if (packet) clear_lanes(map, packet);
}
