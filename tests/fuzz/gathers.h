// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The allgathers of a schedule: a block of each worker, which all workers are to have in the end.
#ifndef SWITCHFOLD_FUZZ_GATHERS_H
#define SWITCHFOLD_FUZZ_GATHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks/allgather.h"
#include "tensors.h"

#define MOST_GATHERS 3u

typedef struct {
  allgather_t parts[MOST_WORKERS]; // one worker's
} gathered_t;

void gathered_init(gathered_t *, uint32_t tensor_id, uint32_t num_workers, uint32_t values_per_packet);
void gathered_close(gathered_t *, uint32_t num_workers);

// Whether a worker has the blocks of all, to the bit.
bool gathered_is_right(const gathered_t *, uint32_t worker, uint32_t num_workers, uint32_t values_per_packet);

#endif
