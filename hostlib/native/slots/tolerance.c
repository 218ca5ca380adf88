// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "tolerance.h"

uint32_t tolerance_members(const closers_t *closers) { return (uint32_t)__builtin_popcount(closers->members); }

uint32_t tolerance_turn(const closers_t *closers, uint32_t chunk) {
  return (closers->own + closers->count - chunk % closers->count) % closers->count;
}

bool tolerance_pay(tolerance_t *tolerance, uint32_t paid, uint32_t more) {
  if (tolerance->left < more) return false;
  if (!paid) { // the chunk may lack any worker
    for (uint32_t i = 0; i < BITMAP_WORKERS; i++) {
      if (tolerance->missing[i] + tolerance->open >= tolerance->limit) return false;
    }
    tolerance->open++;
  }
  tolerance->left -= more;
  return true;
}

void tolerance_settle(tolerance_t *tolerance, uint32_t paid, uint32_t absent) {
  if (!paid) return;
  uint32_t count = (uint32_t)__builtin_popcount(absent);
  tolerance->open--;
  tolerance->left += paid > count ? paid - count : 0;
  for (uint32_t i = 0; i < BITMAP_WORKERS; i++) tolerance->missing[i] += absent >> i & 1;
}
