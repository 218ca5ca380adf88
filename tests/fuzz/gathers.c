// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "gathers.h"

#include <stdlib.h>
#include <string.h>

#include "slots/header.h"
#include "random.h"

#define MOST_CHUNKS 200u // more than a window

static size_t block_bytes(const allgather_t *part, uint32_t values_per_packet) {
  return (size_t)part->num_chunks * values_per_packet * VALUE_BYTES;
}

void gathered_init(gathered_t *gathered, uint32_t tensor_id, uint32_t num_workers, uint32_t values_per_packet) {
  uint32_t num_words = between(1, between(1, MOST_CHUNKS) * values_per_packet), signature = draw(256);
  for (uint32_t id = 0; id < num_workers; id++) {
    allgather_t *part = &gathered->parts[id];
    *part = (allgather_t){.tensor_id = tensor_id,
                          .num_chunks = (num_words + values_per_packet - 1) / values_per_packet,
                          .num_words = num_words,
                          .signature = signature};
    size_t bytes = block_bytes(part, values_per_packet);
    part->blocks = calloc(num_workers, bytes);
    for (uint32_t i = 0; i < num_words * VALUE_BYTES; i++) part->blocks[id * bytes + i] = (uint8_t)draw(256);
  }
}

void gathered_close(gathered_t *gathered, uint32_t num_workers) {
  for (uint32_t id = 0; id < num_workers; id++) free(gathered->parts[id].blocks);
}

bool gathered_is_right(const gathered_t *gathered, uint32_t worker, uint32_t num_workers, uint32_t values_per_packet) {
  const allgather_t *part = &gathered->parts[worker];
  size_t bytes = block_bytes(part, values_per_packet);
  for (uint32_t id = 0; id < num_workers; id++) {
    if (memcmp(part->blocks + id * bytes, gathered->parts[id].blocks + id * bytes, bytes) != 0) return false;
  }
  return true;
}
