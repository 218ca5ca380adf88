// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "random.h"

#define TICK_S 0.0002
#define MOST_TICKS 20000
#define HOSTILE_TICKS 60

uint64_t random_state;

static void check(job_t *job, bool holds, const char *failure) {
  if (!holds && !job->failure) job->failure = failure;
}

// A damaged twin of a packet leaves as well.
static void send_damaged(job_t *job, port_t *port, const packet_t *packet) {
  static packet_t twin;
  if (happens(1000 - port->weather.damage)) return;
  twin = *packet;
  damage(&twin, job->has_frames ? LAYERS_BYTES : 0, job->latest.bytes ? &job->latest : packet);
  job->latest = *packet;
  // A chunk without result must not look as if it had one.
  uint32_t contributors_at = (job->has_frames ? LAYERS_BYTES : 0) + CONTRIBUTORS_AT;
  if (twin.bytes >= contributors_at + 2 && load16(twin.data + contributors_at) == UNTOUCHED) return;
  if (!job->is_hostile && job_is_deceived(job, &twin)) return;
  job->num_damaged++;
  port_reply(port, &twin);
}

static void reply_to(job_t *job, uint32_t id, const uint8_t *datagram) {
  static packet_t packet;
  packet.bytes = job->packet_bytes;
  if (job->has_frames) frames_wrap_rows(&job->frames, datagram, 1, packet.data);
  else memcpy(packet.data, datagram, job->datagram_bytes);
  port_reply(&job->ports[id], &packet);
  send_damaged(job, &job->ports[id], &packet);
}

// What the switch does with a multicast: a copy for every other worker, some of which meet congestion.
static void copy_to_others(job_t *job, uint32_t id, const uint8_t *datagram) {
  uint8_t copy[MOST_BYTES];
  for (uint32_t other = 0; other < job->num_workers; other++) {
    if (other == id) continue;
    memcpy(copy, datagram, job->datagram_bytes);
    if (happens(20)) store16(copy + FLAGS_AT, load16(copy + FLAGS_AT) | ECN_ECHO);
    reply_to(job, other, copy);
  }
}

static void switch_turn(job_t *job, uint32_t id) {
  uint8_t reply[MOST_BYTES];
  job->in.count = 0;
  port_receive(&job->ports[id], &job->in);
  check(job, !job->ports[id].has_bad_frame, "a worker sent a wrong frame");
  for (uint32_t i = 0; i < job->in.count; i++) {
    const packet_t *packet = &job->in.packets[i];
    const uint8_t *datagram = packet->data + (job->has_frames ? LAYERS_BYTES : 0);
    uint32_t tree, local;
    check(job, packet->bytes == job->packet_bytes, "a worker sent a packet of a wrong size");
    if (job->failure) return;
    check(job, !job->has_frames || has_good_checksum(packet->data, packet->bytes), "a worker's checksum is wrong");
    if (job_is_multicast(job, id, datagram)) {
      copy_to_others(job, id, datagram);
      continue;
    }
    check(job, job_slot(job, datagram, &tree, &local), "a worker sent what is no contribution");
    if (job->failure) return;
    reply_t to = slot_switch_process(&job->held, job->first_slot[tree] + local, datagram, reply);
    for (uint32_t other = 0; other < job->num_workers; other++) {
      if (to == REPLY_TO_ALL || (to == REPLY_TO_SENDER && other == id)) reply_to(job, other, reply);
    }
  }
}

static uint64_t refused_by(const worker_t *worker) {
  uint64_t sum = 0;
  for (int i = 0; i < REFUSALS; i++) sum += reducer_refused(worker->reducer)[i];
  return sum;
}

static uint64_t dropped_by(const worker_t *worker) {
  const socket_counters_t *counters = socket_transport_counters(worker->transport);
  return counters->length + counters->other_traffic + counters->checksum;
}

// Hand datagrams to the reducer: each is a result, of a block, or refused by a cause.
static void take(job_t *job, worker_t *worker, const uint8_t *const *datagrams, uint32_t count, double now_s,
                 totals_t *totals) {
  static arrivals_t arrivals;
  arrivals.num_results = arrivals.num_events = arrivals.num_blocks = 0;
  uint64_t refused = refused_by(worker);
  check(job, reducer_take(worker->reducer, datagrams, count, now_s, &arrivals) == 0, "reducer_take failed");
  refused = refused_by(worker) - refused;
  check(job, arrivals.num_results + arrivals.num_blocks + refused == count, "a datagram was not counted once");
  worker->num_results += arrivals.num_results;
  worker->num_blocks += arrivals.num_blocks;
  totals->results += arrivals.num_results;
  totals->blocks += arrivals.num_blocks;
  totals->refused += refused;
}

static void receive(job_t *job, uint32_t id, double now_s, totals_t *totals) {
  worker_t *worker = &job->workers[id];
  const uint8_t *datagrams[BATCH];
  transport_t *transport = socket_transport_base(worker->transport);
  const port_t *port = &job->ports[id];
  for (uint64_t before = UINT64_MAX, now = 0; before != now;) {
    int count = transport->receive(transport, datagrams, between(1, BATCH), 0);
    check(job, count >= 0, "the transport failed");
    if (job->failure) return;
    worker->num_received += (uint32_t)count;
    if (count) take(job, worker, datagrams, (uint32_t)count, now_s, totals);
    before = now;
    now = worker->num_received + dropped_by(worker);
  }
  uint64_t counted = worker->num_received + dropped_by(worker);
  check(job, counted >= port->least_sent && counted <= port->most_sent, "a datagram on the wire was not counted once");
}

// The oldest tensor of a stream that is not finished counts the chunks that are done, up to the first that is not.
static void check_progress(job_t *job, uint32_t id) {
  for (uint32_t name = 0; name < NUM_STREAMS; name++) {
    for (uint32_t i = 0; i < job->workers[id].num_enqueued[name]; i++) {
      const tensor_t *tensor = &job->tensors[name][i];
      const source_t *source = &tensor->parts[id].source;
      if (source->is_finished) continue;
      check(job, source->is_abandoned || source->num_done == tensor_in_a_row(tensor, id), "progress is miscounted");
      break;
    }
  }
}

// Whatever others claim to have, a worker believes only in chunks that it has sent, and sends no more than a window of them.
static void check_window(job_t *job, uint32_t id) {
  if (!job->has_blocks) return;
  const block_sender_t *sender = &reducer_blocks(job->workers[id].reducer)->sender;
  for (uint32_t place = 0; place + 1 < job->num_workers; place++) {
    check(job, sender->taken[place] <= sender->next_chunk, "a worker has what was not sent");
  }
  check(job, sender->next_chunk - sender->base <= BLOCK_WINDOW, "the window is too large");
}

// New tensors, prepared values, and in a hostile schedule what a caller may do besides.
static void submit(job_t *job, uint32_t id, double now_s) {
  worker_t *worker = &job->workers[id];
  if (worker->num_gathers < job->num_gathers && happens(100)) {
    allgather_t *part = &job->gathers[worker->num_gathers++].parts[id];
    check(job, block_exchange_enqueue(reducer_blocks(worker->reducer), part, now_s) == 0, "an allgather was refused");
  }
  for (uint32_t name = 0; name < NUM_STREAMS; name++) {
    stream_t *stream = reducer_stream(worker->reducer, name);
    uint32_t *num_enqueued = &worker->num_enqueued[name];
    if (*num_enqueued < job->num_tensors[name] && happens(300)) {
      source_t *source = &job->tensors[name][*num_enqueued].parts[id].source;
      if (job->is_hostile && happens(200)) {
        if (!worker->withheld) worker->withheld = calloc(64, 1);
        for (uint32_t i = 0; i < 64; i++) worker->withheld[i] = (uint8_t)draw(2);
        source->withheld = worker->withheld;
      }
      stream_enqueue(stream, source);
      (*num_enqueued)++;
    }
    for (uint32_t i = 0; i < *num_enqueued && stream_is_hungry(stream); i++) {
      source_t *source = &job->tensors[name][i].parts[id].source;
      if (source->num_ready < source->num_chunks) source->num_ready += between(1, source->num_chunks - source->num_ready);
    }
    if (job->is_hostile && *num_enqueued && happens(5)) {
      stream_abandon(stream, &job->tensors[name][draw(*num_enqueued)].parts[id].source);
    }
  }
}

static bool is_done(const job_t *job) {
  for (uint32_t id = 0; id < job->num_workers; id++) {
    for (uint32_t i = 0; i < job->num_gathers; i++) {
      const allgather_t *part = &job->gathers[i].parts[id];
      if (!part->is_sent || !part->is_complete) return false;
    }
    for (uint32_t name = 0; name < NUM_STREAMS; name++) {
      for (uint32_t i = 0; i < job->num_tensors[name]; i++) {
        if (!job->tensors[name][i].parts[id].source.is_finished) return false;
      }
    }
  }
  return true;
}

// When something happens next if nothing is under way.
static double next_s(const job_t *job, double now_s) {
  double next = INFINITY;
  for (uint32_t id = 0; id < job->num_workers; id++) {
    next = fmin(next, reducer_next_s(job->workers[id].reducer));
  }
  return fmax(now_s + TICK_S, next < INFINITY ? next : 0);
}

static bool turn(job_t *job, double now_s, totals_t *totals) {
  bool has_moved = false;
  for (uint32_t id = 0; id < job->num_workers; id++) {
    submit(job, id, now_s);
    check(job, reducer_send(job->workers[id].reducer, now_s) == 1, "reducer_send failed");
  }
  for (uint32_t id = 0; id < job->num_workers && !job->failure; id++) switch_turn(job, id);
  for (uint32_t id = 0; id < job->num_workers && !job->failure; id++) {
    has_moved |= port_flush(&job->ports[id]);
    receive(job, id, now_s, totals);
    check_progress(job, id);
    check_window(job, id);
    check(job, reducer_keep_time(job->workers[id].reducer, now_s) == 0, "reducer_keep_time failed");
  }
  return has_moved;
}

// Each chunk has taken at most one result, at the end of a faithful schedule exactly one, with the right sums.
static void check_results(job_t *job, uint32_t id, totals_t *totals) {
  worker_t *worker = &job->workers[id];
  uint64_t received = 0;
  for (uint32_t name = 0; name < NUM_STREAMS; name++) {
    stream_state_t state = stream_state(reducer_stream(worker->reducer, name));
    uint64_t touched = 0, chunks = 0;
    for (uint32_t i = 0; i < job->num_tensors[name]; i++) {
      const tensor_t *tensor = &job->tensors[name][i];
      touched += tensor_touched(tensor, id);
      chunks += tensor->num_chunks;
      check(job, job->is_hostile || tensor_is_right(tensor, id, job->values_per_packet), "a sum is wrong");
    }
    check(job, state.counters.received == touched, "a chunk has taken two results");
    check(job, job->is_hostile || touched == chunks, "a chunk has no result");
    received += state.counters.received;
    totals->again += state.counters.retransmitted;
  }
  check(job, received == worker->num_results, "a result was not counted");
}

// Each chunk of a block was new once, at the end of a faithful schedule, when all blocks are right.
static void check_blocks(job_t *job, uint32_t id, totals_t *totals) {
  worker_t *worker = &job->workers[id];
  if (!job->has_blocks) return;
  block_counters_t counters = block_exchange_counters(reducer_blocks(worker->reducer));
  uint64_t chunks = 0;
  for (uint32_t i = 0; i < job->num_gathers; i++) {
    const gathered_t *gathered = &job->gathers[i];
    chunks += gathered->parts[id].num_chunks;
    check(job, job->is_hostile || gathered_is_right(gathered, id, job->num_workers, job->values_per_packet),
          "a block is wrong");
  }
  check(job, counters.sent <= chunks && (job->is_hostile || job->num_workers == 1 || counters.sent == chunks),
        "a chunk was not sent once");
  check(job, job->is_hostile || counters.received == (job->num_workers - 1) * chunks, "a chunk has not come once");
  check(job, counters.received <= worker->num_blocks, "a chunk was not counted");
  totals->again += counters.retransmitted;
}

bool schedule_run(uint64_t seed, bool is_hostile, totals_t *totals) {
  static job_t job;
  random_state = seed;
  job_init(&job, is_hostile);
  double now_s = 1;
  int tick = 0, most = is_hostile ? HOSTILE_TICKS : MOST_TICKS;
  for (; tick < most && !job.failure && (is_hostile || !is_done(&job)); tick++) {
    now_s = turn(&job, now_s, totals) ? now_s + TICK_S : next_s(&job, now_s);
  }
  check(&job, is_hostile || tick < most, "the sums or blocks did not end");
  for (uint32_t id = 0; id < job.num_workers; id++) {
    if (!job.failure) check_results(&job, id, totals);
    if (!job.failure) check_blocks(&job, id, totals);
    totals->datagrams += job.workers[id].num_received + dropped_by(&job.workers[id]);
    totals->joined += job.ports[id].num_joined;
    totals->dropped += dropped_by(&job.workers[id]);
  }
  totals->damaged += job.num_damaged;
  if (job.failure) fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, job.failure);
  job_close(&job);
  return !job.failure;
}
