// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Multicasts on the wire (docs/wire_format.md): chunks of blocks, and reports of what has come. Some fields of the header
// have another meaning in them.
#ifndef SWITCHFOLD_MULTICAST_H
#define SWITCHFOLD_MULTICAST_H

#include <stdbool.h>
#include <stdint.h>

#include "../slots/header.h"

#define BLOCK_WINDOW 128u // most chunks of a sequence that a receiver holds beyond a gap
#define NOBODY 255u       // at ABOUT_AT: the packet says nothing about a worker's chunks

typedef enum {
  ABOUT_AT = 7,                // whose chunks the next two count
  RECEIVED_AT = SLOT_AT,       // how many have come without a gap
  MARKS_AT = EXPONENT_AT,      // how many met congestion, modulo 256
  SEQUENCE_AT = ROUND_AT,      // number of this chunk in its sender's sequence
  SIGNATURE_AT = MARKS_AT + 1, // of dtype and shape
} multicast_offset_t;

// What all multicasts of a worker share.
typedef struct {
  uint16_t tree_id;
  uint8_t child_id;
  uint32_t generation, worker_bitmap;
} multicast_origin_t;

// Write a header about nobody, with range and sequence 0.
void multicast_write_header(uint8_t *at, const multicast_origin_t *, uint16_t flags);

// The number with these low 32 bits that is closest to `near`; it may be below 0.
int64_t multicast_unwrap(uint32_t serial, uint64_t near);

#define REPORT_WORDS 6u // of a row
#define REPORT_ROW_BYTES (REPORT_WORDS * VALUE_BYTES)

// A row of a report: what its sender has received of one worker's sequence.
typedef struct {
  uint8_t worker_id;
  uint8_t marks;              // chunks that met congestion, modulo 256
  uint32_t received;          // chunks without a gap, modulo 2^32
  bool is_held[BLOCK_WINDOW]; // which of the next chunks have come
} report_row_t;

void multicast_pack_row(const report_row_t *, uint8_t *at);
void multicast_unpack_row(const uint8_t *at, report_row_t *);

#endif
