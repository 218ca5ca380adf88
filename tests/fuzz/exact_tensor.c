// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "exact_tensor.h"

#include <stdlib.h>

#include "random.h"

#define MOST_NUMBERS 200u
#define LIMB_BITS 29u

static const float_format_t formats[] = {{2, 0, 11, -24, 16}, {4, 0, 24, -149, 128}, {8, 0, 53, -1074, 1024}};
static const float_format_t bfloat16 = {4, 16, 8, -133, 128};

static void draw_range(const float_format_t *format, int32_t *range) {
  uint32_t span = (uint32_t)(format->high - format->lowest_bit);
  uint32_t low = draw(span), high = low + between(1, happens(500) && span - low > 60 ? 60 : span - low);
  range[0] = format->lowest_bit + (int32_t)high;
  range[1] = -(format->lowest_bit + (int32_t)low);
  range[2] = (int32_t)draw(2);
  if (happens(50)) range[0] = range[1] = ZERO_EXPONENT;
  if (happens(20)) range[draw(2)] = (int32_t)draw64(); // no worker can have this
}

uint32_t exact_draw(exact_t *exact, uint32_t lanes_per_chunk, uint32_t most_chunks) {
  uint64_t num_chunks;
  int32_t ranges[RANGE_LANES * MOST_NUMBERS];
  limb_group_t *groups = malloc(MOST_NUMBERS * sizeof *groups);
  do {
    const float_format_t *format = &formats[draw(3)];
    limbs_t full = {LIMB_BITS, (uint32_t)(format->high - format->lowest_bit + LIMB_BITS - 1) / LIMB_BITS, format->lowest_bit,
                    true};
    uint32_t num_numbers = between(1, MOST_NUMBERS), per_group = between(1, MOST_NUMBERS);
    *exact = (exact_t){
        .groups = groups,
        .num_groups = (num_numbers + per_group - 1) / per_group,
        .numbers_per_group = per_group,
        .num_numbers = num_numbers,
        .lanes_per_chunk = lanes_per_chunk,
        .dtype = *format,
        .round_to = format->bytes == 4 && happens(500) ? bfloat16 : *format,
        .is_mean = happens(500),
    };
    for (uint32_t i = 0; i < exact->num_groups; i++) draw_range(format, ranges + RANGE_LANES * i);
    num_chunks = exact_layout(happens(300) ? NULL : ranges, &full, num_numbers, per_group, lanes_per_chunk, groups);
  } while (num_chunks > most_chunks);
  exact->groups = realloc(groups, exact->num_groups * sizeof *groups);
  return (uint32_t)num_chunks;
}

exact_t *exact_part(const exact_t *layout, uint32_t num_chunks, const uint16_t *contributors, int32_t *expected) {
  size_t bytes = (size_t)layout->num_numbers * layout->dtype.bytes, num_lanes = (size_t)num_chunks * layout->lanes_per_chunk;
  uint8_t *numbers = malloc(bytes);
  int32_t *lanes = malloc(num_lanes * sizeof *lanes);
  for (size_t i = 0; i < bytes; i++) numbers[i] = (uint8_t)draw(256);
  exact_t *exact = malloc(sizeof *exact);
  *exact = *layout;
  exact->numbers = numbers;
  exact->sums = calloc(1, bytes);
  exact->contributors = contributors;
  for (uint32_t chunk = 0; chunk < num_chunks; chunk++) {
    exact_fill(exact, chunk, (uint8_t *)(lanes + (size_t)chunk * layout->lanes_per_chunk), NATIVE_ORDER);
  }
  for (size_t i = 0; i < num_lanes; i++) expected[i] += lanes[i];
  free(lanes);
  return exact;
}

void exact_part_free(exact_t *exact) {
  if (!exact) return;
  free((void *)exact->numbers);
  free(exact->sums);
  free(exact);
}

bool exact_is_right(const exact_t *exact, uint32_t num_chunks, int32_t *lanes) {
  size_t bytes = (size_t)exact->num_numbers * exact->dtype.bytes;
  exact_t again = *exact;
  again.sums = malloc(bytes);
  exact_round(&again, 0, num_chunks, (uint8_t *)lanes, NATIVE_ORDER);
  bool is_right = memcmp(again.sums, exact->sums, bytes) == 0;
  free(again.sums);
  return is_right;
}
