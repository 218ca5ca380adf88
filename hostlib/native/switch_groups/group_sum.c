// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "group_sum.h"

#include "../values/quantization.h"

#define ALL_LEVELS 255u  // in a flush: of switches
#define LATER_CHUNKS 3u  // as at the members
#define SILENT_CHUNKS 8u // so many are asked for if nothing comes

void group_sum_begin(group_sum_t *sum) {
  memset(sum->has, 0, sum->stream.num_chunks);
  memset(sum->asked_s, 0, sizeof *sum->asked_s * sum->stream.num_chunks);
  sum->done = sum->end = sum->num_marked = sum->num_repeated = sum->num_foreign = sum->num_overflowed = 0;
}

static uint32_t take(group_sum_t *sum, const uint8_t *packet) {
  const group_stream_t *stream = &sum->stream;
  uint16_t flags = load16(packet + FLAGS_AT);
  int64_t found = group_stream_chunk(stream, packet);
  if (found < 0 || load32(packet + BITMAP_AT) != sum->members) {
    sum->num_foreign++;
    return 0;
  }
  uint32_t chunk = (uint32_t)found;
  sum->num_marked += (flags & ECN_ECHO) != 0;
  if (sum->has[chunk]) {
    sum->num_repeated++;
    return 0;
  }
  if (flags & OVERFLOW) {
    sum->num_overflowed++;
    return 0;
  }
  float *values = sum->values + (size_t)chunk * stream->num_lanes;
  uint32_t count = group_chunk_values(stream, chunk);
  float32_from_values(packet + HEADER_BYTES, 1, sum->scales[chunk], values, count, NETWORK_ORDER);
  sum->has[chunk] = 1;
  if (chunk >= sum->end) sum->end = chunk + 1;
  return 1;
}

uint32_t group_sum_take(group_sum_t *sum, const uint8_t *packets, uint32_t count) {
  uint32_t num_new = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *packet = packets + (size_t)i * group_packet_bytes(&sum->stream);
    if (packet[OPERATION_AT] == RESULT) num_new += take(sum, packet);
  }
  while (sum->done < sum->end && sum->has[sum->done]) sum->done++;
  return num_new;
}

uint32_t group_sum_ask(group_sum_t *sum, bool is_silent, double pause_s, uint8_t *packets, uint32_t room, double now_s) {
  const group_stream_t *stream = &sum->stream;
  uint32_t end = sum->end > LATER_CHUNKS ? sum->end - LATER_CHUNKS : 0, count = 0;
  for (uint32_t chunk = sum->done; chunk < stream->num_chunks && count < room; chunk++) {
    if (chunk >= end && !(is_silent && count < SILENT_CHUNKS)) break;
    if (sum->has[chunk] || (sum->asked_s[chunk] > 0 && now_s - sum->asked_s[chunk] < pause_s)) continue;
    sum->asked_s[chunk] = now_s;
    uint8_t *packet = packets + (size_t)count++ * group_packet_bytes(stream);
    group_stream_write(stream, FLUSH, chunk, packet);
    store16(packet + CONTRIBUTORS_AT, ALL_LEVELS);
    memset(packet + HEADER_BYTES, 0, (size_t)VALUE_BYTES * stream->num_lanes);
  }
  return count;
}
