// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fields of variable length and stacks of headers, for generated code. A field of variable length is an array of bytes as
// on the wire, of which the first `count` are in use. Nothing here allocates.
#ifndef SOFTSWITCH_VARBIT_H
#define SOFTSWITCH_VARBIT_H

#include "packet.h"

// The index of an element; if it is out of range, that of the spare element after the last one.
P4_UNUSED static inline uint32_t stack_index(uint64_t index, uint32_t size) {
  return index < size ? (uint32_t)index : size;
}

// Bytes as numbers are equal: leading zeros do not count.
P4_UNUSED static inline bool varbit_equal(const uint8_t *left, uint32_t left_count, const uint8_t *right,
                                          uint32_t right_count) {
  for (; left_count > right_count; left_count--) {
    if (*left++ != 0) return false;
  }
  for (; right_count > left_count; right_count--) {
    if (*right++ != 0) return false;
  }
  return left_count == 0 || memcmp(left, right, left_count) == 0;
}

P4_UNUSED static inline void varbit_assign(uint8_t *to, uint32_t *to_count, uint32_t capacity, const uint8_t *from,
                                           uint32_t from_count) {
  const uint32_t count = from_count < capacity ? from_count : capacity;
  memmove(to, from, count);
  *to_count = count;
}

// Bytes that start `offset` bits after `from`.
P4_UNUSED static inline void load_bytes(uint8_t *to, uint32_t count, const uint8_t *from, uint32_t offset) {
  if (offset % 8 == 0) {
    memcpy(to, from + offset / 8, count);
    return;
  }
  for (uint32_t i = 0; i < count; i++) to[i] = (uint8_t)load_bits(from, offset + i * 8, 8);
}

// OR bytes into others, `offset` bits after `to`, that are zero there.
P4_UNUSED static inline void or_bytes(uint8_t *to, uint32_t offset, const uint8_t *from, uint32_t count) {
  if (offset % 8 == 0) {
    memcpy(to + offset / 8, from, count);
    return;
  }
  for (uint32_t i = 0; i < count; i++) or_bits(to, offset + i * 8, 8, from[i]);
}

// Exchange two structures of equal size.
P4_UNUSED static inline void exchange(void *left, void *right, size_t bytes) {
  uint8_t *one = left;
  uint8_t *other = right;
  for (size_t i = 0; i < bytes; i++) {
    const uint8_t held = one[i];
    one[i] = other[i];
    other[i] = held;
  }
}

// Move elements `count` places towards the end; with is_cleared, those that come to the front become invalid.
P4_UNUSED static inline void stack_push(void *elements, size_t bytes, uint8_t *valid, uint32_t size, uint64_t count,
                                        bool is_cleared) {
  uint8_t *first = elements;
  if (count == 0) return;
  for (uint64_t i = size; i-- > count;) {
    exchange(first + i * bytes, first + (i - count) * bytes, bytes);
    exchange(&valid[i], &valid[i - count], 1);
  }
  for (uint64_t i = 0; is_cleared && i < count && i < size; i++) valid[i] = 0;
}

P4_UNUSED static inline uint32_t stack_push_next(uint32_t next, uint32_t size, uint64_t count) {
  return count < size - next ? next + (uint32_t)count : size;
}

// Move elements `count` places towards the front; with is_cleared, those that come to the end become invalid.
P4_UNUSED static inline void stack_pop(void *elements, size_t bytes, uint8_t *valid, uint32_t size, uint64_t count,
                                       bool is_cleared) {
  uint8_t *first = elements;
  uint64_t i = 0;
  if (count == 0) return;
  for (; count < size && i < size - count; i++) {
    exchange(first + i * bytes, first + (i + count) * bytes, bytes);
    exchange(&valid[i], &valid[i + count], 1);
  }
  for (; is_cleared && i < size; i++) valid[i] = 0;
}

P4_UNUSED static inline uint32_t stack_pop_next(uint32_t next, uint32_t size, uint64_t count) {
  (void)size;
  return count < next ? next - (uint32_t)count : 0;
}

#endif
