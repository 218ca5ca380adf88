// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "exact.h"


// A unit, or the part of it that one chunk holds.
typedef struct {
  const limb_group_t *group;
  uint32_t chunk;        // of the unit
  uint32_t first_number; // of the tensor
  uint32_t count;        // of numbers
} unit_t;

static uint64_t ceil_div(uint64_t number, uint64_t divisor) { return (number + divisor - 1) / divisor; }

static uint32_t least(uint32_t left, uint32_t right) { return left < right ? left : right; }

static int64_t clip(int64_t number, int64_t minimum, int64_t maximum) {
  return number < minimum ? minimum : number > maximum ? maximum : number;
}

// Ranges that no worker can have give some limbs within the dtype's range.
static limbs_t agreed_limbs(const int32_t *range, const limbs_t *full) {
  int64_t high = range[0], low = -(int64_t)range[1], bits = full->bits;
  limbs_t limbs = {.bits = full->bits, .count = 1, .low = 0, .has_specials = range[2] > 0};
  if (high == ZERO_EXPONENT) return limbs;
  limbs.count = (uint32_t)clip((high - low + bits - 1) / bits, 1, full->count);
  limbs.low = (int32_t)clip(low, full->low, full->low + (int64_t)full->count * bits);
  return limbs;
}

uint64_t exact_layout(const int32_t *ranges, const limbs_t *full, uint32_t num_numbers, uint32_t numbers_per_group,
                      uint32_t lanes_per_chunk, limb_group_t *groups) {
  uint64_t chunks = 0;
  for (uint32_t done = 0, count; done < num_numbers; done += count, groups++) {
    count = least(num_numbers - done, numbers_per_group);
    groups->limbs = *full;
    if (ranges) {
      groups->limbs = agreed_limbs(ranges, full);
      ranges += RANGE_LANES;
    }
    uint32_t lanes = limbs_lanes(&groups->limbs);
    groups->unit_chunks = (uint32_t)ceil_div(lanes, lanes_per_chunk);
    groups->width = lanes < lanes_per_chunk ? lanes_per_chunk / lanes : 1;
    groups->first_chunk = chunks;
    chunks += ceil_div(count, groups->width) * groups->unit_chunks;
  }
  return chunks;
}

static const limb_group_t *group_of(const exact_t *exact, uint32_t chunk) {
  uint32_t low = 0, high = exact->num_groups;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (exact->groups[middle].first_chunk <= chunk) low = middle;
    else high = middle;
  }
  return &exact->groups[low];
}

static unit_t unit_of(const exact_t *exact, const limb_group_t *group, uint32_t chunk) {
  uint32_t offset = chunk - (uint32_t)group->first_chunk, unit = offset / group->unit_chunks;
  uint32_t first = (uint32_t)(group - exact->groups) * exact->numbers_per_group, place = unit * group->width;
  uint32_t in_group = least(exact->num_numbers - first, exact->numbers_per_group);
  return (unit_t){group, offset % group->unit_chunks, first + place, least(in_group - place, group->width)};
}

void exact_fill(const exact_t *exact, uint32_t chunk, uint8_t *lanes, byte_order_t order) {
  unit_t unit = unit_of(exact, group_of(exact, chunk), chunk);
  const limb_group_t *group = unit.group;
  // A unit of several chunks is one number, a lane for each limb.
  uint32_t first = unit.chunk * exact->lanes_per_chunk;
  uint32_t end = least(limbs_lanes(&group->limbs), first + exact->lanes_per_chunk);
  if (unit.count < group->width || (end - first) * group->width < exact->lanes_per_chunk) {
    memset(lanes, 0, (size_t)4 * exact->lanes_per_chunk);
  }
  limbs_split(exact->numbers + (size_t)unit.first_number * exact->dtype.bytes, &exact->dtype, unit.count, &group->limbs, first,
              end, &(lanes_t){lanes, group->width, order});
}

void exact_round(exact_t *exact, uint32_t first, uint32_t end, uint8_t *results, byte_order_t order) {
  for (uint32_t chunk = first; chunk < end; chunk++) {
    unit_t unit = unit_of(exact, group_of(exact, chunk), chunk);
    if (unit.chunk + 1 < unit.group->unit_chunks) continue;
    uint32_t begin = chunk - unit.chunk;
    uint32_t divisor = exact->is_mean ? exact->contributors[begin] : 1;
    if (!divisor) divisor = 1; // no switch sends a result of nobody
    lanes_t lanes = {results + (size_t)begin * 4 * exact->lanes_per_chunk, unit.group->width, order};
    uint8_t *sums = exact->sums + (size_t)unit.first_number * exact->dtype.bytes;
    span_t span = limb_sums_round(&lanes, unit.count, &unit.group->limbs, divisor, &exact->round_to, sums);
    if (!span.end) continue;
    exact->specials = span_join(exact->specials, (span_t){unit.first_number + span.first, unit.first_number + span.end});
  }
}

static bool is_spread(const exact_t *exact) {
  for (uint32_t i = 0; i < exact->num_groups; i++) {
    if (exact->groups[i].unit_chunks > 1) return true;
  }
  return false;
}

void exact_take(exact_t *exact, uint32_t first, uint32_t end, uint32_t num_chunks, uint8_t *results, byte_order_t order) {
  exact->num_taken += end - first;
  if (!is_spread(exact)) exact_round(exact, first, end, results, order);
  // Parts may cut a number: wait for all.
  else if (exact->num_taken == num_chunks) exact_round(exact, 0, num_chunks, results, order);
}
