// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What generated code builds its pipeline from. Included once, by generated code, which defines MAX_DATA_WORDS before.
#ifndef SOFTSWITCH_PIPELINE_STATE_H
#define SOFTSWITCH_PIPELINE_STATE_H

#include <stdlib.h>

#include "action_profile.h"
#include "hash.h"
#include "message.h"
#include "meter.h"
#include "packet.h"
#include "pages.h"
#include "pipeline.h"
#include "table.h"
#include "table_match.h"
#include "value_set.h"
#include "varbit.h"
#include "wide.h"

// What a table does when no entry matches.
typedef struct {
  uint32_t action; // TABLE_NONE: nothing
  counter_cell_t counter;
  meter_cell_t meter;
  uint64_t data[MAX_DATA_WORDS];
} default_entry_t;

P4_UNUSED static inline void count_bytes(counter_cell_t *cell, uint32_t bytes) {
  cell->packets++;
  cell->bytes += bytes;
}

P4_UNUSED static inline void count_packet(counter_cell_t *cells, uint64_t size, uint64_t index, uint32_t bytes) {
  if (index >= size) return;
  count_bytes(&cells[index], bytes);
}

// Bodies of the function that reads and writes registers (p4_register): a number in host order, or bytes.
#define CELL_CHECK(width)                                         \
  if (data == NULL) return ((width) + 7) / 8;                     \
  if (is_write && (width) % 8 != 0 && data[0] >> ((width) % 8)) { \
    return P_BAD_ARGUMENT;                                        \
  }

#define NUMBER_CELL(element, type, width)                               \
  do {                                                                  \
    CELL_CHECK(width)                                                   \
    if (is_write) (element) = (type)load_be(data, ((width) + 7) / 8);   \
    else store_be(data, ((width) + 7) / 8, (element));                  \
    return ((width) + 7) / 8;                                           \
  } while (0)

#define BYTES_CELL(element, width)                              \
  do {                                                          \
    CELL_CHECK(width)                                           \
    if (is_write) memcpy((element), data, ((width) + 7) / 8);   \
    else memcpy(data, (element), ((width) + 7) / 8);            \
    return ((width) + 7) / 8;                                   \
  } while (0)

P4_UNUSED static inline int64_t clamp_64(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

P4_UNUSED static inline wide_int_t clamp_wide(wide_int_t value, wide_int_t low, wide_int_t high) {
  return value < low ? low : value > high ? high : value;
}

P4_UNUSED static inline wide_int_t divide_or_0(wide_int_t left, wide_int_t right) {
  return right == 0 ? 0 : left / right;
}

P4_UNUSED static inline wide_int_t remainder_or_0(wide_int_t left, wide_int_t right) {
  return right == 0 ? 0 : left % right;
}

P4_UNUSED static inline int64_t divide_or_0_64(int64_t left, int64_t right) {
  return right == 0 || right == -1 ? right * left : left / right;
}

P4_UNUSED static inline int64_t remainder_or_0_64(int64_t left, int64_t right) {
  return right == 0 || right == -1 ? 0 : left % right;
}

// A range of 0 counts as 1.
P4_UNUSED static inline uint64_t remainder_of_hash(uint64_t hash, uint64_t range) {
  return range == 0 ? 0 : hash % range;
}

#endif
