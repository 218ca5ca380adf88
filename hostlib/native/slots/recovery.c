// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "recovery.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES 2u      // of a tree's chunks: those of a class stay in order in queues
#define SKEW_SHARE 0.5  // other workers may notice a loss later by this part of the round trip
#define LATE_TRIPS 1.25 // a chunk with a single later result is lost so many round trips after it was sent
#define ONCE_TRIPS 2.0  // likewise a chunk that was sent once, if that result answers a repetition
// If more than one of so many chunks that wait was sent again, results of any tree show losses. Measured in simulated time, 4
// hosts, each the root of a part: at 20 % loss, a sum takes a tenth of the time. Without this limit, trees whose queues grow
// faster than others' count as lossy where nothing is lost; with one of four, more is sent again at 5 % loss.
#define HEAVY_SHARE 2u
// So many instead, once loss is severe. Measured likewise, 8 hosts: at 20 % loss, a sum takes two thirds of the time. With
// three at any loss, it takes 1.4 times as long at 5 %.
#define SEVERE_SHARE 4u
#define SEVERE_LOSS 0.75 // share of the results that are of chunks that were sent again: more is severe
#define SMOOTHING (1.0 / 64) // weight of a result in the share of those that were sent again
#define PROBE_OLDEST 3u // sent again after silence: the slots of further chunks wait for them
#define PROBE_NEWEST 1u // and this: its result shows which of all the others were lost
#define MAX_PROBES 16u  // the pause between probes doubles no further
// So many probes in a row leave their pause as it is if only a few chunks are without result, or if most of them were sent
// again: where more than half of the probes are lost, pauses that double have no mean.
#define LENIENT_PROBES 6u
#define STORM_LIMIT 8u  // sent again per expiry while nothing at all arrives
// So many expiries in a row without a sample leave the timeout as it is, if results arrive or only a few chunks are without
// one, as Linux does for thin TCP streams: they crowd no link. Else the end of a tensor would take seconds on a link that
// loses much, since its last chunks are all sent again and give no sample.
#define THIN_CHUNKS 4u
#define LENIENT_EXPIRIES 6u

bool recovery_init(recovery_t *recovery, slot_t *slots, uint32_t slot_count, uint32_t num_trees, rtt_t *rtt) {
  *recovery = (recovery_t){.slots = slots,
                           .slot_count = slot_count,
                           .trees = malloc(CLASSES * num_trees * sizeof(tree_results_t)),
                           .trips = malloc(num_trees * sizeof(tree_trips_t)),
                           .num_trees = num_trees,
                           .rtt = rtt,
                           .expiry_s = INFINITY,
                           .probe_s = INFINITY,
                           .review_s = INFINITY,
                           .has_progress = true,
                           .has_sample = true};
  if (!recovery->trees || !recovery->trips) return false;
  for (uint32_t i = 0; i < num_trees; i++) recovery->trips[i] = trips_new(rtt);
  for (uint32_t i = 0; i < CLASSES * num_trees; i++) {
    for (int j = 0; j < LATER_RESULTS; j++) recovery->trees[i].first[j] = recovery->trees[i].latest[j] = -1;
    recovery->trees[i].result_s = -INFINITY;
  }
  for (uint32_t i = 0; i < slot_count; i++) {
    slots[i].number = slots[i].first = NOT_SENT;
    slots[i].deadline_s = INFINITY;
  }
  return true;
}

static tree_results_t *results_of(const recovery_t *recovery, const slot_t *slot) {
  return &recovery->trees[CLASSES * slot->tree + slot->is_ahead];
}

void recovery_close(recovery_t *recovery) {
  free(recovery->trees);
  free(recovery->trips);
}

double recovery_next_s(const recovery_t *recovery) {
  return fmin(recovery->expiry_s, fmin(recovery->probe_s, recovery->review_s));
}

void recovery_resume(recovery_t *recovery, double now_s) {
  recovery->has_progress = false; // the first expiry sends a few chunks again, not all
  recovery->num_probes = 0;
  recovery->probe_s = now_s + rtt_probe_s(recovery->rtt);
}

void recovery_start(recovery_t *recovery, slot_t *slot, double now_s) {
  int64_t number = recovery->next_number++;
  slot->sent_s = slot->begun_s = now_s;
  slot->is_again = slot->is_withheld;
  slot->number = slot->first = slot->is_withheld ? NOT_SENT : number;
  slot->deadline_s = slot->is_withheld ? INFINITY : now_s + rtt_timeout_s(recovery->rtt);
  recovery->num_again += slot->is_withheld;
  recovery->expiry_s = fmin(recovery->expiry_s, slot->deadline_s);
}

void recovery_start_again(recovery_t *recovery, slot_t *slot, double now_s, bool is_probe) {
  slot->number = recovery->next_number++;
  slot->sent_s = now_s;
  if (!slot->is_again) slot->again_s = now_s;
  if (!is_probe) slot->deadline_s = now_s + rtt_timeout_s(recovery->rtt);
  recovery->num_again += !slot->is_again;
  slot->is_again = true;
}

void recovery_release(recovery_t *recovery, slot_t *slot) {
  recovery->num_again -= slot->is_again;
  slot->is_again = false;
  slot->number = slot->first = NOT_SENT;
  slot->deadline_s = INFINITY;
}

void recovery_rest(recovery_t *recovery) { recovery->probe_s = recovery->review_s = INFINITY; }

// Keep the largest numbers, smallest first.
static void add_number(int64_t latest[LATER_RESULTS], int64_t number) {
  if (number <= latest[0]) return;
  int i = 0;
  for (; i + 1 < LATER_RESULTS && latest[i + 1] < number; i++) latest[i] = latest[i + 1];
  latest[i] = number;
}

static bool is_severe(const recovery_t *recovery) { return recovery->again_share > SEVERE_LOSS; }

// Learn from the results of a batch, for each tree by itself. Trees differ: where the root is on the worker's own host, a
// worker that is behind the others waits for nothing.
static void learn_trips(recovery_t *recovery, slot_t *const *slots, const answer_t *answers, uint32_t count, double now_s) {
  bool has_sample = false;
  const rtt_t *slowest = &recovery->trips[0].rtt;
  for (uint32_t i = 0; i < count; i++) {
    if (slots[i]->first != NOT_SENT) trips_note(&recovery->trips[slots[i]->tree], slots[i], answers[i], now_s);
  }
  for (uint32_t i = 0; i < recovery->num_trees; i++) {
    has_sample |= trips_learn(&recovery->trips[i], now_s, is_severe(recovery));
    if (recovery->trips[i].rtt.smoothed_s > slowest->smoothed_s) slowest = &recovery->trips[i].rtt;
  }
  unsigned backoff = recovery->rtt->backoff;
  *recovery->rtt = *slowest;
  if (!has_sample) recovery->rtt->backoff = backoff;
  recovery->lenient_expiries = has_sample ? 0 : recovery->lenient_expiries;
  recovery->has_sample |= has_sample;
}

void recovery_finish(recovery_t *recovery, slot_t *const *slots, const answer_t *answers, uint32_t count, double now_s,
                     bool is_idle) {
  learn_trips(recovery, slots, answers, count, now_s);
  for (uint32_t i = 0; i < count; i++) {
    slot_t *slot = slots[i];
    tree_results_t *tree = results_of(recovery, slot);
    if (!slot->is_again) tree->result_s = now_s;
    if (!slot->is_withheld) recovery->again_share += SMOOTHING * (slot->is_again - recovery->again_share);
    if (slot->first != NOT_SENT) {
      add_number(tree->first, slot->first);
      // A result that came faster than any before it answers an earlier transmission.
      bool is_answer = slot->sent_s <= now_s - recovery->trips[slot->tree].rtt.least_s;
      add_number(tree->latest, is_answer ? slot->number : slot->first);
    }
    recovery_release(recovery, slot);
  }
  if (!recovery->has_progress || recovery->num_probes) recovery->resumed_s = now_s;
  recovery->has_progress = true;
  recovery->num_probes = 0;
  if (is_idle) recovery->review_s = INFINITY;
  recovery->probe_s = is_idle ? INFINITY : now_s + rtt_probe_s(recovery->rtt);
}

static int by_age(const void *left, const void *right) {
  const slot_t *a = *(slot_t *const *)left, *b = *(slot_t *const *)right;
  return (a->first > b->first) - (a->first < b->first);
}

static uint32_t in_order(slot_t **slots, uint32_t count) {
  qsort(slots, count, sizeof *slots, by_age);
  return count;
}

// The latest transmission with a result in any tree, by class. Whether much is lost now.
typedef struct {
  int64_t latest[CLASSES];
  bool is_heavy;
} all_trees_t;

static all_trees_t of_all_trees(const recovery_t *recovery) {
  all_trees_t all = {.latest = {-1, -1}};
  uint32_t num_waiting = 0, num_again = 0;
  if (recovery->num_trees == 1) return all; // the tree's own results are those of all trees
  for (uint32_t i = 0; i < CLASSES * recovery->num_trees; i++) {
    int64_t latest = recovery->trees[i].latest[LATER_RESULTS - 1];
    if (latest > all.latest[i % CLASSES]) all.latest[i % CLASSES] = latest;
  }
  for (uint32_t i = 0; i < recovery->slot_count; i++) {
    bool is_waiting = recovery->slots[i].number < NOT_SENT;
    num_waiting += is_waiting;
    num_again += is_waiting && recovery->slots[i].is_again;
  }
  uint32_t share = is_severe(recovery) ? SEVERE_SHARE : HEAVY_SHARE;
  all.is_heavy = share * num_again > num_waiting;
  return all;
}

// When a chunk counts as lost if its result has not come; infinite: nothing shows that. A result of a chunk that was first
// sent later shows that all workers have sent this one. A result of a later repetition, or of another tree, only shows that
// results come. If they have come again just now, a late worker may be about to send this chunk.
static double lost_s(const recovery_t *recovery, const slot_t *slot, const all_trees_t *all) {
  const tree_results_t *tree = results_of(recovery, slot);
  const rtt_t *own = &recovery->trips[slot->tree].rtt, *rtt = own->has_sample ? own : recovery->rtt;
  double trip_s = rtt->prompt_s;
  if (!slot->is_again && slot->number < tree->first[0]) return slot->sent_s;
  bool is_sent_by_all = slot->first < tree->first[LATER_RESULTS - 1];
  double resumed_s = is_sent_by_all ? -INFINITY : recovery->resumed_s + ONCE_TRIPS * trip_s;
  if (slot->is_again && slot->number < tree->latest[0]) return fmax(slot->sent_s + SKEW_SHARE * trip_s, resumed_s);
  if (!rtt->has_sample) return INFINITY;
  if (slot->number < tree->first[LATER_RESULTS - 1]) return slot->sent_s + LATE_TRIPS * trip_s;
  if (slot->number >= (all->is_heavy ? all->latest[slot->is_ahead] : tree->latest[LATER_RESULTS - 1])) return INFINITY;
  double trips = slot->is_again ? LATE_TRIPS : ONCE_TRIPS;
  return fmax(slot->sent_s + trips * trip_s, resumed_s);
}

uint32_t recovery_lost(recovery_t *recovery, double now_s, slot_t **out) {
  uint32_t count = 0;
  all_trees_t all = of_all_trees(recovery);
  recovery->review_s = INFINITY;
  for (uint32_t i = 0; i < recovery->slot_count; i++) {
    slot_t *slot = &recovery->slots[i];
    if (slot->number == NOT_SENT) continue;
    double at_s = lost_s(recovery, slot, &all);
    if (at_s <= now_s) out[count++] = slot;
    else recovery->review_s = fmin(recovery->review_s, at_s);
  }
  return in_order(out, count);
}

// How often the pause behind the latest probe is doubled.
static int doublings(const recovery_t *recovery, uint32_t num_waiting, uint32_t num_again) {
  bool is_lenient = num_waiting <= THIN_CHUNKS || 2 * num_again > num_waiting;
  uint32_t lenient = is_lenient ? LENIENT_PROBES : 0;
  return recovery->num_probes > lenient ? (int)(recovery->num_probes - lenient) : 0;
}

uint32_t recovery_silent(recovery_t *recovery, double now_s, slot_t **out) {
  uint32_t count = 0, num_again = 0;
  if (now_s < recovery->probe_s) return 0;
  if (recovery->num_probes < MAX_PROBES) recovery->num_probes++;
  for (uint32_t i = 0; i < recovery->slot_count; i++) {
    if (recovery->slots[i].number == NOT_SENT) continue;
    out[count++] = &recovery->slots[i];
    num_again += recovery->slots[i].is_again;
  }
  recovery->probe_s = now_s + ldexp(rtt_probe_s(recovery->rtt), doublings(recovery, count, num_again));
  in_order(out, count);
  if (count <= PROBE_OLDEST + PROBE_NEWEST) return count;
  memmove(out + PROBE_OLDEST, out + count - PROBE_NEWEST, PROBE_NEWEST * sizeof *out);
  return PROBE_OLDEST + PROBE_NEWEST;
}

// No sample came since the last expiry: the round trip may exceed the timeout.
static void back_off(recovery_t *recovery, uint32_t num_waiting) {
  bool is_harmless = recovery->has_progress || num_waiting <= THIN_CHUNKS;
  bool is_lenient = is_harmless && recovery->lenient_expiries < LENIENT_EXPIRIES;
  recovery->lenient_expiries += is_lenient;
  if (!is_lenient) rtt_back_off(recovery->rtt);
}

// When a chunk's timer runs out. It begins again with each result of its tree, as long as these are of earlier chunks: they
// come late, as a queue has grown, and nothing shows a loss. TCP's timer does so, too (RFC 6298).
static double expiry_s(const recovery_t *recovery, const slot_t *slot) {
  const tree_results_t *tree = results_of(recovery, slot);
  bool is_next = !slot->is_again && slot->first > tree->first[LATER_RESULTS - 1];
  return is_next ? fmax(slot->deadline_s, tree->result_s + rtt_timeout_s(recovery->rtt)) : slot->deadline_s;
}

uint32_t recovery_expired(recovery_t *recovery, double now_s, slot_t **out, uint32_t *outrun) {
  uint32_t count = 0, num_waiting = 0;
  *outrun = 0;
  if (now_s < recovery->expiry_s) return 0;
  for (uint32_t i = 0; i < recovery->slot_count; i++) {
    slot_t *slot = &recovery->slots[i];
    if (slot->deadline_s <= now_s) slot->deadline_s = expiry_s(recovery, slot);
    if (slot->deadline_s <= now_s) out[count++] = slot;
    num_waiting += recovery->slots[i].number < NOT_SENT;
  }
  in_order(out, count);
  if (count && !recovery->has_sample) back_off(recovery, num_waiting);
  for (uint32_t i = 0; i < count; i++) {
    // If all chunks wait, another worker may be late.
    *outrun += out[i]->number < results_of(recovery, out[i])->first[LATER_RESULTS - 1];
    out[i]->deadline_s = now_s + rtt_timeout_s(recovery->rtt);
  }
  if (count && !recovery->has_progress && count > STORM_LIMIT) count = STORM_LIMIT;
  if (count) recovery->has_progress = recovery->has_sample = false;
  recovery->expiry_s = INFINITY;
  for (uint32_t i = 0; i < recovery->slot_count; i++) {
    recovery->expiry_s = fmin(recovery->expiry_s, recovery->slots[i].deadline_s);
  }
  return count;
}
