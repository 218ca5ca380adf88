// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of limbs back to floats, rounded once, half to even: see limbs.h.
#ifndef SWITCHFOLD_LIMB_SUMS_H
#define SWITCHFOLD_LIMB_SUMS_H

#include "limbs.h"

// Consecutive numbers; without any, `end` is 0.
typedef struct {
  uint32_t first, end;
} span_t;

span_t span_join(span_t, span_t); // the shortest that has both

// Write `count` numbers, which need no alignment, from the sums of their limbs: in a format, divided by `divisor` (1 to 65535)
// before they are rounded. A sum of 0 is +0.0; beyond the format's range the result is infinite. Counted infinities give
// what IEEE 754 says. Returns where these are.
span_t limb_sums_round(const lanes_t *, uint32_t count, const limbs_t *, uint32_t divisor, const float_format_t *,
                       uint8_t *numbers);

#endif
