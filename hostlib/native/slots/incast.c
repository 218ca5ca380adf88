// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "incast.h"

#include <math.h>

#define LEAST_RESULTS 256u // of a sample that counts
#define MOST_RESULTS 1024u // of the usual ones: older ones count half
#define CUT_PERIOD 1024u   // results between trials of a lower limit
#define RAISE_PERIOD 4096u // and of a higher one
#define SLOWDOWN 4u        // of these periods, by each trial that failed, up to MOST_FAILED
#define MOST_FAILED 4u
#define LOSSY_SHARE 0.0625 // a lower limit is tried if more chunks than this are sent again
// A lower limit is half of what is under way, or a quarter if that is more than MANY chunks: a little less overflows a queue
// that is far shorter as well.
#define MANY 8u
// A lower limit is kept if at most this part is sent again of what was before, and a chunk takes at most so much longer.
#define FEWER 0.67
#define LONGER 1.0
// A higher limit is kept if at most this part is sent again of what was before, or a little more.
#define MORE 1.25
#define MORE_SHARE 0.03

incast_t incast_new(uint32_t slot_count, uint32_t num_roots) {
  uint32_t most = slot_count > num_roots ? slot_count / num_roots : 1;
  return (incast_t){.num_roots = num_roots,
                    .limit = most,
                    .most = most,
                    .cut_at = LEAST_RESULTS,
                    .result_s = INFINITY};
}

uint32_t incast_window(const incast_t *incast, uint32_t window) {
  uint32_t limit = incast->limit * incast->num_roots;
  return incast->limit < incast->most && limit < window ? limit : window;
}

static double share(const incast_sample_t *sample) { return sample->again / sample->results; }

static double each_s(const incast_sample_t *sample) { return sample->busy_s / sample->results; }

static void set_limit(incast_t *incast, uint32_t limit, uint32_t under_way) {
  incast->limit = limit;
  incast->to_skip = under_way;
  incast->trial = (incast_sample_t){0};
}

static uint64_t next_at(const incast_t *incast, uint64_t period, uint32_t num_failed) {
  for (uint32_t i = 0; i < num_failed && i < MOST_FAILED; i++) period *= SLOWDOWN;
  return (incast->num_results / period + 1) * period;
}

static void keep(incast_t *incast) {
  incast->before = 0;
  incast->usual = incast->trial;
  incast->cuts_failed = incast->raises_failed = 0;
  incast->cut_at = incast->num_results;
  incast->raise_at = next_at(incast, RAISE_PERIOD, 0);
}

static void go_back(incast_t *incast, uint32_t under_way) {
  if (incast->limit < incast->before) incast->cut_at = next_at(incast, CUT_PERIOD, ++incast->cuts_failed);
  else incast->raise_at = next_at(incast, RAISE_PERIOD, ++incast->raises_failed);
  set_limit(incast, incast->before, under_way);
  incast->before = 0;
}

// Judge a trial, if it is clear how it ends.
static void judge(incast_t *incast, uint32_t under_way) {
  const incast_sample_t *usual = &incast->usual, *trial = &incast->trial;
  bool is_cut = incast->limit < incast->before, is_over = trial->results >= LEAST_RESULTS;
  double most_share = is_cut ? FEWER * share(usual) : MORE * share(usual) + MORE_SHARE;
  bool is_lossier = trial->again > most_share * fmax(LEAST_RESULTS, trial->results);
  bool is_slower = is_cut && trial->busy_s > LONGER * each_s(usual) * fmax(LEAST_RESULTS, trial->results);
  if (is_lossier || is_slower) go_back(incast, under_way);
  else if (is_over) keep(incast);
}

// The next lower limit to try; 0: there is none.
static uint32_t lower(const incast_t *incast, uint32_t window) {
  uint32_t now = (window + incast->num_roots - 1) / incast->num_roots;
  if (now > incast->limit) now = incast->limit;
  return now > MANY ? now / 4 : now > 1 ? (now + 1) / 2 : 0;
}

static void begin_trial(incast_t *incast, uint32_t window, uint32_t under_way) {
  if (incast->usual.results < LEAST_RESULTS) return;
  uint32_t limit = lower(incast, window);
  if (!limit || incast->num_results < incast->cut_at || share(&incast->usual) <= LOSSY_SHARE) {
    if (incast->limit == incast->most || incast->num_results < incast->raise_at) return;
    limit = incast->limit + 1;
  }
  incast->before = incast->limit;
  incast->num_trials++;
  set_limit(incast, limit, under_way);
}

static void add(incast_sample_t *sample, uint32_t results, uint32_t again, double busy_s) {
  double kept = sample->results > MOST_RESULTS ? 0.5 : 1;
  *sample = (incast_sample_t){kept * sample->results + results, kept * sample->again + again, kept * sample->busy_s + busy_s};
}

void incast_on_results(incast_t *incast, slot_t *const *slots, uint32_t count, double now_s, uint32_t window,
                       uint32_t under_way) {
  double busy_s = incast->result_s < INFINITY ? now_s - incast->result_s : 0;
  uint32_t num_again = 0;
  for (uint32_t i = 0; i < count; i++) num_again += slots[i]->is_again && !slots[i]->is_withheld;
  incast->result_s = under_way ? now_s : INFINITY;
  incast->num_results += count;
  if (incast->to_skip) {
    incast->to_skip -= count < incast->to_skip ? count : incast->to_skip;
    return;
  }
  add(incast->before ? &incast->trial : &incast->usual, count, num_again, busy_s);
  if (incast->before) judge(incast, under_way);
  else begin_trial(incast, window, under_way);
}
