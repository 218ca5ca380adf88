// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Retransmission timeout from round-trip samples, after RFC 6298. Times are seconds of CLOCK_MONOTONIC.
#ifndef SWITCHFOLD_RTT_H
#define SWITCHFOLD_RTT_H

#include <stdbool.h>

// It takes only samples of packets that were sent once (Karn's rule). `minimum_s` is the least margin over the smoothed
// round trip. It takes the place of the RFC's clock granularity, as a busy machine may keep a thread waiting for so long.
typedef struct {
  double minimum_s, maximum_s;
  double base_s;
  double smoothed_s; // 0 before the first sample
  double prompt_s; // likewise, but shorter samples count more: a result may have waited for another worker's repair
  double variation_s;
  double least_s; // shortest round trip, 0 without samples
  unsigned backoff;
  bool has_sample;
} rtt_t;

rtt_t rtt_new(double initial_s, double minimum_s, double maximum_s);

// How much longer than the shortest round trip the smoothed one is; 0 without samples.
double rtt_queueing_s(const rtt_t *);

// How long no result at all may come before a probe asks for one, at most rtt_timeout_s. The time runs from the last
// result, which let further chunks leave; their results take a round trip. Infinite before the first sample.
double rtt_probe_s(const rtt_t *);

double rtt_steady_s(const rtt_t *);  // retransmission timeout without backoff
double rtt_timeout_s(const rtt_t *); // with it

void rtt_add_sample(rtt_t *, double sample_s); // ends any backoff
void rtt_raise(rtt_t *, double trip_s); // round trips take at least so long, though no sample has told so
void rtt_lower(rtt_t *, double trip_s); // one has taken no longer, though no sample has told so; not before the first
void rtt_back_off(rtt_t *);                    // double the timeout until the next sample: an expiry passed without one

#endif
