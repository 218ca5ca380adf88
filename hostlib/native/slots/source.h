// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// One tensor as a stream sees it: where its chunks come from, and where their results go.
#ifndef SWITCHFOLD_SOURCE_H
#define SWITCHFOLD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "tolerance.h"
#include "../values/exact.h"

typedef enum {
  VALUES_INT32,   // int32 numbers as they are
  VALUES_FLOAT16, // the others in blocks: a power-of-two factor per chunk
  VALUES_FLOAT32,
  VALUES_FLOAT64,
  VALUES_READY, // int32 values that the caller prepares, in wire order; results are stored and no more
  VALUES_LIMBS, // floats that are summed exactly
  // For maxima and minima, see ordered.h; maxima of int32 are VALUES_INT32.
  VALUES_INT32_REVERSED,
  VALUES_FLOAT32_ORDERED,
  VALUES_FLOAT32_REVERSED,
} values_t;

// The arrays stay the caller's, who keeps them until the source is finished or abandoned and out of its stream.
typedef struct source {
  struct source *next; // in its stream
  uint64_t start;      // place of its first chunk in the stream's sequence
  uint32_t tensor_id, num_chunks;
  uint64_t num_values; // the last chunk may hold fewer than a packet does
  uint32_t values;     // values_t
  uint32_t num_ready;  // chunks whose values are prepared; num_chunks unless they are VALUES_READY
  const void *data;    // num_values numbers
  // By chunk: factors in float32, for float64 in float64. NULL: there are none.
  const void *forward, *backward;
  const uint8_t *exponents; // by chunk, for the header; NULL: zeros
  const uint8_t *withheld;  // by chunk: whether this worker does not contribute to it; NULL: it does to all
  const uint8_t *large;     // by chunk: whether its values are large, so that nothing of it is let go; NULL: none is
  void *output;             // num_chunks * values per packet numbers in the dtype; NULL: for VALUES_READY, VALUES_LIMBS
  uint8_t *results;         // values of the results as they came, likewise; NULL: not wanted
  exact_t *exact;           // for VALUES_LIMBS, which have results; `num_values` counts limbs, `data` is not read
  uint16_t *contributors;   // by chunk
  uint32_t *bitmaps;        // by chunk: the workers in its result; NULL: not wanted
  tolerance_t *tolerance;   // NULL: all contributions are waited for
  uint32_t stale_left;      // results that this worker may still do without; their chunks have no contributors in the end
  bool is_mean, has_saturated, is_abandoned, is_finished;
  bool may_be_stale; // this worker may do without results, see stale.h
  bool has_missed; // the switch no longer had a chunk's result for this worker
  bool is_maximum; // lanes keep the largest value, instead of the sum
  uint8_t priority; // of its packets: the switches' queue
  uint8_t large_priority; // of packets of large chunks, not below the others
  uint32_t num_done; // chunks from the first one on that have their results
  double since_s;    // when its first chunk was prepared
  double first_sent_s, last_result_s; // 0: not yet
} source_t;

// Write the values of a chunk behind its header.
void source_fill(const source_t *, uint32_t chunk, uint8_t *values, uint32_t values_per_packet);

// Keep a chunk's result: the values behind the header, and how many workers are in them.
void source_keep(source_t *, uint32_t chunk, const uint8_t *values, uint16_t contributors, uint32_t values_per_packet);

// The same for rows of values in the machine's order, one for each of `count` chunks: without a packet, and with the
// contributors that are there. Numbers that are READY stay in Python: no rows of them. Rows of
// LIMBS to take are those of `results`.
void source_fill_rows(const source_t *, uint32_t first, uint32_t count, int32_t *rows, uint32_t values_per_packet);
void source_take_rows(source_t *, uint32_t first, uint32_t count, const int32_t *rows, uint32_t values_per_packet);

// All chunks below `num_done` have their results.
void source_advance(source_t *, uint32_t num_done);

#endif
