// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tensors of one stream, of which each worker has a part, and what their sums are to be.
#ifndef SWITCHFOLD_FUZZ_TENSORS_H
#define SWITCHFOLD_FUZZ_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "slots/stream.h"

#define MOST_WORKERS 4u
#define MOST_TENSORS 4u
#define UNTOUCHED UINT16_C(0xbeef) // contributors of a chunk without result

typedef struct {
  source_t source;
  void *data, *factors;
} part_t; // one worker's

typedef struct {
  uint64_t start; // place of its first chunk in the stream
  uint32_t tensor_id, num_chunks, num_values;
  values_t kind;
  exact_t exact;     // of VALUES_LIMBS: the layout, without numbers
  int32_t *expected; // num_chunks * values per packet, as in results
  part_t parts[MOST_WORKERS];
} tensor_t;

// Draw a tensor. Only integers and limbs have sums that can be verified.
void tensor_init(tensor_t *, operation_t, uint64_t start, uint32_t tensor_id, uint32_t num_workers,
                 uint32_t values_per_packet, bool is_verified);
void tensor_close(tensor_t *, uint32_t num_workers);

// Whether a worker got the sums, to the bit.
bool tensor_is_right(const tensor_t *, uint32_t worker, uint32_t values_per_packet);

// Chunks of which a worker has taken a result; those of them before the first one without.
uint32_t tensor_touched(const tensor_t *, uint32_t worker);
uint32_t tensor_in_a_row(const tensor_t *, uint32_t worker);

#endif
