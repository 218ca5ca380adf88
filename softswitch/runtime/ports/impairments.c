// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "impairments.h"

#include <stddef.h>

// SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t draw(impairment_stage_t *stage) {
  stage->random += 0x9e3779b97f4a7c15u;
  uint64_t z = stage->random;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static bool happens(impairment_stage_t *stage, double probability) {
  if (probability <= 0) return false;
  return (double)(draw(stage) >> 11) * 0x1p-53 < probability;
}

static void leave_queue(impairment_stage_t *stage) {
  stage->first_queued = stage->first_queued->next;
  stage->queued--;
}

static void to_ready(impairment_stage_t *stage, packet_list_t *from) {
  if (stage->queued && from->head == stage->first_queued) leave_queue(stage);
  packet_list_append(&stage->ready, packet_list_pop(from));
}

void impairments_set(impairment_stage_t *stage, const impairments_t *settings, uint64_t stream) {
  impairments_advance(stage, UINT64_MAX);
  stage->settings = *settings;
  stage->random = settings->seed + stream * 0xd1342543de82ef95u;
  stage->line_free_ns = 0;
  stage->is_active = settings->loss > 0 || settings->duplication > 0 || settings->corruption > 0 ||
                     settings->reordering > 0 || settings->delay_ns > 0 || settings->rate_bits_per_s > 0;
}

// The part after reordering: a line with a rate, a delay and a queue.
static void enter_line(impairment_stage_t *stage, pool_t *pool, packet_t *packet, uint64_t now_ns, bool ignore_time) {
  const impairments_t *settings = &stage->settings;
  if (ignore_time || (settings->delay_ns == 0 && settings->rate_bits_per_s <= 0)) {
    packet_list_append(&stage->ready, packet);
    return;
  }
  if (stage->line.count >= settings->queue_packets) {
    stage->counters[IMPAIRED_OVERRUN]++;
    pool_give(pool, packet);
    return;
  }
  uint64_t departure_ns = now_ns;
  if (settings->rate_bits_per_s > 0) {
    if (stage->line_free_ns > departure_ns) departure_ns = stage->line_free_ns;
    departure_ns += (uint64_t)(packet->bytes * 8e9 / settings->rate_bits_per_s);
    stage->line_free_ns = departure_ns;
  }
  packet->release_ns = departure_ns + settings->delay_ns;
  stage->counters[IMPAIRED_DELAYED]++;
  packet_list_append(&stage->line, packet);
  if (!stage->queued++) stage->first_queued = packet;
}

uint32_t impairments_queued(impairment_stage_t *stage, uint64_t now_ns) {
  while (stage->queued && stage->first_queued->release_ns - stage->settings.delay_ns <= now_ns) leave_queue(stage);
  return stage->queued;
}

static void one_copy(impairment_stage_t *stage, pool_t *pool, packet_t *packet, uint64_t now_ns, bool ignore_time) {
  const impairments_t *settings = &stage->settings;
  if (packet->bytes > 0 && happens(stage, settings->corruption)) {
    uint64_t bit = draw(stage) % (packet->bytes * 8u);
    packet->data[bit / 8] ^= (uint8_t)(0x80u >> (bit % 8));
    stage->counters[IMPAIRED_CORRUPTED]++;
  }
  if (happens(stage, settings->reordering)) {
    stage->counters[IMPAIRED_REORDERED]++;
    bool has_time = settings->reordering_delay_ns > 0 && !ignore_time;
    packet->release_ns = has_time ? now_ns + settings->reordering_delay_ns : UINT64_MAX;
    packet->release_sequence =
        settings->reordering_packets ? stage->sequence + settings->reordering_packets : UINT64_MAX;
    packet_list_append(&stage->held, packet);
    return;
  }
  enter_line(stage, pool, packet, now_ns, ignore_time);
}

void impairments_push(impairment_stage_t *stage, pool_t *pool, packet_t *packet, uint64_t now_ns, bool ignore_time) {
  const impairments_t *settings = &stage->settings;
  stage->sequence++;
  if (happens(stage, settings->loss)) {
    stage->counters[IMPAIRED_LOST]++;
    pool_give(pool, packet);
  } else {
    packet_t *copy = NULL;
    if (happens(stage, settings->duplication)) {
      copy = pool_copy(pool, packet->data, packet->bytes);
      stage->counters[copy ? IMPAIRED_DUPLICATED : IMPAIRED_OVERRUN]++;
    }
    one_copy(stage, pool, packet, now_ns, ignore_time);
    if (copy) one_copy(stage, pool, copy, now_ns, ignore_time);
  }
  // Held packets follow this packet once enough later ones have arrived; lost ones count, too.
  while (stage->held.head && stage->held.head->release_sequence <= stage->sequence) {
    enter_line(stage, pool, packet_list_pop(&stage->held), now_ns, ignore_time);
  }
  if (!ignore_time) impairments_advance(stage, now_ns);
}

void impairments_advance(impairment_stage_t *stage, uint64_t now_ns) {
  while (stage->line.head && stage->line.head->release_ns <= now_ns) to_ready(stage, &stage->line);
  // A held packet that is due by time goes on at once and skips the line's rate and delay.
  while (stage->held.head && (stage->held.head->release_ns <= now_ns || now_ns == UINT64_MAX)) {
    to_ready(stage, &stage->held);
  }
}

packet_t *impairments_pop(impairment_stage_t *stage) { return packet_list_pop(&stage->ready); }

uint64_t impairments_deadline(const impairment_stage_t *stage) {
  uint64_t deadline = UINT64_MAX;
  if (stage->ready.head) return 0;
  if (stage->line.head) deadline = stage->line.head->release_ns;
  if (stage->held.head && stage->held.head->release_ns < deadline) deadline = stage->held.head->release_ns;
  return deadline;
}

void impairments_drop_all(impairment_stage_t *stage, pool_t *pool) {
  impairments_advance(stage, UINT64_MAX);
  for (packet_t *packet = impairments_pop(stage); packet; packet = impairments_pop(stage)) pool_give(pool, packet);
}
