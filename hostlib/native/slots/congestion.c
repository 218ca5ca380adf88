// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "congestion.h"

#include <math.h>

#define DECREASE 0.7       // that of TCP's CUBIC (RFC 9438), with which the window shares links
// Chunks by which the window grows in a window of results. Measured: with it, a job and a TCP flow take about equal
// shares. TCP's own 0.53 would be too much, as TCP's bursts find longer queues.
#define INCREASE 0.16
// Part of the packets that links may lose at random. A queue that overflows loses as much only if the windows together
// are far larger than the queue.
#define TOLERATED_PER_HOP 0.1
// Losses without marks leave so many chunks, which every job sends blindly in its beginning. A queue that does not hold them
// overflows whatever jobs do. With fewer, no loss would be found by later results, and each would wait for a timer.
#define BLIND_CHUNKS 16.0
#define LEAST_SAMPLE 128.0 // losses are compared with at least so many results: a small window shows no share

double congestion_tolerated(uint32_t num_workers) { return 1 - pow(1 - TOLERATED_PER_HOP, num_workers + 1.0); }

congestion_t congestion_new(uint32_t initial, uint32_t least, uint32_t maximum, uint32_t floor, double tolerated) {
  double minimum = fmin(least, maximum);
  return (congestion_t){
      .chunks = fmax(minimum, fmin(initial, maximum)),
      .minimum = minimum,
      .maximum = maximum,
      .floor = floor,
      .tolerated = tolerated,
      .blind = BLIND_CHUNKS,
      .is_slow_start = true,
  };
}

uint32_t congestion_limit(const congestion_t *window) { return (uint32_t)window->chunks; }

static double sample(const congestion_t *window) { return fmax(congestion_limit(window), LEAST_SAMPLE); }

static bool decrease(congestion_t *window, uint32_t under_way) {
  if (window->deaf_for) return false;
  window->is_slow_start = false;
  window->chunks = fmax(window->minimum, window->chunks * DECREASE);
  window->deaf_for = under_way;
  return true;
}

void congestion_on_results(congestion_t *window, uint32_t count, uint32_t marked, uint32_t under_way) {
  window->recent_results += count;
  if (window->recent_results > 2 * sample(window)) {
    window->recent_results /= 2;
    window->recent_losses /= 2;
  }
  if (marked && decrease(window, under_way - count)) return;
  window->deaf_for -= count < window->deaf_for ? count : window->deaf_for;
  // The tensor or its slots were the limit, which says nothing of a larger window.
  if (under_way < congestion_limit(window)) return;
  window->chunks += window->is_slow_start ? count : INCREASE * count / window->chunks;
  window->chunks = fmin(window->chunks, window->maximum);
}

void congestion_on_loss(congestion_t *window, uint32_t under_way, uint32_t count) {
  window->recent_losses += count;
  bool is_random = window->recent_losses <= window->tolerated * fmax(window->recent_results, sample(window));
  double floor = is_random ? window->floor : fmin(window->floor, window->blind);
  if (window->chunks * DECREASE >= floor) {
    decrease(window, under_way);
  } else if (window->chunks > floor) {
    window->is_slow_start = false;
    window->chunks = floor; // marks still count, unlike after a decrease
  }
}
