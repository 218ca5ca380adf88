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

void impairments_set(impairment_stage_t *stage, const impairments_t *settings, uint64_t stream) {
  impairments_advance(stage, UINT64_MAX);
  stage->settings = *settings;
  stage->random = settings->seed + stream * 0xd1342543de82ef95u;
  stage->line_free_ns = 0;
  stage->is_in_burst = stage->is_script_begun = false;
  stage->interval = 0;
  stage->interval_packets = 0;
  stage->is_active = settings->loss > 0 || settings->burst_start > 0 || settings->interval_count > 0 ||
                     settings->duplication > 0 || settings->corruption > 0 || settings->reordering > 0 ||
                     settings->delay_ns > 0 || settings->rate_bits_per_s > 0;
}

// Begin the script again at `start_ns`. Repetitions that have passed without a packet are skipped at once.
static uint64_t repeated_start(const impairments_t *settings, uint64_t start_ns, uint64_t now_ns) {
  uint64_t cycle_ns = 0;
  for (uint32_t i = 0; i < settings->interval_count; i++) {
    if (settings->intervals[i].packets) return start_ns;
    cycle_ns += settings->intervals[i].ns;
  }
  return start_ns + (now_ns - start_ns) / cycle_ns * cycle_ns;
}

// The interval of the script that this packet falls into; NULL without a script and after its end.
static const loss_interval_t *next_interval(impairment_stage_t *stage, uint64_t now_ns) {
  const impairments_t *settings = &stage->settings;
  if (!stage->is_script_begun) {
    stage->is_script_begun = true;
    stage->interval_start_ns = now_ns;
  }
  while (stage->interval < settings->interval_count) {
    const loss_interval_t *interval = &settings->intervals[stage->interval];
    bool is_over = interval->packets ? stage->interval_packets >= interval->packets
                                     : now_ns - stage->interval_start_ns >= interval->ns;
    if (!is_over) {
      stage->interval_packets++;
      return interval;
    }
    stage->interval_start_ns = interval->packets ? now_ns : stage->interval_start_ns + interval->ns;
    stage->interval_packets = 0;
    if (++stage->interval == settings->interval_count && settings->script_repeats) {
      stage->interval = 0;
      stage->interval_start_ns = repeated_start(settings, stage->interval_start_ns, now_ns);
    }
  }
  return NULL;
}

static bool is_lost(impairment_stage_t *stage, uint64_t now_ns) {
  const impairments_t *settings = &stage->settings;
  const loss_interval_t *interval = next_interval(stage, now_ns);
  double loss = settings->loss;
  uint32_t cause = IMPAIRED_LOST;
  if (interval) {
    loss = interval->loss;
    cause = IMPAIRED_SCRIPT_LOST;
  } else if (settings->burst_start > 0) {
    bool has_changed = happens(stage, stage->is_in_burst ? settings->burst_end : settings->burst_start);
    stage->is_in_burst ^= has_changed;
    if (stage->is_in_burst) {
      loss = settings->burst_loss;
      cause = IMPAIRED_BURST_LOST;
    }
  }
  if (!happens(stage, loss)) return false;
  stage->counters[cause]++;
  return true;
}

static void start_sending(impairment_stage_t *stage, packet_t *packet, uint64_t start_ns) {
  const impairments_t *settings = &stage->settings;
  stage->line_free_ns = start_ns + (uint64_t)(packet->bytes * 8e9 / settings->rate_bits_per_s);
  stage->sent_priority = packet->priority;
  packet->release_ns = stage->line_free_ns + settings->delay_ns;
  packet_list_append(&stage->line, packet);
}

// Let the link send what it has begun by now. It is called before each arrival, so that whatever waits here waited when
// the link became free.
static void advance_link(impairment_stage_t *stage, uint64_t now_ns) {
  while (stage->waiting && stage->line_free_ns <= now_ns) {
    priority_queue_t *queue = &stage->queues[stage->queue_count - 1];
    while (!queue->waiting.head) queue--;
    stage->waiting--;
    start_sending(stage, packet_list_pop(&queue->waiting), stage->line_free_ns);
  }
}

// The part after reordering: queues, a link with a rate, and a delay.
static void enter_line(impairment_stage_t *stage, pool_t *pool, packet_t *packet, uint64_t now_ns, bool ignore_time) {
  const impairments_t *settings = &stage->settings;
  if (ignore_time || (settings->delay_ns == 0 && settings->rate_bits_per_s <= 0)) {
    packet_list_append(&stage->ready, packet);
    return;
  }
  priority_queue_t *queue = &stage->queues[packet->priority];
  if (queue->count >= settings->queue_packets) {
    stage->counters[IMPAIRED_OVERRUN]++;
    pool_give(pool, packet);
    return;
  }
  queue->count++;
  stage->counters[IMPAIRED_DELAYED]++;
  if (settings->rate_bits_per_s <= 0) {
    packet->release_ns = now_ns + settings->delay_ns;
    packet_list_append(&stage->line, packet);
    return;
  }
  advance_link(stage, now_ns);
  if (stage->line_free_ns <= now_ns) {
    start_sending(stage, packet, now_ns);
  } else {
    packet_list_append(&queue->waiting, packet);
    stage->waiting++;
  }
}

uint32_t impairments_queued(impairment_stage_t *stage, uint32_t priority, uint64_t now_ns) {
  if (!stage->line.head && !stage->waiting) return 0;
  advance_link(stage, now_ns);
  bool is_sent = stage->line.head && stage->line_free_ns > now_ns && stage->sent_priority == priority;
  return stage->queues[priority].waiting.count + is_sent;
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

void impairments_push(impairment_stage_t *stage, pool_t *pool, packet_t *packet, uint32_t priority, uint64_t now_ns,
                      bool ignore_time) {
  const impairments_t *settings = &stage->settings;
  stage->sequence++;
  packet->priority = (uint16_t)priority;
  if (is_lost(stage, now_ns)) {
    pool_give(pool, packet);
  } else {
    packet_t *copy = NULL;
    if (happens(stage, settings->duplication)) {
      copy = pool_copy(pool, packet->data, packet->bytes);
      stage->counters[copy ? IMPAIRED_DUPLICATED : IMPAIRED_OVERRUN]++;
      if (copy) copy->priority = packet->priority;
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
  advance_link(stage, now_ns);
  while (stage->line.head && stage->line.head->release_ns <= now_ns) {
    packet_t *packet = packet_list_pop(&stage->line);
    stage->queues[packet->priority].count--;
    packet_list_append(&stage->ready, packet);
  }
  // A held packet that is due by time goes on at once and skips the link's rate and delay.
  while (stage->held.head && (stage->held.head->release_ns <= now_ns || now_ns == UINT64_MAX)) {
    packet_list_append(&stage->ready, packet_list_pop(&stage->held));
  }
}

packet_t *impairments_pop(impairment_stage_t *stage) { return packet_list_pop(&stage->ready); }

uint64_t impairments_deadline(const impairment_stage_t *stage) {
  uint64_t deadline = UINT64_MAX;
  if (stage->ready.head) return 0;
  if (stage->line.head) {
    deadline = stage->line.head->release_ns; // what waits leaves later
  } else if (stage->waiting) {
    deadline = stage->line_free_ns; // packets were released before their time, by settings or a synchronous flush
  }
  if (stage->held.head && stage->held.head->release_ns < deadline) deadline = stage->held.head->release_ns;
  return deadline;
}

void impairments_drop_all(impairment_stage_t *stage, pool_t *pool) {
  impairments_advance(stage, UINT64_MAX);
  for (packet_t *packet = impairments_pop(stage); packet; packet = impairments_pop(stage)) pool_give(pool, packet);
}
