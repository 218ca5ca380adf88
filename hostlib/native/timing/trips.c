// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "trips.h"

#include <math.h>

// So many results in a row without a sample: chunks may be sent again sooner than their results can come, as a queue has grown.
// Then nothing else would end that: each repetition makes the queue longer, and none gives a sample (Karn's rule).
#define AMBIGUOUS_RESULTS 16u
// Of those, the fastest took so many round trips. Measured in simulated time: without this limit, 16 workers that lose 20 %
// take three times as long, as chunks whose repetitions are lost, too, take some round trips.
#define GROWN_TRIPS 4.0
#define BOUNDING_RESULTS 16u // of so many results, the fastest bounds round trips

tree_trips_t trips_new(const rtt_t *rtt) {
  return (tree_trips_t){.rtt = *rtt, .oldest_s = INFINITY, .again_s = INFINITY, .least_s = INFINITY, .bound_s = INFINITY};
}

void trips_note(tree_trips_t *trips, const slot_t *slot, answer_t answer, double now_s) {
  bool answers_again = answer == ANSWERS_AGAIN && slot->is_again;
  double most_s = now_s - (answers_again ? slot->again_s : slot->begun_s);
  trips->num_results++;
  trips->bound_s = fmin(trips->bound_s, most_s);
  if (answer == ANSWERS_ALL && !slot->is_again) {
    trips->oldest_s = fmin(trips->oldest_s, slot->sent_s);
  } else if (answers_again && slot->sent_s <= slot->again_s) {
    trips->again_s = fmin(trips->again_s, slot->again_s);
  } else {
    trips->num_ambiguous++;
    trips->least_s = fmin(trips->least_s, most_s);
  }
}

static void bound(tree_trips_t *trips, bool is_severe) {
  if (trips->num_results < BOUNDING_RESULTS) return;
  if (is_severe) rtt_lower(&trips->rtt, trips->bound_s);
  trips->num_results = 0;
  trips->bound_s = INFINITY;
}

// The slowest chunk of a batch is on the safe side. If there has been no sample for long, and the fastest result took far
// longer than a round trip, that has grown.
bool trips_learn(tree_trips_t *trips, double now_s, bool is_severe) {
  bound(trips, is_severe);
  bool is_sampled = trips->oldest_s < INFINITY || trips->again_s < INFINITY;
  if (!is_sampled && trips->num_ambiguous < AMBIGUOUS_RESULTS) return false;
  bool is_repair = is_severe && now_s - trips->oldest_s > trips->rtt.prompt_s;
  if (trips->oldest_s < INFINITY && !is_repair) rtt_add_sample(&trips->rtt, now_s - trips->oldest_s);
  if (trips->again_s < INFINITY) rtt_add_sample(&trips->rtt, now_s - trips->again_s);
  if (!is_sampled && trips->least_s > GROWN_TRIPS * trips->rtt.prompt_s) rtt_raise(&trips->rtt, trips->least_s / 2);
  trips->oldest_s = trips->again_s = trips->least_s = INFINITY;
  trips->num_ambiguous = 0;
  return is_sampled;
}
