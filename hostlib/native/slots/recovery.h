// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which chunks of a stream are to be sent again, and when: by later results, silence, or timers.
//
// Every transmission has a number of its own, both the first and the repeated ones, as in QUIC (RFC 9002). A result
// comes only when all workers have contributed, and workers send the chunks of a tree in the same order. So three
// results of chunks that were first sent later, on the same tree, show that a packet of an earlier chunk was lost. Chunks of
// large values may have a priority of their own, and overtake others in queues: their results say nothing of these. For a
// chunk that was sent again, the sign is three results of any later transmissions, and half a round trip: other workers
// may notice a loss later, and send again in another order. If much is lost, three are too many to wait for: then a single
// later result and the time of more than a round trip are sign enough, as in RACK (RFC 8985). Once most of what waits was
// sent again, that result may be of another tree: each tree has few chunks under way. If no result comes at all, the
// last chunks may have been lost, which no later result can show. Then the oldest few and the newest one are sent again, as
// a probe, and once more after twice the time, and so on (RFC 9002). The retransmission timer is the last resort. It begins
// again with each result of an earlier chunk of the tree.
//
// Each tree has round trips of its own, by which its chunks are late. Timers and probes go by those of the slowest.
#ifndef SWITCHFOLD_RECOVERY_H
#define SWITCHFOLD_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "../timing/rtt.h"
#include "slot.h"
#include "../timing/trips.h"

#define LATER_RESULTS 3 // results of later transmissions that show a loss; fewer may be due to reordering

// The largest numbers with results of one tree and priority, smallest first: by the first and by the latest transmission.
typedef struct {
  int64_t first[LATER_RESULTS], latest[LATER_RESULTS];
  double result_s; // when the last one came that was sent once
} tree_results_t;

typedef struct {
  slot_t *slots;
  uint32_t slot_count;
  tree_results_t *trees; // two of each tree: of chunks that are not ahead, and of those that are
  tree_trips_t *trips; // by tree
  uint32_t num_trees;
  rtt_t *rtt; // that of the slowest tree: timers and probes go by it
  int64_t next_number;
  uint32_t num_again; // slots without result that were sent again, or are withheld
  uint32_t lenient_expiries; // since the last sample: those that left the timeout as it was
  uint32_t num_probes; // since the last result
  double expiry_s;     // no timer runs out before
  double probe_s;      // when to probe after silence; infinite: nothing is due
  double review_s;     // no chunk is lost before, unless results come; infinite: nothing shows one
  double resumed_s;    // when results came again after silence
  bool has_progress, has_sample; // since the last expiry
  double again_share; // of the results: those of chunks that were sent again, smoothed
} recovery_t;

// Slots and the timer stay the caller's. Returns false without memory.
bool recovery_init(recovery_t *, slot_t *slots, uint32_t slot_count, uint32_t num_trees, rtt_t *);
void recovery_close(recovery_t *);

// When recovery_lost, recovery_silent or recovery_expired is to be called next.
double recovery_next_s(const recovery_t *);

// Chunks are about to leave while no other is without result: other workers may be late.
void recovery_resume(recovery_t *, double now_s);
// A chunk was sent for the first time; a withheld one is not sent, now or ever.
void recovery_start(recovery_t *, slot_t *, double now_s);
// Probes leave the timers as they are.
void recovery_start_again(recovery_t *, slot_t *, double now_s, bool is_probe);

// Results of one batch came for `count` slots, in any order. With `is_idle` no other chunk is without result.
void recovery_finish(recovery_t *, slot_t *const *slots, const answer_t *answers, uint32_t count, double now_s, bool is_idle);
void recovery_release(recovery_t *, slot_t *); // stop waiting for it
void recovery_rest(recovery_t *);              // no chunk is without result any more

// Each writes slots to send again, oldest chunk first, to `out` (room for all slots), and returns how many.
uint32_t recovery_lost(recovery_t *, double now_s, slot_t **out); // by later results
uint32_t recovery_silent(recovery_t *, double now_s, slot_t **out);     // as nothing came
// By timers; the oldest few while nothing arrives. `outrun`: how many of those expired have later results.
uint32_t recovery_expired(recovery_t *, double now_s, slot_t **out, uint32_t *outrun);

#endif
