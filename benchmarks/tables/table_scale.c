// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fills and asks the tables of table_kinds.p4 through the pipeline seam; called by table_scale.py.
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "pipeline.h"

enum { EXACT = 2, PREFIXES = 3, MASKS = 4, RANGES = 5, FRAME_BYTES = 17 };

typedef struct {
  const pipeline_ops_t *ops;
  pipeline_t *pipeline;
  phv_t *phv;
  uint32_t table, action, kind;
} subject_t;

// Of this thread: what else the machine does is not the tables' doing.
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void put(uint8_t *to, uint32_t bytes, uint64_t value) {
  for (uint32_t i = bytes; i-- > 0; value >>= 8) to[i] = (uint8_t)value;
}

// The key of entry i, which no other entry of its table matches.
static void key_of(uint32_t kind, uint32_t i, uint32_t *a, uint32_t *b) {
  *a = kind == PREFIXES ? i << 12 : i * UINT32_C(2654435761);
  *b = kind == RANGES ? 3 * i + 1 : i & 0xffff;
}

// An entry that answers i and its complement.
static table_entry_t entry_of(const subject_t *subject, uint32_t i, uint8_t *key, uint8_t *mask, uint8_t *params) {
  uint32_t a, b;
  key_of(subject->kind, i, &a, &b);
  table_entry_t entry = {.key = key, .mask = mask, .action_id = subject->action, .params = params, .params_bytes = 8,
                         .key_bytes = subject->kind == RANGES ? 2 : 6};
  put(params, 4, i);
  put(params + 4, 4, ~i);
  memset(mask, 0xff, 6);
  if (subject->kind == RANGES) {
    put(key, 2, b - 1);
    put(mask, 2, b + 1);
  } else if (subject->kind == PREFIXES) {
    put(key, 2, b);
    put(key + 2, 4, a);
    entry.prefix_len = 20 + (int32_t)(i % 13);
  } else {
    put(key, 4, a);
    put(key + 4, 2, b);
    if (subject->kind == MASKS) put(mask, 4, ~(UINT32_C(1) << i % 29)), mask[5] = i % 2 ? 0xff : 0;
  }
  if (subject->kind == MASKS || subject->kind == RANGES) entry.priority = 1 + (int32_t)(i % 50);
  return entry;
}

// Insert entries [first, end) or, if is_delete, remove them. Returns seconds, or -1; worst is the longest single operation.
double scale_change(const subject_t *subject, uint32_t first, uint32_t end, int is_delete, double *worst) {
  uint8_t key[6], mask[6], params[8];
  uint64_t handle;
  double start = seconds(), before = start;
  *worst = 0;
  for (uint32_t i = first; i < end; i++) {
    table_entry_t entry = entry_of(subject, i, key, mask, params);
    int result = is_delete ? subject->ops->table_delete(subject->pipeline, subject->table, &entry)
                           : subject->ops->table_insert(subject->pipeline, subject->table, &entry, &handle);
    if (result != P_OK) return -1;
    double after = seconds();
    if (after - before > *worst) *worst = after - before;
    before = after;
  }
  return seconds() - start;
}

// Seconds for `rounds` packets that ask for entries below count in a random order, or -1 after a wrong answer. Asks a kind of
// its own where the subject's is 0: what a packet costs without a table.
double scale_ask(const subject_t *subject, uint32_t count, uint32_t rounds, int is_checked) {
  uint8_t frame[FRAME_BYTES] = {0}, out[64];
  intrinsic_t intrinsics = {0};
  packet_info_t info = {.ingress_port = 1, .packet_length = FRAME_BYTES};
  uint64_t state = 88172645463325252u;
  double start = seconds();
  for (uint32_t n = 0; n < rounds; n++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    uint32_t a, b, i = (uint32_t)((state >> 32) * count >> 32);
    key_of(subject->kind, i, &a, &b);
    frame[0] = (uint8_t)subject->kind;
    put(frame + 1, 4, a);
    put(frame + 5, 2, b);
    subject->ops->start(subject->pipeline, subject->phv, frame, sizeof frame, &info);
    subject->ops->parse(subject->pipeline, subject->phv);
    subject->ops->ingress(subject->pipeline, subject->phv, &intrinsics);
    if (!is_checked) continue;
    uint8_t wanted[8];
    put(wanted, 4, i);
    put(wanted + 4, 4, ~i);
    int bytes = subject->ops->deparse(subject->pipeline, subject->phv, out, sizeof out);
    if (bytes != FRAME_BYTES || memcmp(out + 9, wanted, 8) != 0) return -1;
  }
  return seconds() - start;
}
