// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two-rate three-colour meters, colour-blind (RFC 2698), in simple_switch's arithmetic: tokens are counted from time 0
// in whole numbers, so that rounding between packets loses nothing.
#ifndef SOFTSWITCH_METER_H
#define SOFTSWITCH_METER_H

#include "pipeline.h"
#include "table.h"

enum { METER_GREEN = 0, METER_YELLOW = 1, METER_RED = 2 };

static inline bool meter_takes(meter_bucket_t *bucket, uint64_t now_us, uint64_t units) {
  double counted = (double)now_us * bucket->per_us;
  uint64_t total = counted < 0x1p63 ? (uint64_t)counted : UINT64_C(1) << 63;
  if (total > bucket->total) { // a packet that waited may be older than the last one
    uint64_t room = bucket->burst - bucket->tokens, fresh = total - bucket->total;
    bucket->tokens += fresh < room ? fresh : room;
    bucket->total = total;
  }
  if (bucket->tokens < units) return false;
  bucket->tokens -= units;
  return true;
}

// Colour of a packet that costs `units`: bytes, or 1.
static inline uint32_t meter_execute(meter_cell_t *meter, uint64_t now_us, uint64_t units) {
  if (meter->is_configured == 0) return METER_GREEN;
  if (!meter_takes(&meter->peak, now_us, units)) return METER_RED;
  return meter_takes(&meter->committed, now_us, units) ? METER_GREEN : METER_YELLOW;
}

// P_OK, or P_BAD_ARGUMENT if the committed rate exceeds the peak rate. NULL or not configured: green from now on.
static inline int meter_set(meter_cell_t *meter, const meter_rates_t *rates) {
  if (rates == NULL || rates->is_configured == 0) {
    *meter = (meter_cell_t){0};
    return P_OK;
  }
  if (rates->cir > rates->pir) return P_BAD_ARGUMENT;
  *meter = (meter_cell_t){
      .is_configured = 1,
      .rates = *rates,
      .peak = {.tokens = rates->pburst, .burst = rates->pburst, .per_us = (double)rates->pir / 1e6},
      .committed = {.tokens = rates->cburst, .burst = rates->cburst, .per_us = (double)rates->cir / 1e6},
  };
  return P_OK;
}

#endif
