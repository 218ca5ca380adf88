// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "group_member.h"

#include <math.h>
#include <stdbool.h>

#include "../values/quantization.h"

#define INITIAL_CHUNKS 32u
#define LEAST_CHUNKS 4u
#define INITIAL_RTO_S 0.1
#define LEAST_MARGIN_S 0.02
#define LONGEST_RTO_S 1.0
#define LATER_CHUNKS 3u // so many later chunks show that one was lost, and not only overtaken
#define MOST_BURST_DOUBLINGS 6u

void group_member_begin(group_member_t *member, double now_s) {
  uint32_t window = group_window(&member->stream);
  memset(member->states, CHUNK_UNSENT, member->stream.num_chunks);
  memset(member->tries, 0, member->stream.num_chunks);
  member->done = member->next = member->end = member->under_way = member->num_resent = 0;
  member->heard_s = now_s;
  member->rtt = rtt_new(INITIAL_RTO_S, LEAST_MARGIN_S, LONGEST_RTO_S);
  member->window = congestion_new(INITIAL_CHUNKS, LEAST_CHUNKS, window, INITIAL_CHUNKS,
                                  congestion_tolerated(member->stream.num_members));
}

// Returns whether the chunk was not done before; then `sample_s` is its round trip, if it was sent once.
static bool finish(group_member_t *member, uint32_t chunk, double now_s, double *sample_s) {
  if (member->states[chunk] == CHUNK_DONE) return false;
  if (member->states[chunk] != CHUNK_UNSENT) {
    member->under_way--;
    if (member->tries[chunk] == 1) *sample_s = now_s - member->sent_s[chunk];
  }
  member->states[chunk] = CHUNK_DONE;
  if (chunk >= member->end) member->end = chunk + 1;
  return true;
}

void group_member_note(group_member_t *member, uint32_t done, const uint8_t *bits, uint32_t num_bits, uint32_t num_marked,
                       double now_s) {
  uint32_t under_way = member->under_way, num_chunks = member->stream.num_chunks, count = 0;
  double sample_s = -1;
  if (done > num_chunks) return;
  for (uint32_t chunk = member->done; chunk < done; chunk++) count += finish(member, chunk, now_s, &sample_s);
  for (uint32_t i = 0; i < num_bits && done + i < num_chunks; i++) {
    if (bits[i / 8] >> (i % 8) & 1) count += finish(member, done + i, now_s, &sample_s);
  }
  while (member->done < num_chunks && member->states[member->done] == CHUNK_DONE) member->done++;
  if (member->next < member->done) member->next = member->done;
  if (!count) return;
  member->heard_s = now_s;
  if (sample_s >= 0) rtt_add_sample(&member->rtt, sample_s);
  member->rtt.backoff = 0;
  congestion_on_results(&member->window, count < under_way ? count : under_way, num_marked, under_way);
}

void group_member_take(group_member_t *member, const uint8_t *packets, uint32_t count, double now_s) {
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *packet = packets + (size_t)i * group_packet_bytes(&member->stream);
    int64_t chunk = group_stream_chunk(&member->stream, packet);
    if (chunk < 0 || member->states[chunk] != CHUNK_SENT || !(load32(packet + BITMAP_AT) & member->bit)) continue;
    member->states[chunk] = CHUNK_KEPT;
    member->sent_s[chunk] = now_s; // it is sent again only after the longest timeout from now
  }
}

static void write_chunk(group_member_t *member, uint32_t chunk, uint8_t *packet, double now_s) {
  const group_stream_t *stream = &member->stream;
  uint32_t count = group_chunk_values(stream, chunk);
  uint8_t *lanes = packet + HEADER_BYTES;
  group_stream_write(stream, AGGREGATE_ADD, chunk, packet);
  packet[EXPONENT_AT] = member->exponents[chunk];
  float32_to_values(member->values + (size_t)chunk * stream->num_lanes, member->scales[chunk], lanes, count, NETWORK_ORDER);
  memset(lanes + (size_t)VALUE_BYTES * count, 0, (size_t)VALUE_BYTES * (stream->num_lanes - count));
  member->states[chunk] = CHUNK_SENT;
  member->sent_s[chunk] = now_s;
  if (member->tries[chunk] < UINT8_MAX) member->tries[chunk]++;
}

// Whether a chunk may be sent again that was sent so long ago.
static bool is_old(const group_member_t *member, uint32_t chunk, double age_s, double now_s) {
  if (member->states[chunk] == CHUNK_KEPT) age_s = LONGEST_RTO_S;
  return (member->states[chunk] == CHUNK_SENT || member->states[chunk] == CHUNK_KEPT) &&
         now_s - member->sent_s[chunk] >= age_s;
}

// Write those of the chunks from `done` to `end` again that were sent `first_s` ago once, or `age_s` ago again.
static uint32_t repeat(group_member_t *member, uint32_t end, double first_s, double age_s, uint8_t *packets, uint32_t room,
                       double now_s) {
  uint32_t count = 0;
  for (uint32_t chunk = member->done; chunk < end && count < room; chunk++) {
    if (!is_old(member, chunk, member->tries[chunk] == 1 ? first_s : age_s, now_s)) continue;
    write_chunk(member, chunk, packets + (size_t)count++ * group_packet_bytes(&member->stream), now_s);
  }
  member->num_resent += count;
  return count;
}

static uint32_t repeat_lost(group_member_t *member, uint8_t *packets, uint32_t room, double now_s) {
  if (member->end < member->done + LATER_CHUNKS) return 0;
  uint32_t end = member->end - LATER_CHUNKS;
  uint32_t count = repeat(member, end, 0, rtt_steady_s(&member->rtt), packets, room, now_s);
  if (count) congestion_on_loss(&member->window, member->under_way, count);
  return count;
}

static uint32_t repeat_oldest(group_member_t *member, uint8_t *packets, uint32_t room, double now_s) {
  double rto_s = rtt_timeout_s(&member->rtt);
  if (now_s < group_member_due_s(member)) return 0;
  unsigned doublings = member->rtt.backoff < MOST_BURST_DOUBLINGS ? member->rtt.backoff : MOST_BURST_DOUBLINGS;
  uint32_t burst = 1u << doublings;
  member->heard_s = now_s;
  rtt_back_off(&member->rtt);
  return repeat(member, member->next, rto_s, rto_s, packets, burst < room ? burst : room, now_s);
}

uint32_t group_member_fill(group_member_t *member, uint8_t *packets, uint32_t room, double now_s) {
  const group_stream_t *stream = &member->stream;
  size_t size = group_packet_bytes(stream);
  uint32_t count = repeat_lost(member, packets, room, now_s);
  count += repeat_oldest(member, packets + count * size, room - count, now_s);
  uint32_t limit = congestion_limit(&member->window);
  uint64_t end = (uint64_t)member->done + group_window(stream);
  if (end > stream->num_chunks) end = stream->num_chunks;
  for (; count < room && member->next < end && member->under_way < limit; member->next++) {
    if (member->states[member->next] != CHUNK_UNSENT) continue;
    write_chunk(member, member->next, packets + count++ * size, now_s);
    member->under_way++;
  }
  return count;
}

double group_member_due_s(const group_member_t *member) {
  return member->under_way ? member->heard_s + rtt_timeout_s(&member->rtt) : INFINITY;
}
