// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradients of a push, one for each different key: those of a repeated key are added in the order of the batch.
#ifndef SWITCHFOLD_GRADIENTS_H
#define SWITCHFOLD_GRADIENTS_H

#include "key_batch.h"
#include "row_status.h"

typedef struct {
  const float **by_key; // the caller's own, or a sum
} gradients_t;

// `rows` has `width` floats for each position of the batch, and stays the caller's. Returns ROWS_DONE, and the gradients
// are to be closed; or ROWS_NO_MEMORY, or with a position ROWS_NOT_FINITE or ROWS_SUM_NOT_FINITE.
row_status_t gradients_open(gradients_t *, const key_batch_t *, const float *rows, uint32_t width, uint32_t *position);
void gradients_close(gradients_t *);

#endif
