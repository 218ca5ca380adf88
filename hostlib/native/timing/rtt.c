// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "rtt.h"

#include <math.h>

#define PROBE_MARGIN_S 0.001 // least margin of a probe's time over the smoothed round trip; half of that if larger
#define SMOOTHING (1.0 / 8)  // weight of a new sample in the smoothed round trip (alpha)
#define SHORTENING (1.0 / 4) // weight of a shorter sample in the prompt round trip
#define VARIATION (1.0 / 4)  // and in its variation (beta)
#define MAX_BACKOFF 62u

rtt_t rtt_new(double initial_s, double minimum_s, double maximum_s) {
  return (rtt_t){.minimum_s = minimum_s, .maximum_s = maximum_s, .base_s = fmax(initial_s, minimum_s)};
}

double rtt_queueing_s(const rtt_t *rtt) { return rtt->smoothed_s - rtt->least_s; }

double rtt_probe_s(const rtt_t *rtt) {
  if (!rtt->has_sample) return INFINITY;
  return fmin(rtt_timeout_s(rtt), rtt->smoothed_s + fmax(PROBE_MARGIN_S, rtt->smoothed_s / 2));
}

double rtt_steady_s(const rtt_t *rtt) { return fmin(rtt->maximum_s, rtt->base_s); }

double rtt_timeout_s(const rtt_t *rtt) { return fmin(rtt->maximum_s, ldexp(rtt->base_s, (int)rtt->backoff)); }

void rtt_add_sample(rtt_t *rtt, double sample_s) {
  if (!rtt->has_sample) {
    rtt->has_sample = true;
    rtt->smoothed_s = rtt->prompt_s = rtt->least_s = sample_s;
    rtt->variation_s = sample_s / 2;
  } else {
    double deviation_s = fabs(rtt->smoothed_s - sample_s);
    rtt->least_s = fmin(rtt->least_s, sample_s);
    rtt->variation_s += VARIATION * (deviation_s - rtt->variation_s);
    rtt->prompt_s += (sample_s < rtt->prompt_s ? SHORTENING : SMOOTHING) * (sample_s - rtt->prompt_s);
    rtt->smoothed_s += SMOOTHING * (sample_s - rtt->smoothed_s);
  }
  rtt->base_s = rtt->smoothed_s + fmax(rtt->minimum_s, 4 * rtt->variation_s);
  rtt->backoff = 0;
}

void rtt_raise(rtt_t *rtt, double trip_s) {
  if (!rtt->has_sample || trip_s <= rtt->prompt_s) return;
  rtt->prompt_s = trip_s;
  rtt->smoothed_s = fmax(rtt->smoothed_s, trip_s);
  rtt->base_s = rtt->smoothed_s + fmax(rtt->minimum_s, 4 * rtt->variation_s);
}

void rtt_lower(rtt_t *rtt, double trip_s) {
  if (!rtt->has_sample || trip_s >= rtt->prompt_s) return;
  rtt->variation_s += VARIATION * (trip_s / 2 - rtt->variation_s);
  rtt->prompt_s = rtt->smoothed_s = trip_s;
  rtt->least_s = fmin(rtt->least_s, trip_s);
  rtt->base_s = rtt->smoothed_s + fmax(rtt->minimum_s, 4 * rtt->variation_s);
  rtt->backoff = 0;
}

void rtt_back_off(rtt_t *rtt) {
  if (rtt_timeout_s(rtt) < rtt->maximum_s && rtt->backoff < MAX_BACKOFF) rtt->backoff++;
}
