// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// An allgather that the caller has submitted, and the members of the view that take part in it.
#ifndef SWITCHFOLD_ALLGATHER_H
#define SWITCHFOLD_ALLGATHER_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_MEMBERS 32u // width of the worker bitmap
#define MAX_OTHERS (MAX_MEMBERS - 1)

// Workers of a view. The `others` are all but this one, in the same order; their places below count without it.
typedef struct {
  uint32_t num_members;
  uint32_t own; // place of this worker among the members
  uint8_t ids[MAX_MEMBERS];
} members_t;

// The caller sets the first part and keeps all of it in place until is_sent and is_complete.
typedef struct allgather allgather_t;
struct allgather {
  uint32_t tensor_id;             // on the wire
  uint32_t num_chunks, num_words; // of a block
  uint32_t signature;             // checksum of dtype and shape, 8 bits
  // One block for each member, in the order of the members, each of whole chunks. Words have wire order: a block's bytes
  // are as in memory. This worker's block is read until is_sent, the others are written until is_complete.
  uint8_t *blocks;

  uint64_t start;            // number of the block's first chunk in each member's sequence
  allgather_t *to_send;      // the next one to send
  allgather_t *to_take;      // the next one to receive
  uint32_t left[MAX_OTHERS]; // by place among the others: chunks to come
  uint32_t num_incomplete;   // others whose blocks are not complete
  bool is_sent;              // every chunk has left, and is kept by the sender
  bool is_complete;          // the blocks of all others are here
  double first_sent_s;       // 0: none was sent
  double last_result_s;      // when the last block was complete
};

#endif
