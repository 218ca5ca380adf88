// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// An order of hot keys in which keys that come in the same mini-batches are neighbours, so that they share rows.
#ifndef SWITCHFOLD_ROW_ORDER_H
#define SWITCHFOLD_ROW_ORDER_H

#include <stdint.h>

// Write the ranks 0 to `num_keys` - 1, those of each row of `keys_per_row` one after the other. Rank 0 is the hottest key.
// `touched` has the ranks of each mini-batch, each rank once; mini-batch b ends before `ends[b]`.
//
// Greedy: a row begins with the hottest key that is left. Then it takes, again and again, the key whose mini-batches are most
// similar to those that touch the row: those with both, divided by those with either (Jaccard's index). Of equal keys it takes
// the hottest. The time grows with num_keys^2, and with num_keys / keys_per_row times the touched ranks.
//
// Returns ROWS_DONE or ROWS_NO_MEMORY.
int row_order(const int32_t *touched, const uint64_t *ends, uint32_t num_batches, uint32_t num_keys, uint32_t keys_per_row,
              int32_t *order);

#endif
