// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "straggler.h"

#include <math.h>

#define LATER_SHARE 4.0   // once its deadline has passed, a tensor's later chunks wait for this part of it

straggler_t straggler_new(double deadline_s, double maximum_s) { return (straggler_t){deadline_s, maximum_s, INFINITY}; }

void straggler_start(straggler_t *straggler, slot_t *slot, double since_s, double now_s, double margin_s) {
  slot->pause_s = fmax(margin_s, straggler->deadline_s / LATER_SHARE);
  slot->flush_s = fmax(since_s + straggler->deadline_s, now_s + slot->pause_s);
  slot->level = 0;
  straggler->next_s = fmin(straggler->next_s, slot->flush_s);
}

void straggler_stop(slot_t *slot) { slot->flush_s = INFINITY; }

uint32_t straggler_due(straggler_t *straggler, slot_t *slots, uint32_t slot_count, double now_s, slot_t **out) {
  uint32_t count = 0;
  if (now_s < straggler->next_s) return 0;
  straggler->next_s = INFINITY;
  for (uint32_t i = 0; i < slot_count; i++) {
    slot_t *slot = &slots[i];
    if (slot->is_busy && slot->flush_s <= now_s) {
      slot->flush_s = now_s + slot->pause_s;
      slot->pause_s = fmin(2 * slot->pause_s, straggler->maximum_s);
      out[count++] = slot;
    }
    if (slot->is_busy) straggler->next_s = fmin(straggler->next_s, slot->flush_s);
  }
  return count;
}
