// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "multicast.h"

#define WORD_BITS 32u
#define HELD_AT (2 * VALUE_BYTES)

void multicast_write_header(uint8_t *at, const multicast_origin_t *origin, uint16_t flags) {
  memset(at, 0, HEADER_BYTES);
  at[VERSION_AT] = WIRE_VERSION;
  at[OPERATION_AT] = MULTICAST;
  store16(at + FLAGS_AT, flags);
  store16(at + TREE_AT, origin->tree_id);
  at[CHILD_AT] = origin->child_id;
  at[ABOUT_AT] = NOBODY;
  store32(at + GENERATION_AT, origin->generation);
  store32(at + BITMAP_AT, origin->worker_bitmap);
  store16(at + CONTRIBUTORS_AT, 1);
}

int64_t multicast_unwrap(uint32_t serial, uint64_t near) { return (int64_t)near + (int32_t)(serial - (uint32_t)near); }

void multicast_pack_row(const report_row_t *row, uint8_t *at) {
  store32(at, (uint32_t)row->marks << 8 | row->worker_id);
  store32(at + VALUE_BYTES, row->received);
  for (uint32_t i = 0; i < BLOCK_WINDOW; i += WORD_BITS) {
    uint32_t bits = 0;
    for (uint32_t j = 0; j < WORD_BITS; j++) bits |= (uint32_t)row->is_held[i + j] << j;
    store32(at + HELD_AT + i / WORD_BITS * VALUE_BYTES, bits);
  }
}

void multicast_unpack_row(const uint8_t *at, report_row_t *row) {
  uint32_t head = load32(at);
  row->worker_id = (uint8_t)head;
  row->marks = (uint8_t)(head >> 8);
  row->received = load32(at + VALUE_BYTES);
  for (uint32_t i = 0; i < BLOCK_WINDOW; i++) {
    row->is_held[i] = load32(at + HELD_AT + i / WORD_BITS * VALUE_BYTES) >> i % WORD_BITS & 1;
  }
}
