// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "sums.h"

#include "vectorised.h"

VECTORISED bool add_values(int32_t *restrict own, const int32_t *restrict received, uint64_t count) {
  uint32_t overflow = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint32_t a = (uint32_t)own[i], b = (uint32_t)received[i], sum = a + b;
    overflow |= (a ^ sum) & (b ^ sum); // the sign bit: both have another sign than their sum
    own[i] = (int32_t)sum;
  }
  if (!(overflow >> 31)) return true;
  for (uint64_t i = 0; i < count; i++) own[i] = (int32_t)((uint32_t)own[i] - (uint32_t)received[i]);
  return false;
}
