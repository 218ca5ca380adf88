// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

static int worker_send(transport_t *base, uint8_t *const *datagrams, uint32_t count) {
  const worker_t *worker = (const worker_t *)base;
  for (uint32_t i = 0; i < count; i++) network_send(AT_SWITCH, worker->job, worker->number, datagrams[i]);
  return (int)count;
}

static void wake_at(worker_t *worker, double at_s) {
  if (at_s >= worker->wakes_s) return;
  worker->wakes_s = at_s;
  clock_push((event_t){.at_s = at_s, .kind = WAKE, .job = worker->job, .worker = worker->number});
}

void worker_submit(worker_t *worker) {
  stream_enqueue(&worker->stream, &worker->source);
  wake_at(worker, now_s);
}

void worker_take(worker_t *worker, const event_t *event) {
  if (worker->num_inbox == worker->inbox_room) {
    worker->inbox_room = 2 * worker->inbox_room + BATCH;
    worker->inbox = room(worker->inbox, worker->inbox_room * sizeof *worker->inbox);
  }
  uint8_t *at = worker->inbox[worker->num_inbox++];
  memcpy(at, event->datagram, PACKET_BYTES);
  if (event->is_marked) store16(at + FLAGS_AT, load16(at + FLAGS_AT) | ECN_ECHO);
  wake_at(worker, fmax(now_s, worker->awake_s + settings.pause_s));
}

// Whether a notice says that the others are two rounds ahead of what a slot waits for.
static bool is_gone(const slot_t *slot, const uint8_t *notice) {
  uint32_t ahead = load32(notice + ROUND_AT) - slot->round;
  return slot->is_busy && ahead && !(ahead & 1) && ahead < UINT32_C(1) << 31;
}

static void take_inbox(worker_t *worker) {
  stream_t *stream = &worker->stream;
  for (uint32_t done = 0; done < worker->num_inbox;) {
    stream_begin(stream);
    for (uint32_t i = 0; i < BATCH && done < worker->num_inbox; i++, done++) {
      const uint8_t *at = worker->inbox[done];
      slot_t *slot = &worker->slots[slot_of(at)];
      if (at[OPERATION_AT] == RESULT) stream_take(stream, slot, at);
      else if (is_gone(slot, at)) stream_miss(stream, slot, now_s);
    }
    if (stream_end(stream, now_s) < 0) fail("results were not taken");
  }
  worker->num_inbox = 0;
}

// Returns whether the worker sleeps on.
static bool nap(worker_t *worker) {
  if (settings.nap_s <= 0 || now_s < fmax(worker->nap_s, WARM_UP_S)) return false;
  double ends_s = now_s - settings.nap_s * log(1 - draw(&lots));
  worker->nap_s = ends_s - settings.nap_off_s * log(1 - draw(&lots));
  worker->awake_s = ends_s - settings.pause_s; // what arrives meanwhile waits
  wake_at(worker, ends_s);
  return true;
}

bool worker_wake(worker_t *worker) {
  if (now_s != worker->wakes_s) return false; // another wake-up came before
  worker->wakes_s = INFINITY;
  if (nap(worker)) return false;
  worker->awake_s = now_s;
  stream_t *stream = &worker->stream;
  take_inbox(worker);
  if (stream_keep_time(stream, now_s) < 0 || stream_pump(stream, now_s) < 0) fail("nothing could be sent");
  double next_s = stream_next_s(stream);
  if (next_s < INFINITY) wake_at(worker, fmax(next_s, now_s + 1e-6));
  if (worker->source.is_finished && worker->ended_s == 0) worker->ended_s = now_s;
  return worker->source.is_finished;
}

// As hostlib/options.py has them.
static stream_options_t options_of(uint32_t number, uint32_t num_trees) {
  return (stream_options_t){.generation = 1,
                            .worker_bitmap = 1u << number,
                            .child_id = number,
                            .num_workers = settings.num_workers,
                            .values_per_packet = VALUES,
                            .num_trees = num_trees,
                            .straggler_s = INFINITY,
                            .initial_rto_s = 0.1,
                            .minimum_rto_s = 0.02,
                            .maximum_rto_s = 1,
                            .window = settings.window,
                            .batch = BATCH,
                            .has_adaptive_wait = settings.is_adaptive,
                            .has_dynamic_incast = settings.is_incast_dynamic,
                            .has_statements = settings.stale > 0};
}

worker_t *worker_new(uint32_t job, uint32_t number) {
  worker_t *worker = room(NULL, sizeof *worker);
  uint32_t num_trees = settings.is_transposed ? settings.num_workers : 1, most = settings_most_chunks();
  uint32_t members = (uint32_t)((1ull << settings.num_workers) - 1);
  *worker = (worker_t){.base.send = worker_send,
                       .job = job,
                       .number = number,
                       .output = calloc(most, sizeof *worker->output),
                       .contributors = calloc(most, sizeof *worker->contributors),
                       .bitmaps = calloc(most, sizeof *worker->bitmaps),
                       .awake_s = -1,
                       .wakes_s = INFINITY};
  for (uint32_t i = 0; i < SLOTS; i++) {
    uint16_t tree = (uint16_t)(i % num_trees);
    worker->slots[i] = (slot_t){.tree_id = (uint16_t)(1 + tree), .tree = tree, .local = i / num_trees};
    worker->slots[i].flush_s = worker->slots[i].hold_s = INFINITY;
  }
  for (uint32_t i = 0; i < num_trees; i++) {
    worker->closers[i] = (closers_t){.count = settings.num_workers, .own = number, .members = members, .is_root = 1};
  }
  stream_options_t options = options_of(number, num_trees);
  bool has_memory = worker->output && worker->contributors && worker->bitmaps &&
                    stream_init(&worker->stream, &worker->base, &options, worker->closers, worker->slots, SLOTS);
  if (!has_memory) fail("no memory");
  return worker;
}
