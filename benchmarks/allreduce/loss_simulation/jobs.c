// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "jobs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "network.h"
#include "settings.h"
#include "workers.h"

typedef struct {
  uint32_t tensor_id, num_chunks;
  double began_s;
  uint64_t num_results, num_lacking, num_stale; // of sums that have ended
} job_t;

static job_t jobs[MAX_JOBS];
static worker_t *workers[MAX_JOBS][MAX_WORKERS];
static int32_t *data;

void jobs_init(void) {
  lots = settings.seed;
  uint32_t most = settings_most_chunks();
  data = room(NULL, most * sizeof *data);
  for (uint32_t i = 0; i < most; i++) data[i] = (int32_t)i;
  for (uint32_t i = 0; i < settings.num_jobs; i++) {
    for (uint32_t j = 0; j < settings.num_workers; j++) workers[i][j] = worker_new(i, j);
    clock_push((event_t){.at_s = 0.001 * i, .kind = BEGIN, .job = i});
  }
}

static uint32_t part(uint32_t total, uint32_t place) { return total / settings.num_workers + (place < total % settings.num_workers); }

// What a worker may let go of a tensor, as hostlib/loss_tolerance.py has it.
static tolerance_t tolerance_of(uint32_t num_chunks, uint32_t place) {
  uint32_t total = (uint32_t)(settings.tolerated * settings.num_workers * num_chunks);
  uint32_t of_worker = (uint32_t)(fmin(1, 2 * settings.tolerated) * num_chunks);
  return (tolerance_t){.left = part(total, place), .limit = part(of_worker, place)};
}

// Give a worker the job's next tensor.
static void load(worker_t *worker, const job_t *job) {
  worker->source = (source_t){.tensor_id = job->tensor_id,
                              .num_chunks = job->num_chunks,
                              .num_ready = job->num_chunks,
                              .num_values = job->num_chunks,
                              .values = VALUES_INT32,
                              .data = data,
                              .output = worker->output,
                              .contributors = worker->contributors};
  if (settings.tolerated > 0) {
    worker->tolerance = tolerance_of(job->num_chunks, worker->number);
    worker->source.tolerance = &worker->tolerance;
    worker->source.bitmaps = worker->bitmaps;
  }
  if (now_s >= WARM_UP_S) worker->source.large = settings.large;
  memset(worker->contributors, 0, job->num_chunks * sizeof *worker->contributors);
  if (settings.stale > 0) {
    worker->source.may_be_stale = true;
    worker->source.stale_left = (uint32_t)(settings.stale * job->num_chunks);
  }
  worker->ended_s = 0;
}

static void begin(job_t *job) {
  bool is_one_late = settings.late_s > 0 && now_s >= WARM_UP_S && draw(&lots) < settings.late_share;
  uint32_t late = is_one_late ? (uint32_t)(draw(&lots) * settings.num_workers) : 0;
  job->tensor_id++;
  job->num_chunks = now_s < WARM_UP_S ? WARM_UP_CHUNKS : settings.num_chunks;
  job->began_s = now_s;
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    worker_t *worker = workers[job - jobs][i];
    load(worker, job);
    worker->is_late = is_one_late && i == late;
    if (worker->is_late) clock_push((event_t){.at_s = now_s + settings.late_s, .kind = BEGIN_LATE, .job = worker->job, .worker = i});
    else worker_submit(worker);
  }
}

// Check the sum of a worker that has all results. Returns how many it has done without.
static uint32_t check_worker(const worker_t *worker, const worker_t *first, uint32_t num_chunks) {
  uint32_t num_stale = 0;
  for (uint32_t k = 0; k < num_chunks; k++) {
    if (settings.stale > 0 && !worker->contributors[k]) {
      num_stale++;
      continue;
    }
    if (worker->output[k] != data[k] * worker->contributors[k]) fail("a sum is wrong");
    if (settings.stale == 0 && worker->contributors[k] != first->contributors[k]) fail("two workers have different sums");
    if (worker->source.tolerance && worker->bitmaps[k] != first->bitmaps[k]) fail("two workers lack different ones");
  }
  if (num_stale > settings.stale * num_chunks) fail("a worker does without more than it may");
  return num_stale;
}

// Check the sums of all workers that have all results, and what they lack.
static void check(job_t *job) {
  const worker_t *first = NULL;
  uint32_t lacking = 0, num_stale = 0;
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    const worker_t *worker = workers[job - jobs][i];
    if (worker->source.has_missed) continue;
    if (!first) first = worker;
    num_stale += check_worker(worker, first, job->num_chunks);
  }
  if (!first) fail("no worker has all results");
  for (uint32_t k = 0; k < job->num_chunks; k++) {
    if (first->contributors[k]) lacking += settings.num_workers - first->contributors[k];
  }
  if (lacking > settings.tolerated * settings.num_workers * job->num_chunks) fail("a sum lacks more than is tolerated");
  if (job->began_s < WARM_UP_S) return;
  job->num_stale += num_stale;
  job->num_lacking += lacking;
  FILE *file = settings.bitmaps;
  if (file && fwrite(first->bitmaps, sizeof *first->bitmaps, job->num_chunks, file) != job->num_chunks) {
    fail("bitmaps could not be written");
  }
}

// A worker has its sum: go on once all have theirs.
static void end(job_t *job) {
  double punctual_s = 0;
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    const worker_t *worker = workers[job - jobs][i];
    if (!worker->source.is_finished) return;
    if (!worker->is_late) punctual_s = fmax(punctual_s, worker->ended_s);
  }
  check(job);
  if (job->began_s >= WARM_UP_S) {
    if (settings.num_jobs == 1) printf("%.9f\npunctual %.9f\n", now_s - job->began_s, punctual_s - job->began_s);
    job->num_results += job->num_chunks;
  }
  double from_s = now_s < WARM_UP_S && job->tensor_id >= 2 ? WARM_UP_S : now_s;
  clock_push((event_t){.at_s = from_s, .kind = BEGIN, .job = (uint32_t)(job - jobs)});
  for (uint32_t i = 0; i < settings.num_workers; i++) workers[job - jobs][i]->source.is_finished = false;
}

void jobs_step(const event_t *event) {
  job_t *job = &jobs[event->job];
  worker_t *worker = workers[event->job][event->worker];
  switch (event->kind) {
  case BEGIN: begin(job); break;
  case BEGIN_LATE: worker_submit(worker); break;
  case AT_WORKER: worker_take(worker, event); break;
  case WAKE:
    if (worker_wake(worker)) end(job);
    break;
  default: fail("this happens to no job");
  }
}

void jobs_report(void) {
  uint64_t sent = 0, again = 0, fast = 0, probes = 0, marked = 0, flushed = 0, results = 0, lacking = 0, stale = 0;
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
    stale += jobs[i].num_stale;
    const stream_t *stream = &workers[i][0]->stream;
    double rate = (double)stream->counters.received / (WARM_UP_S + settings.seconds);
    printf("job %" PRIu32 " %.3f %" PRIu32 "\n", i, rate, congestion_limit(&stream->window));
  }
  double contributions = fmax(1, (double)results * settings.num_workers);
  printf("counters %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sent, again, fast, probes, marked,
         network_dropped());
  printf("tolerance %" PRIu64 " %.9f\n", flushed, 1 - (double)lacking / contributions);
  printf("stale %.9f\n", (double)stale / contributions);
}
