// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "loss_network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "slots/header.h"
#include "slots/reducer.h"

#define TREE 7u
#define GENERATION 1000u
#define LIMIT_S 1000.0 // of a sum
#define NUM_SILENCES 40u
#define MOST_LATE_DELAYS 19.0 // of a packet that is reordered, beyond the usual one
#define QUEUE_PACKETS 1000.0

typedef enum { AT_SWITCH, AT_WORKER, WAKE, BEGIN } action_t;

typedef struct {
  double at_s;
  uint64_t order;
  action_t action;
  uint32_t worker;
  uint8_t packet[PACKET_BYTES];
} pending_t;

typedef struct {
  transport_t base;
  network_t *network;
  uint32_t number;
  reducer_t *reducer;
  source_t source;
  tolerance_t tolerance;
  bool has_begun;
  uint8_t (*inbox)[PACKET_BYTES];
  uint32_t num_inbox, inbox_room;
  double awake_s, wakes_s, free_s[2]; // when its links are free
} worker_t;

// One copy of a slot in the switch.
typedef struct {
  uint32_t round, bitmap;
  bool is_closed, is_flushed;
  uint8_t chunk[16]; // tensor, chunk and range
  int32_t values[NUM_VALUES];
} copy_t;

struct network {
  settings_t settings;
  double now_s;
  uint64_t random, num_orders;
  bool silences[NUM_SILENCES];
  worker_t workers[MOST_WORKERS];
  copy_t copies[MOST_SLOTS][2];
  pending_t *pending;
  uint32_t num_pending, pending_room;
  record_t *records;
  uint32_t num_records, records_room;
};

// splitmix64
static double draw(network_t *network) {
  uint64_t z = network->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool happens(network_t *network, double share) { return share > 0 && draw(network) < share; }

static void *grown(void *array, uint32_t count, uint32_t *room, size_t bytes) {
  if (count < *room) return array;
  *room = 2 * *room + 256;
  void *found = realloc(array, *room * bytes);
  if (!found) abort();
  return found;
}

static void record(network_t *network, record_kind_t kind, uint32_t worker, const uint8_t *packet) {
  network->records = grown(network->records, network->num_records, &network->records_room, sizeof *network->records);
  record_t *at = &network->records[network->num_records++];
  at->kind = (uint16_t)kind;
  at->worker = (uint16_t)worker;
  memcpy(at->packet, packet, PACKET_BYTES);
}

static bool is_before(const pending_t *a, const pending_t *b) {
  return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

static void push(network_t *network, pending_t item) {
  network->pending = grown(network->pending, network->num_pending, &network->pending_room, sizeof *network->pending);
  item.order = network->num_orders++;
  pending_t *heap = network->pending;
  uint32_t at = network->num_pending++;
  for (; at && is_before(&item, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
}

static pending_t pop(network_t *network) {
  pending_t *heap = network->pending, top = heap[0], last = heap[--network->num_pending];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < network->num_pending; at = child) {
    if (child + 1 < network->num_pending && is_before(&heap[child + 1], &heap[child])) child++;
    if (!is_before(&heap[child], &last)) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

static bool is_lost(network_t *network, bool is_to_worker, uint32_t worker, const uint8_t *packet) {
  const settings_t *settings = &network->settings;
  bool lost = draw(network) < settings->loss;
  switch ((loss_kind_t)settings->kind) {
  case LOSE_ALL: return lost;
  case LOSE_TO_SWITCH: return lost && !is_to_worker;
  case LOSE_FLUSHES: return lost || (packet[OPERATION_AT] == FLUSH && draw(network) < 0.5);
  case LOSE_RESULTS_OF_ONE: return lost || (is_to_worker && worker == settings->one && draw(network) < 0.5);
  case SILENCE_ONE: break;
  }
  double period = network->now_s / settings->silence_s;
  bool is_silent = period < NUM_SILENCES && network->silences[(uint32_t)period];
  return lost || (is_to_worker && worker == settings->one && is_silent);
}

static void transmit(network_t *network, action_t action, uint32_t worker, const uint8_t *packet) {
  const settings_t *settings = &network->settings;
  double *free_s = &network->workers[worker].free_s[action == AT_WORKER];
  double start_s = fmax(network->now_s, *free_s);
  bool lost = is_lost(network, action == AT_WORKER, worker, packet);
  if (start_s - network->now_s > QUEUE_PACKETS * settings->packet_s) return;
  *free_s = start_s + settings->packet_s;
  if (lost) return;
  for (int copies = happens(network, settings->duplication) ? 2 : 1; copies; copies--) {
    double late = happens(network, settings->reordering) ? 1 + draw(network) * MOST_LATE_DELAYS : 1;
    pending_t item = {.at_s = *free_s + late * settings->delay_s, .action = action, .worker = worker};
    memcpy(item.packet, packet, PACKET_BYTES);
    push(network, item);
  }
}

static int send_packets(transport_t *base, uint8_t *const *packets, uint32_t count) {
  worker_t *worker = (worker_t *)base;
  for (uint32_t i = 0; i < count; i++) {
    record(worker->network, SENT, worker->number, packets[i]);
    transmit(worker->network, AT_SWITCH, worker->number, packets[i]);
  }
  return (int)count;
}

// Turn a packet into an answer of the switch, and send it to its worker or to all.
static void answer(network_t *network, const pending_t *item, const copy_t *copy, operation_t operation, uint16_t flags,
                   bool is_for_all) {
  uint8_t packet[PACKET_BYTES];
  memcpy(packet, item->packet, PACKET_BYTES);
  packet[OPERATION_AT] = (uint8_t)operation;
  store32(packet + BITMAP_AT, copy->bitmap);
  store16(packet + CONTRIBUTORS_AT, (uint16_t)__builtin_popcount(copy->bitmap));
  if (operation == NOTICE) {
    store16(packet + FLAGS_AT, 0);
    store32(packet + ROUND_AT, copy->round);
  } else {
    bool is_partial = (uint32_t)__builtin_popcount(copy->bitmap) < network->settings.num_workers;
    flags |= (uint16_t)((copy->is_flushed ? FLUSHED : 0) | (is_partial ? PARTIAL : 0));
    store16(packet + FLAGS_AT, (uint16_t)((load16(packet + FLAGS_AT) & LAST) | flags));
    for (uint32_t i = 0; i < NUM_VALUES; i++) store32(packet + HEADER_BYTES + VALUE_BYTES * i, (uint32_t)copy->values[i]);
  }
  record(network, is_for_all ? ANSWERED_ALL : ANSWERED_ONE, item->worker, packet);
  if (!is_for_all) {
    transmit(network, AT_WORKER, item->worker, packet);
    return;
  }
  for (uint32_t i = 0; i < network->settings.num_workers; i++) transmit(network, AT_WORKER, i, packet);
}

static void close_round(network_t *network, const pending_t *item, copy_t *copy) {
  copy->is_closed = true;
  answer(network, item, copy, RESULT, 0, true);
}

static void reach_switch(network_t *network, const pending_t *item) {
  const uint8_t *at = item->packet;
  uint32_t round = load32(at + ROUND_AT), bit = load32(at + BITMAP_AT);
  copy_t *copy = &network->copies[load32(at + SLOT_AT) % MOST_SLOTS][round & 1];
  bool is_flush = at[OPERATION_AT] == FLUSH, is_new = round > copy->round;
  record(network, ARRIVED, item->worker, at);
  if (round < copy->round) {
    answer(network, item, copy, NOTICE, 0, false);
    return;
  }
  if (is_new && is_flush) return;
  if (is_new) {
    *copy = (copy_t){.round = round};
    memcpy(copy->chunk, at + TENSOR_AT, sizeof copy->chunk);
  } else if (memcmp(copy->chunk, at + TENSOR_AT, sizeof copy->chunk) != 0) {
    return;
  }
  if (copy->is_closed) {
    answer(network, item, copy, RESULT, REPLAY, false);
  } else if (is_flush) {
    if ((uint32_t)__builtin_popcount(copy->bitmap) < at[EXPECTED_AT]) return;
    copy->is_flushed = true;
    close_round(network, item, copy);
  } else if (!(copy->bitmap & bit)) {
    copy->bitmap |= bit;
    for (uint32_t i = 0; i < NUM_VALUES; i++) copy->values[i] += (int32_t)load32(at + HEADER_BYTES + VALUE_BYTES * i);
    if ((uint32_t)__builtin_popcount(copy->bitmap) == network->settings.num_workers) close_round(network, item, copy);
  }
}

static void wake_at(worker_t *worker, double at_s) {
  if (at_s >= worker->wakes_s) return;
  worker->wakes_s = at_s;
  push(worker->network, (pending_t){.at_s = at_s, .action = WAKE, .worker = worker->number});
}

static void reach_worker(worker_t *worker, const uint8_t *packet) {
  record(worker->network, GOT, worker->number, packet);
  worker->inbox = grown(worker->inbox, worker->num_inbox, &worker->inbox_room, sizeof *worker->inbox);
  memcpy(worker->inbox[worker->num_inbox++], packet, PACKET_BYTES);
  wake_at(worker, fmax(worker->network->now_s, worker->awake_s + worker->network->settings.pause_s));
}

static const char *wake(worker_t *worker, double at_s) {
  if (at_s != worker->wakes_s) return NULL; // another wake-up came before
  worker->awake_s = at_s;
  worker->wakes_s = INFINITY;
  for (uint32_t done = 0; done < worker->num_inbox;) {
    const uint8_t *packets[BATCH];
    uint32_t count = 0;
    for (; count < BATCH && done < worker->num_inbox; done++) packets[count++] = worker->inbox[done];
    arrivals_t arrivals = {0};
    if (reducer_take(worker->reducer, packets, count, at_s, &arrivals)) return "results were not taken";
  }
  worker->num_inbox = 0;
  if (reducer_keep_time(worker->reducer, at_s) || reducer_send(worker->reducer, at_s) < 0) return "nothing could be sent";
  double next_s = reducer_next_s(worker->reducer);
  if (next_s < INFINITY) wake_at(worker, fmax(next_s, at_s + 1e-6));
  return NULL;
}

static reducer_t *new_reducer(worker_t *worker) {
  const settings_t *settings = &worker->network->settings;
  // As hostlib/options.py has them.
  stream_options_t options = {.generation = GENERATION,
                              .worker_bitmap = 1u << worker->number,
                              .child_id = worker->number,
                              .num_workers = settings->num_workers,
                              .values_per_packet = NUM_VALUES,
                              .num_trees = 1,
                              .straggler_s = INFINITY,
                              .initial_rto_s = 0.1,
                              .minimum_rto_s = 0.02,
                              .maximum_rto_s = 1,
                              .window = 256,
                              .batch = 128,
                              .has_adaptive_wait = settings->is_adaptive};
  uint16_t tree_id = TREE;
  closers_t closers = {settings->num_workers, worker->number, (1u << settings->num_workers) - 1, 0, 1};
  slot_place_t places[MOST_SLOTS];
  for (uint32_t i = 0; i < settings->slot_count; i++) places[i] = (slot_place_t){0, i};
  return reducer_new(&worker->base, &options, &tree_id, &settings->slot_count, &closers, places, settings->slot_count,
                     settings->exponent_slots, NULL);
}

network_t *network_new(const settings_t *settings) {
  network_t *network = calloc(1, sizeof *network);
  if (!network) abort();
  network->settings = *settings;
  network->random = settings->seed;
  for (uint32_t i = 0; i < NUM_SILENCES; i++) network->silences[i] = draw(network) < 0.5;
  for (uint32_t i = 0; i < settings->num_workers; i++) {
    worker_t *worker = &network->workers[i];
    *worker = (worker_t){.base.send = send_packets, .network = network, .number = i, .awake_s = -1, .wakes_s = INFINITY};
    worker->reducer = new_reducer(worker);
    if (!worker->reducer) abort();
  }
  return network;
}

void network_free(network_t *network) {
  for (uint32_t i = 0; i < network->settings.num_workers; i++) {
    reducer_free(network->workers[i].reducer);
    free(network->workers[i].inbox);
  }
  free(network->pending);
  free(network->records);
  free(network);
}

static void begin(worker_t *worker) {
  worker->has_begun = true;
  stream_enqueue(reducer_stream(worker->reducer, VALUES), &worker->source);
  wake_at(worker, worker->network->now_s);
}

static void prepare(worker_t *worker, uint32_t tensor_id, uint32_t num_chunks, const part_t *part) {
  worker->source = (source_t){.tensor_id = tensor_id,
                              .num_chunks = num_chunks,
                              .num_ready = num_chunks,
                              .num_values = (uint64_t)NUM_VALUES * num_chunks,
                              .values = VALUES_INT32,
                              .data = part->data,
                              .large = part->large,
                              .output = part->output,
                              .contributors = part->contributors,
                              .bitmaps = part->bitmaps};
  worker->tolerance = (tolerance_t){.left = part->left, .limit = part->limit};
  if (part->is_tolerant) worker->source.tolerance = &worker->tolerance;
  worker->has_begun = false;
  double at_s = worker->network->now_s + part->late_s;
  push(worker->network, (pending_t){.at_s = at_s, .action = BEGIN, .worker = worker->number});
}

static bool is_done(const network_t *network) {
  for (uint32_t i = 0; i < network->settings.num_workers; i++) {
    const worker_t *worker = &network->workers[i];
    if (!worker->has_begun || !worker->source.is_finished) return false;
  }
  return true;
}

const char *network_sum(network_t *network, uint32_t tensor_id, uint32_t num_chunks, part_t *parts) {
  double began_s = network->now_s;
  const char *problem = NULL;
  network->num_records = 0;
  for (uint32_t i = 0; i < network->settings.num_workers; i++) prepare(&network->workers[i], tensor_id, num_chunks, &parts[i]);
  while (!problem && !is_done(network)) {
    if (!network->num_pending) return "no event is pending any more";
    pending_t item = pop(network);
    worker_t *worker = &network->workers[item.worker];
    network->now_s = item.at_s;
    if (network->now_s > began_s + LIMIT_S) return "a sum does not end";
    switch (item.action) {
    case AT_SWITCH: reach_switch(network, &item); break;
    case AT_WORKER: reach_worker(worker, item.packet); break;
    case WAKE: problem = wake(worker, item.at_s); break;
    case BEGIN: begin(worker); break;
    }
  }
  for (uint32_t i = 0; i < network->settings.num_workers; i++) parts[i].has_missed = network->workers[i].source.has_missed;
  return problem;
}

const record_t *network_records(network_t *network, uint32_t *count) {
  *count = network->num_records;
  return network->records;
}
