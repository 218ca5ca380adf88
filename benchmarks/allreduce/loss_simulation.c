// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Slot streams of the host library over lossy links, in simulated time: what `simulated_loss.py` measures.
//
// Each worker has a link to the switch and one from it, with rate, delay, queue and loss; worker i of every job uses the
// same two links. A worker that is awake takes all results that have arrived, sends what it may, and sleeps until a result
// arrives or a timer runs out. The streams are the product's own code; links, switch and clock are this file's. A job sums
// one tensor after the other, and every sum is checked. With `tolerated`, sums may lack that share of all contributions; a
// worker that has missed a result has the sum from another one, which takes no time here. With `late`, one worker, by lot
// of each sum, begins so much later in a `late_share` of the sums. With `nap`, each worker is not awake for so long, now and
// then, `awake` apart on average. `large` is a file with a byte for each chunk, not 0 for those that lack nothing; into the
// file `bitmaps`, each sum that is not of the warm-up writes which workers are in each of its chunks, as uint32. With
// `stale`, each worker may do without that share of its results. With `transposed`, each worker's host has a switch, the
// root of an equal part of the slots, behind the worker's links: what goes between hosts crosses a link up and one down, and
// what stays on a host crosses none. With `uplink`, two hosts each are on a leaf, whose links to the spine carry so many
// packets a second, and lose none.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slots/header.h"
#include "slots/stream.h"

#define VALUES 1u // of a packet: the values cost no simulated time
#define PACKET_BYTES (HEADER_BYTES + VALUE_BYTES * VALUES)
#define MAX_WORKERS 32u
#define MAX_JOBS 64u
#define HOSTS_PER_LEAF 2u
#define SLOTS 112u // value slots of a job that has 128
#define WINDOW 256u
#define WARM_UP_CHUNKS 200u
#define WARM_UP_S 0.2 // before losses begin
#define LIMIT_S 600.0

typedef struct {
  uint32_t num_jobs, num_workers, num_chunks;
  uint64_t seed;
  double seconds; // of lossy time
  double packet_s, delay_s, pause_s;
  double queue_packets, mark_packets; // of a link: beyond, it drops, and marks
  double loss[2]; // of contributions, and of results
  double late_s, late_share;
  double nap_s, nap_off_s; // mean times
  bool is_adaptive; // see tail.h
  double tolerated; // share of the contributions to a tensor that it may lack
  double stale;     // share of the results of a tensor that a worker may do without
  bool is_transposed;
  double uplink_packet_s; // 0: there are no leaves
  double burst_loss, burst_on_s, burst_off_s; // mean times with this loss and without it
} settings_t;

typedef struct {
  double packet_s, free_s;
  uint64_t random;
  double loss;
  bool is_burst;
  double change_s;
  uint64_t dropped;
} link_t;

typedef struct {
  transport_t base;
  uint32_t job, number;
  stream_t stream;
  slot_t slots[SLOTS];
  closers_t closers[MAX_WORKERS]; // by tree
  source_t source;
  tolerance_t tolerance;
  int32_t *output;
  uint16_t *contributors;
  uint32_t *bitmaps;
  uint8_t (*inbox)[PACKET_BYTES];
  uint32_t num_inbox, inbox_room;
  double awake_s, wakes_s;
  double ended_s; // the sum, here
  double nap_s;   // of the next nap
  bool is_late;   // in this sum
} worker_t;

typedef struct {
  uint32_t round, bitmap;
  int32_t value;
  bool is_marked, is_closed, is_flushed;
} copy_t;

typedef struct {
  uint32_t tensor_id, num_chunks;
  double began_s;
  copy_t copies[SLOTS][2];
  uint64_t num_sums, num_results, num_lacking, num_missed, num_stale;
} job_t;

typedef enum { AT_LINK, AT_SWITCH, AT_WORKER, WAKE, BEGIN, BEGIN_LATE } kind_t;

typedef struct {
  double at_s;
  uint64_t order;
  kind_t kind, next;   // `next`: what it is behind the last link
  uint32_t links_left; // that it crosses then
  uint32_t job, worker;
  bool is_marked;
  uint8_t datagram[PACKET_BYTES];
} event_t;

static settings_t settings;
static double now_s;
static event_t *events;
static size_t num_events, events_room;
static uint64_t num_orders;
static link_t links[MAX_WORKERS][2], uplinks[MAX_WORKERS / HOSTS_PER_LEAF][2];
static worker_t *workers[MAX_JOBS][MAX_WORKERS];
static job_t jobs[MAX_JOBS];
static uint64_t lots;
static int32_t *data;
static uint8_t *large;      // NULL: no chunk is
static FILE *bitmaps_file; // NULL: not wanted

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "loss simulation: %s at %.6f s\n", what, now_s);
  exit(1);
}

static void *room(void *old, size_t bytes) {
  void *found = realloc(old, bytes);
  if (!found) fail("no memory");
  return found;
}

// splitmix64
static double draw(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool is_before(const event_t *a, const event_t *b) {
  return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

static void push(event_t event) {
  if (num_events == events_room) events = room(events, (events_room = 2 * events_room + 1024) * sizeof *events);
  event.order = num_orders++;
  size_t at = num_events++;
  for (; at && is_before(&event, &events[(at - 1) / 2]); at = (at - 1) / 2) events[at] = events[(at - 1) / 2];
  events[at] = event;
}

static event_t pop(void) {
  if (!num_events) fail("nothing is pending");
  event_t top = events[0], last = events[--num_events];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < num_events; at = child) {
    if (child + 1 < num_events && is_before(&events[child + 1], &events[child])) child++;
    if (!is_before(&events[child], &last)) break;
    events[at] = events[child];
  }
  events[at] = last;
  return top;
}

static bool is_lost(link_t *link) {
  if (now_s < WARM_UP_S) return false;
  if (settings.burst_loss > 0) {
    while (link->change_s < now_s) {
      link->is_burst = !link->is_burst;
      double mean_s = link->is_burst ? settings.burst_on_s : settings.burst_off_s;
      link->change_s = fmax(link->change_s, WARM_UP_S) - mean_s * log(1 - draw(&link->random));
    }
    if (link->is_burst && draw(&link->random) < settings.burst_loss) return true;
  }
  return link->loss > 0 && draw(&link->random) < link->loss;
}

static void transmit(link_t *link, event_t event) {
  double start_s = fmax(now_s, link->free_s), waiting = (start_s - now_s) / link->packet_s;
  if (waiting > settings.queue_packets) {
    link->dropped++;
    return;
  }
  link->free_s = start_s + link->packet_s;
  if (is_lost(link)) return;
  event.at_s = link->free_s + settings.delay_s;
  event.is_marked = event.is_marked || waiting > settings.mark_packets;
  push(event);
}

// The host of the root of a datagram's tree, if each has one.
static uint32_t root_of(const uint8_t *datagram) { return load16(datagram + TREE_AT) - 1u; }

// Let a packet cross the links between two hosts: those of the hosts, and those of leaves if the hosts are on two.
static void cross_links(event_t event) {
  uint32_t root = root_of(event.datagram), is_down = event.next == AT_WORKER;
  uint32_t from = is_down ? root : event.worker, to = is_down ? event.worker : root;
  link_t *last_first[] = {&links[to][1], &uplinks[to / HOSTS_PER_LEAF][1], &uplinks[from / HOSTS_PER_LEAF][0], &links[from][0]};
  bool has_uplinks = settings.uplink_packet_s > 0 && from / HOSTS_PER_LEAF != to / HOSTS_PER_LEAF;
  if (event.kind != AT_LINK) event.links_left = 4;
  link_t *link = last_first[--event.links_left];
  if (!has_uplinks && event.links_left == 3) event.links_left = 1;
  event.kind = event.links_left ? AT_LINK : event.next;
  transmit(link, event);
}

// Send a packet of a worker to the switch, or back, by `kind`.
static void send_packet(kind_t kind, uint32_t job, uint32_t worker, const uint8_t *datagram) {
  event_t event = {.at_s = now_s, .kind = kind, .next = kind, .job = job, .worker = worker};
  memcpy(event.datagram, datagram, PACKET_BYTES);
  if (!settings.is_transposed) {
    transmit(&links[worker][kind == AT_WORKER], event);
    return;
  }
  if (root_of(datagram) == worker) push(event);
  else cross_links(event);
}

static int worker_send(transport_t *base, uint8_t *const *datagrams, uint32_t count) {
  worker_t *worker = (worker_t *)base;
  for (uint32_t i = 0; i < count; i++) {
    send_packet(AT_SWITCH, worker->job, worker->number, datagrams[i]);
  }
  return (int)count;
}

static void answer(job_t *job, copy_t *copy, uint32_t worker, const uint8_t *contribution, bool is_replay) {
  uint8_t result[PACKET_BYTES];
  memcpy(result, contribution, PACKET_BYTES);
  result[OPERATION_AT] = RESULT;
  uint16_t flags = load16(contribution + FLAGS_AT) & LAST;
  if (is_replay) flags |= REPLAY;
  if (copy->is_marked) flags |= ECN_ECHO;
  if (copy->is_flushed) flags |= FLUSHED;
  store16(result + FLAGS_AT, flags);
  store32(result + BITMAP_AT, copy->bitmap);
  store16(result + CONTRIBUTORS_AT, (uint16_t)__builtin_popcount(copy->bitmap));
  store32(result + HEADER_BYTES, (uint32_t)copy->value);
  send_packet(AT_WORKER, (uint32_t)(job - jobs), worker, result);
}

static void close_round(job_t *job, copy_t *copy, const uint8_t *contribution) {
  copy->is_closed = true;
  for (uint32_t i = 0; i < settings.num_workers; i++) answer(job, copy, i, contribution, false);
}

// Tell a worker that its round is over, and its result gone.
static void notify(const job_t *job, const copy_t *copy, uint32_t worker, const uint8_t *contribution) {
  uint8_t notice[PACKET_BYTES];
  memcpy(notice, contribution, PACKET_BYTES);
  notice[OPERATION_AT] = NOTICE;
  store32(notice + ROUND_AT, copy->round);
  send_packet(AT_WORKER, (uint32_t)(job - jobs), worker, notice);
}

static void flush(job_t *job, copy_t *copy, const event_t *event) {
  const uint8_t *at = event->datagram;
  if (load32(at + ROUND_AT) > copy->round) return;
  if (copy->is_closed) {
    answer(job, copy, event->worker, at, true);
  } else if ((uint32_t)__builtin_popcount(copy->bitmap) >= at[EXPECTED_AT]) {
    copy->is_flushed = true;
    close_round(job, copy, at);
  }
}

// The view's slot that a datagram names: those of several trees take turns.
static uint32_t slot_of(const uint8_t *datagram) {
  uint32_t local = load32(datagram + SLOT_AT);
  return settings.is_transposed ? local * settings.num_workers + root_of(datagram) : local;
}

static void reach_switch(const event_t *event) {
  job_t *job = &jobs[event->job];
  const uint8_t *at = event->datagram;
  uint32_t round = load32(at + ROUND_AT), bit = 1u << event->worker, all = (uint32_t)((1ull << settings.num_workers) - 1);
  copy_t *copy = &job->copies[slot_of(at)][round & 1];
  if (round < copy->round) {
    if (settings.tolerated > 0) notify(job, copy, event->worker, at);
    return;
  }
  if (at[OPERATION_AT] == FLUSH && settings.tolerated > 0) {
    flush(job, copy, event);
    return;
  }
  if (at[OPERATION_AT] != AGGREGATE_ADD) fail("the switch got what no worker sends");
  if (round > copy->round) *copy = (copy_t){.round = round};
  copy->is_marked = copy->is_marked || event->is_marked;
  if (copy->is_closed) {
    answer(job, copy, event->worker, at, true);
    return;
  }
  if (copy->bitmap & bit) return;
  copy->bitmap |= bit;
  copy->value += (int32_t)load32(at + HEADER_BYTES);
  if (copy->bitmap == all) close_round(job, copy, at);
}

static uint32_t part(uint32_t total, uint32_t place) { return total / settings.num_workers + (place < total % settings.num_workers); }

// What a worker may let go of a tensor, as hostlib/loss_tolerance.py has it.
static tolerance_t tolerance_of(uint32_t num_chunks, uint32_t place) {
  uint32_t total = (uint32_t)(settings.tolerated * settings.num_workers * num_chunks);
  uint32_t of_worker = (uint32_t)(fmin(1, 2 * settings.tolerated) * num_chunks);
  return (tolerance_t){.left = part(total, place), .limit = part(of_worker, place)};
}

static void wake_at(worker_t *worker, double at_s) {
  if (at_s >= worker->wakes_s) return;
  worker->wakes_s = at_s;
  push((event_t){.at_s = at_s, .kind = WAKE, .job = worker->job, .worker = worker->number});
}

static void submit(worker_t *worker) {
  stream_enqueue(&worker->stream, &worker->source);
  wake_at(worker, now_s);
}

static void begin(job_t *job) {
  bool is_one_late = settings.late_s > 0 && now_s >= WARM_UP_S && draw(&lots) < settings.late_share;
  uint32_t late = is_one_late ? (uint32_t)(draw(&lots) * settings.num_workers) : 0;
  job->tensor_id++;
  job->num_chunks = now_s < WARM_UP_S ? WARM_UP_CHUNKS : settings.num_chunks;
  job->began_s = now_s;
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    worker_t *worker = workers[job - jobs][i];
    worker->source = (source_t){.tensor_id = job->tensor_id,
                                .num_chunks = job->num_chunks,
                                .num_ready = job->num_chunks,
                                .num_values = job->num_chunks,
                                .values = VALUES_INT32,
                                .data = data,
                                .output = worker->output,
                                .contributors = worker->contributors};
    if (settings.tolerated > 0) {
      worker->tolerance = tolerance_of(job->num_chunks, i);
      worker->source.tolerance = &worker->tolerance;
      worker->source.bitmaps = worker->bitmaps;
    }
    if (now_s >= WARM_UP_S) worker->source.large = large;
    memset(worker->contributors, 0, job->num_chunks * sizeof *worker->contributors);
    if (settings.stale > 0) {
      worker->source.may_be_stale = true;
      worker->source.stale_left = (uint32_t)(settings.stale * job->num_chunks);
    }
    worker->ended_s = 0;
    worker->is_late = is_one_late && i == late;
    if (worker->is_late) push((event_t){.at_s = now_s + settings.late_s, .kind = BEGIN_LATE, .job = worker->job, .worker = i});
    else submit(worker);
  }
}

// Check the sums of all workers that have all results, and what they lack.
static void check(job_t *job) {
  const worker_t *first = NULL;
  uint32_t lacking = 0;
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    const worker_t *worker = workers[job - jobs][i];
    job->num_missed += worker->source.has_missed;
    if (worker->source.has_missed) continue;
    if (!first) first = worker;
    uint32_t num_stale = 0;
    for (uint32_t k = 0; k < job->num_chunks; k++) {
      if (settings.stale > 0 && !worker->contributors[k]) {
        num_stale++;
        continue;
      }
      if (worker->output[k] != data[k] * worker->contributors[k]) fail("a sum is wrong");
      if (settings.stale == 0 && worker->contributors[k] != first->contributors[k]) fail("two workers have different sums");
      if (worker->source.tolerance && worker->bitmaps[k] != first->bitmaps[k]) fail("two workers lack different ones");
      if (worker == first) lacking += settings.num_workers - worker->contributors[k];
    }
    if (num_stale > settings.stale * job->num_chunks) fail("a worker does without more than it may");
    if (job->began_s >= WARM_UP_S) job->num_stale += num_stale;
  }
  if (!first) fail("no worker has all results");
  if (lacking > settings.tolerated * settings.num_workers * job->num_chunks) fail("a sum lacks more than is tolerated");
  if (job->began_s < WARM_UP_S) return;
  job->num_lacking += lacking;
  if (bitmaps_file && fwrite(first->bitmaps, sizeof *first->bitmaps, job->num_chunks, bitmaps_file) != job->num_chunks) {
    fail("bitmaps could not be written");
  }
}

static void end(job_t *job) {
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    if (!workers[job - jobs][i]->source.is_finished) return;
  }
  check(job);
  if (job->began_s >= WARM_UP_S) {
    double punctual_s = 0;
    for (uint32_t i = 0; i < settings.num_workers; i++) {
      const worker_t *worker = workers[job - jobs][i];
      if (!worker->is_late) punctual_s = fmax(punctual_s, worker->ended_s);
    }
    if (settings.num_jobs == 1) printf("%.9f\npunctual %.9f\n", now_s - job->began_s, punctual_s - job->began_s);
    job->num_sums++;
    job->num_results += job->num_chunks;
  }
  double from_s = now_s < WARM_UP_S && job->tensor_id >= 2 ? WARM_UP_S : now_s;
  push((event_t){.at_s = from_s, .kind = BEGIN, .job = (uint32_t)(job - jobs)});
  for (uint32_t i = 0; i < settings.num_workers; i++) workers[job - jobs][i]->source.is_finished = false;
}

// Whether a notice says that the others are two rounds ahead of what a slot waits for.
static bool is_gone(const slot_t *slot, const uint8_t *notice) {
  uint32_t ahead = load32(notice + ROUND_AT) - slot->round;
  return slot->is_busy && ahead && !(ahead & 1) && ahead < UINT32_C(1) << 31;
}

static void wake(worker_t *worker, double at_s) {
  if (at_s != worker->wakes_s) return; // another wake-up came before
  worker->wakes_s = INFINITY;
  if (settings.nap_s > 0 && now_s >= fmax(worker->nap_s, WARM_UP_S)) {
    double ends_s = now_s - settings.nap_s * log(1 - draw(&lots));
    worker->nap_s = ends_s - settings.nap_off_s * log(1 - draw(&lots));
    worker->awake_s = ends_s - settings.pause_s; // what arrives meanwhile waits
    wake_at(worker, ends_s);
    return;
  }
  worker->awake_s = at_s;
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
  if (stream_keep_time(stream, now_s) < 0 || stream_pump(stream, now_s) < 0) fail("nothing could be sent");
  double next_s = stream_next_s(stream);
  if (next_s < INFINITY) wake_at(worker, fmax(next_s, now_s + 1e-6));
  if (!worker->source.is_finished) return;
  if (worker->ended_s == 0) worker->ended_s = now_s;
  end(&jobs[worker->job]);
}

static void reach_worker(const event_t *event) {
  worker_t *worker = workers[event->job][event->worker];
  if (worker->num_inbox == worker->inbox_room) {
    worker->inbox_room = 2 * worker->inbox_room + BATCH;
    worker->inbox = room(worker->inbox, worker->inbox_room * sizeof *worker->inbox);
  }
  uint8_t *at = worker->inbox[worker->num_inbox++];
  memcpy(at, event->datagram, PACKET_BYTES);
  if (event->is_marked) store16(at + FLAGS_AT, load16(at + FLAGS_AT) | ECN_ECHO);
  wake_at(worker, fmax(now_s, worker->awake_s + settings.pause_s));
}

static worker_t *new_worker(uint32_t job, uint32_t number) {
  worker_t *worker = calloc(1, sizeof *worker);
  if (!worker) fail("no memory");
  uint32_t most = settings.num_chunks > WARM_UP_CHUNKS ? settings.num_chunks : WARM_UP_CHUNKS;
  worker->base.send = worker_send;
  worker->job = job;
  worker->number = number;
  worker->output = calloc(most, sizeof *worker->output);
  worker->contributors = calloc(most, sizeof *worker->contributors);
  worker->bitmaps = calloc(most, sizeof *worker->bitmaps);
  worker->awake_s = -1;
  worker->wakes_s = INFINITY;
  uint32_t num_trees = settings.is_transposed ? settings.num_workers : 1;
  for (uint32_t i = 0; i < SLOTS; i++) {
    uint16_t tree = (uint16_t)(i % num_trees);
    worker->slots[i] = (slot_t){.tree_id = (uint16_t)(1 + tree), .tree = tree, .local = i / num_trees};
    worker->slots[i].flush_s = worker->slots[i].hold_s = INFINITY;
  }
  // As hostlib/options.py has them.
  stream_options_t options = {.generation = 1,
                              .worker_bitmap = 1u << number,
                              .child_id = number,
                              .num_workers = settings.num_workers,
                              .values_per_packet = VALUES,
                              .num_trees = num_trees,
                              .straggler_s = INFINITY,
                              .initial_rto_s = 0.1,
                              .minimum_rto_s = 0.02,
                              .maximum_rto_s = 1,
                              .window = WINDOW,
                              .batch = BATCH,
                              .has_adaptive_wait = settings.is_adaptive,
                              .has_statements = settings.stale > 0};
  if (settings.tolerated > 0) {
    uint32_t members = (uint32_t)((1ull << settings.num_workers) - 1);
    for (uint32_t i = 0; i < num_trees; i++) {
      worker->closers[i] = (closers_t){.count = settings.num_workers, .own = number, .members = members, .is_root = 1};
    }
  }
  bool has_memory = worker->output && worker->contributors && worker->bitmaps &&
                    stream_init(&worker->stream, &worker->base, &options, AGGREGATE_ADD, worker->closers, worker->slots, SLOTS);
  if (!has_memory) fail("no memory");
  return worker;
}

static double number(int argc, char **argv, const char *name, double otherwise) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], name) == 0) return atof(argv[i + 1]);
  }
  return otherwise;
}

static const char *text(int argc, char **argv, const char *name) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return NULL;
}

static void open_files(int argc, char **argv) {
  const char *path = text(argc, argv, "large");
  if (path) {
    FILE *file = fopen(path, "rb");
    large = room(NULL, settings.num_chunks);
    if (!file || fread(large, 1, settings.num_chunks, file) != settings.num_chunks) fail("no byte for each chunk can be read");
    fclose(file);
  }
  path = text(argc, argv, "bitmaps");
  if (path && !(bitmaps_file = fopen(path, "wb"))) fail("the file of bitmaps cannot be opened");
  if (path && settings.tolerated <= 0) fail("sums that lack nothing have no bitmaps");
}

int main(int argc, char **argv) {
  double loss = number(argc, argv, "loss", 0);
  settings = (settings_t){.num_jobs = (uint32_t)number(argc, argv, "jobs", 1),
                          .num_workers = (uint32_t)number(argc, argv, "workers", 4),
                          .num_chunks = (uint32_t)number(argc, argv, "chunks", 400),
                          .seed = (uint64_t)number(argc, argv, "seed", 1),
                          .seconds = number(argc, argv, "seconds", 5),
                          .packet_s = 1 / number(argc, argv, "rate", 8000),
                          .delay_s = number(argc, argv, "delay", 0.0002),
                          .pause_s = number(argc, argv, "pause", 0.0005),
                          .queue_packets = number(argc, argv, "queue", 1000),
                          .mark_packets = number(argc, argv, "mark", INFINITY),
                          .loss = {number(argc, argv, "up", loss), number(argc, argv, "down", loss)},
                          .late_s = number(argc, argv, "late", 0),
                          .nap_s = number(argc, argv, "nap", 0),
                          .nap_off_s = number(argc, argv, "awake", 0.1),
                          .late_share = number(argc, argv, "late_share", 1),
                          .is_adaptive = number(argc, argv, "adaptive", 0) > 0,
                          .tolerated = number(argc, argv, "tolerated", 0),
                          .stale = number(argc, argv, "stale", 0),
                          .is_transposed = number(argc, argv, "transposed", 0) > 0,
                          .uplink_packet_s = 1 / number(argc, argv, "uplink", INFINITY),
                          .burst_loss = number(argc, argv, "burst", 0),
                          .burst_on_s = number(argc, argv, "on", 0.02),
                          .burst_off_s = number(argc, argv, "off", 0.1)};
  if (settings.num_workers < 1 || settings.num_workers > 31 || settings.num_jobs < 1 || settings.num_jobs > MAX_JOBS) {
    fail("1 to 31 workers and 1 to 64 jobs can be simulated");
  }
  open_files(argc, argv);
  lots = settings.seed;
  uint32_t most = settings.num_chunks > WARM_UP_CHUNKS ? settings.num_chunks : WARM_UP_CHUNKS;
  data = room(NULL, most * sizeof *data);
  for (uint32_t i = 0; i < most; i++) data[i] = (int32_t)i;
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    for (uint32_t j = 0; j < 2; j++) {
      uplinks[i / HOSTS_PER_LEAF][j].packet_s = settings.uplink_packet_s;
      links[i][j] = (link_t){.packet_s = settings.packet_s, .random = settings.seed * 1000003 + 2 * i + j, .loss = settings.loss[j]};
    }
  }
  for (uint32_t i = 0; i < settings.num_jobs; i++) {
    for (uint32_t j = 0; j < settings.num_workers; j++) workers[i][j] = new_worker(i, j);
    push((event_t){.at_s = 0.001 * i, .kind = BEGIN, .job = i});
  }
  while (now_s < WARM_UP_S + settings.seconds) {
    event_t event = pop();
    now_s = event.at_s;
    switch (event.kind) {
    case AT_LINK: cross_links(event); break;
    case AT_SWITCH: reach_switch(&event); break;
    case AT_WORKER: reach_worker(&event); break;
    case WAKE: wake(workers[event.job][event.worker], event.at_s); break;
    case BEGIN: begin(&jobs[event.job]); break;
    case BEGIN_LATE: submit(workers[event.job][event.worker]); break;
    }
  }
  uint64_t sent = 0, again = 0, fast = 0, probes = 0, marked = 0, dropped = 0, flushed = 0, results = 0, lacking = 0,
           missed = 0, stale = 0;
  for (uint32_t i = 0; i < settings.num_jobs; i++) {
    for (uint32_t j = 0; j < settings.num_workers; j++) {
      const stream_counters_t *counters = &workers[i][j]->stream.counters;
      sent += counters->sent;
      again += counters->retransmitted;
      fast += counters->fast_retransmitted;
      probes += counters->probe_retransmitted;
      marked += counters->marked;
      flushed += counters->flushed;
    }
    results += jobs[i].num_results;
    lacking += jobs[i].num_lacking;
    missed += jobs[i].num_missed;
    stale += jobs[i].num_stale;
    printf("job %" PRIu32 " %.3f %" PRIu32 "\n", i, (double)workers[i][0]->stream.counters.received / (WARM_UP_S + settings.seconds),
           congestion_limit(&workers[i][0]->stream.window));
  }
  for (uint32_t i = 0; i < settings.num_workers; i++) dropped += links[i][0].dropped + links[i][1].dropped;
  for (uint32_t i = 0; i < MAX_WORKERS / HOSTS_PER_LEAF; i++) dropped += uplinks[i][0].dropped + uplinks[i][1].dropped;
  printf("counters %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sent, again, fast, probes, marked,
         dropped);
  printf("tolerance %" PRIu64 " %.9f %" PRIu64 "\n", flushed,
         1 - (double)lacking / fmax(1, (double)results * settings.num_workers), missed);
  if (bitmaps_file && fclose(bitmaps_file)) fail("bitmaps could not be written");
  printf("stale %.9f\n", (double)stale / fmax(1, (double)results * settings.num_workers));
  return 0;
}
