// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of host allreduce, where hosts add and no switch does.
#ifndef SWITCHFOLD_SUMS_H
#define SWITCHFOLD_SUMS_H

#include <stdbool.h>
#include <stdint.h>

// Add `received` to `own`, unless some sum is outside int32: then return false, and `own` is as before.
bool add_values(int32_t *own, const int32_t *received, uint64_t count);

#endif
