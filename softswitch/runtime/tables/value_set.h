// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Value sets of parsers: what the control plane writes, and the test in a parser state. A member is a value and a mask of
// equal size; both are big-endian, (width + 7) / 8 bytes for each field of the select's key.
#ifndef SOFTSWITCH_VALUE_SET_H
#define SOFTSWITCH_VALUE_SET_H

#include <stdlib.h>

#include "packet.h"
#include "pipeline.h"

typedef struct {
  uint8_t *members; // owned; NULL while it is empty
  uint32_t count;
} value_set_t;

P4_UNUSED static inline bool value_set_holds(const value_set_t *set, const uint8_t *key, uint32_t bytes) {
  const uint8_t *member = set->members;
  for (uint32_t i = 0; i < set->count; i++, member += 2 * (size_t)bytes) {
    uint8_t differ = 0;
    for (uint32_t j = 0; j < bytes; j++) differ |= (uint8_t)((key[j] ^ member[j]) & member[bytes + j]);
    if (differ == 0) return true;
  }
  return false;
}

// Replace all members by copies of others.
P4_UNUSED static inline int value_set_replace(value_set_t *set, const uint8_t *members, uint32_t bytes, uint32_t count) {
  const size_t size = 2 * (size_t)bytes * count;
  uint8_t *held = NULL;
  if (size != 0) {
    held = malloc(size);
    if (held == NULL) return P_FULL;
    memcpy(held, members, size);
  }
  free(set->members);
  set->members = held;
  set->count = count;
  return P_OK;
}

#endif
