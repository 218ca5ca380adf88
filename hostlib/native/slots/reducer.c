// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "reducer.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define BUSY_S 0.001 // wait before the next attempt to send, if the transport did not take all
#define LONGEST_WAIT_S 1.0
#define COALESCE_CHUNKS 32u // if so many chunks are under way, a short pause does not empty the window
// A pause is at most this part of the time that chunks wait in queues. If no queue accounts for the round trip, a pause
// would only delay results.
#define QUEUE_SHARE 2

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool make_blocks(reducer_t *reducer, const members_t *members) {
  if (!members) return true;
  reducer->blocks = calloc(1, sizeof *reducer->blocks);
  return reducer->blocks && block_exchange_init(reducer->blocks, reducer->transport, &reducer->options,
                                                reducer->tree_ids[0], members);
}

static bool make_slot_map(reducer_t *reducer, const uint16_t *tree_ids, const uint32_t *tree_slots,
                          const closers_t *closers, const slot_place_t *places) {
  uint32_t num_trees = reducer->options.num_trees;
  reducer->tree_ids = calloc(num_trees, sizeof *tree_ids);
  reducer->tree_slots = calloc(num_trees, sizeof *tree_slots);
  reducer->slots_of_tree = calloc(num_trees, sizeof *reducer->slots_of_tree);
  reducer->closers = calloc(num_trees, sizeof *closers);
  reducer->slots = calloc(reducer->slot_count, sizeof *reducer->slots);
  if (!reducer->tree_ids || !reducer->tree_slots || !reducer->closers || !reducer->slots_of_tree || !reducer->slots) return false;
  for (uint32_t i = 0; i < num_trees; i++) {
    reducer->tree_ids[i] = tree_ids[i];
    reducer->tree_slots[i] = tree_slots[i];
    if (closers) reducer->closers[i] = closers[i];
    reducer->slots_of_tree[i] = calloc(tree_slots[i], sizeof **reducer->slots_of_tree);
    if (!reducer->slots_of_tree[i]) return false;
  }
  for (uint32_t i = 0; i < reducer->slot_count; i++) {
    slot_t *slot = &reducer->slots[i];
    slot->tree = (uint16_t)places[i].tree;
    slot->tree_id = tree_ids[slot->tree];
    slot->local = places[i].local;
    slot->flush_s = slot->hold_s = INFINITY;
    reducer->slots_of_tree[slot->tree][slot->local] = i;
  }
  return true;
}

reducer_t *reducer_new(transport_t *transport, const stream_options_t *options, const uint16_t *tree_ids,
                       const uint32_t *tree_slots, const closers_t *closers, const slot_place_t *places,
                       uint32_t slot_count, uint32_t exponent_slots, const members_t *members) {
  reducer_t *reducer = calloc(1, sizeof *reducer);
  if (!reducer) return NULL;
  reducer->transport = transport;
  reducer->options = *options;
  reducer->slot_count = slot_count;
  reducer->pace = pace_new(options->coalesce_s);
  stream_t *exponents = &reducer->streams[EXPONENTS], *values = &reducer->streams[VALUES];
  stream_options_t of_exponents = *options;
  of_exponents.has_statements = false; // all of them are wanted
  bool has_memory =
      make_slot_map(reducer, tree_ids, tree_slots, closers, places) && make_blocks(reducer, members) &&
      stream_init(exponents, transport, &of_exponents, reducer->closers, reducer->slots, exponent_slots) &&
      stream_init(values, transport, options, reducer->closers, reducer->slots + exponent_slots,
                  slot_count - exponent_slots);
  if (has_memory) return reducer;
  reducer_free(reducer);
  return NULL;
}

void reducer_free(reducer_t *reducer) {
  if (reducer->blocks) block_exchange_close(reducer->blocks);
  free(reducer->blocks);
  for (int i = 0; i < NUM_STREAMS; i++) stream_close(&reducer->streams[i]);
  for (uint32_t i = 0; reducer->slots_of_tree && i < reducer->options.num_trees; i++) free(reducer->slots_of_tree[i]);
  free(reducer->slots_of_tree);
  free(reducer->tree_slots);
  free(reducer->closers);
  free(reducer->tree_ids);
  free(reducer->slots);
  free(reducer);
}

stream_t *reducer_stream(reducer_t *reducer, uint32_t name) { return &reducer->streams[name]; }

block_exchange_t *reducer_blocks(reducer_t *reducer) { return reducer->blocks; }

const uint64_t *reducer_refused(const reducer_t *reducer) { return reducer->refused; }

void reducer_interrupt(reducer_t *reducer) { atomic_store(&reducer->is_interrupted, true); }

// The view's slot that a datagram names, NULL if there is none; the reason in `refusal`.
static slot_t *slot_named(const reducer_t *reducer, const uint8_t *datagram, refusal_t *refusal) {
  uint16_t tree_id = load16(datagram + TREE_AT);
  uint32_t local = load32(datagram + SLOT_AT);
  uint32_t tree = 0;
  while (tree < reducer->options.num_trees && reducer->tree_ids[tree] != tree_id) tree++;
  if (tree == reducer->options.num_trees) {
    *refusal = REFUSED_FOREIGN_JOB;
    return NULL;
  }
  if (load32(datagram + GENERATION_AT) != reducer->options.generation) {
    *refusal = REFUSED_GENERATION;
    return NULL;
  }
  if (local >= reducer->tree_slots[tree]) {
    *refusal = REFUSED_SLOT;
    return NULL;
  }
  return &reducer->slots[reducer->slots_of_tree[tree][local]];
}

static void add_event(arrivals_t *arrivals, event_t event) {
  if (arrivals->num_events < MAX_EVENTS) arrivals->events[arrivals->num_events++] = event;
}

// The switch's answer to a probe or to a late contribution: the state of a slot copy.
static void take_notice(stream_t *stream, slot_t *slot, const uint8_t *datagram, double now_s, arrivals_t *arrivals) {
  uint32_t round = load32(datagram + ROUND_AT), ahead = round - slot->round;
  event_t event = {.kind = EVENT_ANSWER};
  if (slot->is_busy && !(ahead & 1)) { // else it is not about the copy that this worker waits for
    if (ahead > 0 && ahead < UINT32_C(1) << 31) {
      // The others may still need what this worker has to give to a tensor that tolerates loss.
      if (slot->source->tolerance) stream_miss(stream, slot, now_s);
      else event = (event_t){.kind = EVENT_BEHIND, .tensor_id = load32(stream_datagram(stream, slot) + TENSOR_AT)};
    } else {
      event = (event_t){.kind = EVENT_NOTICE, .bitmap = ahead == 0 ? load32(datagram + BITMAP_AT) : 0};
    }
  }
  add_event(arrivals, event);
}

static void take(reducer_t *reducer, const uint8_t *datagram, double now_s, arrivals_t *arrivals) {
  refusal_t refusal = REFUSED_DUPLICATE;
  uint8_t operation = datagram[OPERATION_AT];
  if (datagram[VERSION_AT] != WIRE_VERSION) {
    reducer->refused[REFUSED_VERSION]++;
    return;
  }
  if (operation != RESULT && operation != NOTICE) {
    reducer->refused[REFUSED_OPERATION]++;
    return;
  }
  slot_t *slot = slot_named(reducer, datagram, &refusal);
  if (!slot) {
    reducer->refused[refusal]++;
    return;
  }
  stream_t *stream = &reducer->streams[slot < reducer->streams[VALUES].slots ? EXPONENTS : VALUES];
  if (operation == NOTICE) {
    reducer->refused[REFUSED_NOTICE]++;
    take_notice(stream, slot, datagram, now_s, arrivals);
  } else if (stream_take(stream, slot, datagram)) {
    arrivals->num_results++;
  } else {
    bool is_awaited = slot->is_busy && slot->round == load32(datagram + ROUND_AT);
    reducer->refused[is_awaited ? REFUSED_MISMATCH : REFUSED_DUPLICATE]++;
  }
}

int reducer_send(reducer_t *reducer, double now_s) {
  int is_idle = 1;
  for (int i = 0; i < NUM_STREAMS; i++) {
    int result = stream_pump(&reducer->streams[i], now_s);
    stream_publish(&reducer->streams[i]);
    if (result < 0) return result;
    is_idle = is_idle && result;
  }
  if (!reducer->blocks) return is_idle;
  int result = block_exchange_send(reducer->blocks, now_s);
  block_exchange_publish(reducer->blocks);
  return result < 0 ? result : is_idle && result;
}

// Take the multicasts of a batch. Returns 0 or -errno.
static int take_multicasts(reducer_t *reducer, const uint8_t *const *datagrams, uint32_t count, double now_s,
                           arrivals_t *arrivals) {
  if (!count) return 0;
  arrivals->has_multicasts = true;
  int num_news = block_exchange_take(reducer->blocks, datagrams, count, now_s, reducer->refused);
  block_exchange_publish(reducer->blocks);
  if (num_news < 0) return num_news;
  arrivals->num_blocks += (uint32_t)num_news;
  if (num_news) arrivals->result_s = now_s;
  return 0;
}

static bool is_multicast(const reducer_t *reducer, const uint8_t *datagram) {
  return reducer->blocks && datagram[VERSION_AT] == WIRE_VERSION && datagram[OPERATION_AT] == MULTICAST;
}

int reducer_take(reducer_t *reducer, const uint8_t *const *datagrams, uint32_t count, double now_s, arrivals_t *arrivals) {
  const uint8_t *multicasts[BATCH];
  uint32_t before = arrivals->num_results, num_multicasts = 0;
  for (int i = 0; i < NUM_STREAMS; i++) stream_begin(&reducer->streams[i]);
  for (uint32_t i = 0; i < count; i++) {
    if (is_multicast(reducer, datagrams[i])) multicasts[num_multicasts++] = datagrams[i];
    else take(reducer, datagrams[i], now_s, arrivals);
  }
  if (arrivals->num_results > before) arrivals->result_s = now_s;
  for (int i = 0; i < NUM_STREAMS; i++) {
    int error = stream_end(&reducer->streams[i], now_s);
    stream_publish(&reducer->streams[i]);
    if (error < 0) return error;
  }
  return take_multicasts(reducer, multicasts, num_multicasts, now_s, arrivals);
}

int reducer_keep_time(reducer_t *reducer, double now_s) {
  for (int i = 0; i < NUM_STREAMS; i++) {
    int error = stream_keep_time(&reducer->streams[i], now_s);
    stream_publish(&reducer->streams[i]);
    if (error < 0) return error;
  }
  if (!reducer->blocks) return 0;
  int error = block_exchange_keep_time(reducer->blocks, now_s);
  block_exchange_publish(reducer->blocks);
  return error;
}

double reducer_next_s(const reducer_t *reducer) {
  double next_s = fmin(stream_next_s(&reducer->streams[EXPONENTS]), stream_next_s(&reducer->streams[VALUES]));
  return reducer->blocks ? fmin(next_s, block_exchange_next_s(reducer->blocks)) : next_s;
}

// Whether there is something for the caller; what it is told of once is forgotten.
static bool has_news(reducer_t *reducer, const arrivals_t *arrivals) {
  bool is_news = arrivals->num_events || atomic_exchange(&reducer->is_interrupted, false);
  for (int i = 0; i < NUM_STREAMS; i++) {
    stream_t *stream = &reducer->streams[i];
    is_news = is_news || stream->has_finished || stream_is_hungry(stream);
    stream->has_finished = false;
  }
  if (reducer->blocks && block_exchange_has_news(reducer->blocks)) return true;
  return is_news;
}

// Let results gather.
static void gather(reducer_t *reducer, double wait_s) {
  stream_t *exponents = &reducer->streams[EXPONENTS], *values = &reducer->streams[VALUES];
  uint32_t under_way = exponents->outstanding + values->outstanding;
  if (!under_way) pace_rest(&reducer->pace);
  if (under_way < COALESCE_CHUNKS || !reducer->transport->pause) return;
  double queueing_s = fmax(rtt_queueing_s(&exponents->rtt), rtt_queueing_s(&values->rtt));
  double pause_s = pace_pause_s(&reducer->pace, under_way, fmin(wait_s, queueing_s / QUEUE_SHARE));
  if (pause_s > 0) reducer->transport->pause(reducer->transport, pause_s);
}

int reducer_poll(reducer_t *reducer, double until_s, arrivals_t *arrivals) {
  const uint8_t *datagrams[BATCH];
  arrivals->num_results = arrivals->num_blocks = arrivals->num_events = 0;
  arrivals->has_multicasts = false;
  arrivals->result_s = 0;
  for (;;) {
    double now_s = now();
    int is_idle = reducer_send(reducer, now_s);
    if (is_idle < 0) return is_idle;
    if (has_news(reducer, arrivals)) return 0; // sending may have used up what was prepared
    double wait_s = fmin(LONGEST_WAIT_S, fmax(0, fmin(until_s, reducer_next_s(reducer)) - now_s));
    if (!is_idle) wait_s = fmin(wait_s, BUSY_S);
    gather(reducer, wait_s);
    int count = reducer->transport->receive(reducer->transport, datagrams, reducer->options.batch, wait_s);
    if (count < 0) return count;
    now_s = now();
    pace_note(&reducer->pace, (uint32_t)count, (uint32_t)count == reducer->options.batch, now_s);
    int error = count ? reducer_take(reducer, datagrams, (uint32_t)count, now_s, arrivals) : 0;
    if (!error) error = reducer_keep_time(reducer, now_s);
    if (error || has_news(reducer, arrivals) || now_s >= until_s) return error;
  }
}
