// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "group_stream.h"

#include <stdbool.h>

void group_stream_write(const group_stream_t *stream, operation_t operation, uint32_t chunk, uint8_t *packet) {
  uint64_t place = stream->first + chunk;
  uint32_t start = chunk * stream->num_lanes;
  memcpy(packet, stream->head, HEADER_BYTES);
  packet[OPERATION_AT] = (uint8_t)operation;
  store32(packet + SLOT_AT, stream->first_row + (uint32_t)(place % stream->num_rows));
  store32(packet + ROUND_AT, stream->first_round + (uint32_t)(place / stream->num_rows));
  store32(packet + TENSOR_AT, stream->epoch);
  store32(packet + CHUNK_AT, chunk);
  store32(packet + START_AT, start);
  store32(packet + END_AT, start + group_chunk_values(stream, chunk));
  packet[EXPECTED_AT] = (uint8_t)stream->num_members;
}

int64_t group_stream_chunk(const group_stream_t *stream, const uint8_t *packet) {
  uint32_t chunk = load32(packet + CHUNK_AT);
  uint8_t ours[HEADER_BYTES];
  if (chunk >= stream->num_chunks || load32(packet + TENSOR_AT) != stream->epoch) return -1;
  group_stream_write(stream, RESULT, chunk, ours);
  // A notice has the round that the copy holds: it is about the chunk only if that is the chunk's own.
  bool is_ours = !memcmp(packet + TREE_AT, ours + TREE_AT, 2) && !memcmp(packet + GENERATION_AT, ours + GENERATION_AT, 12) &&
                 !memcmp(packet + START_AT, ours + START_AT, 8);
  return is_ours ? (int64_t)chunk : -1;
}
