// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages of log_msg, built in a fixed buffer and cut at its end; and random numbers.
#ifndef SOFTSWITCH_MESSAGE_H
#define SOFTSWITCH_MESSAGE_H

#include <time.h>

#include "packet.h"

#define MESSAGE_BYTES 2048u

typedef struct {
  uint32_t bytes;
  char text[MESSAGE_BYTES];
} message_t;

P4_UNUSED static inline void message_text(message_t *message, const char *text, uint32_t bytes) {
  uint32_t room = MESSAGE_BYTES - message->bytes;
  if (bytes > room) bytes = room;
  memcpy(message->text + message->bytes, text, bytes);
  message->bytes += bytes;
}

// Decimal, as simple_switch prints it. digits: base 256, most significant first; they are overwritten.
P4_UNUSED static inline void message_digits(message_t *message, uint8_t *digits, uint32_t count) {
  char text[3 * 320];
  uint32_t at = sizeof text;
  uint32_t first = 0;
  if (count > 320) return;
  do {
    uint32_t remainder = 0;
    for (uint32_t i = first; i < count; i++) {
      uint32_t value = remainder << 8 | digits[i];
      digits[i] = (uint8_t)(value / 10);
      remainder = value % 10;
    }
    text[--at] = (char)('0' + remainder);
    while (first < count && digits[first] == 0) first++;
  } while (first < count && at > 0);
  message_text(message, text + at, (uint32_t)sizeof text - at);
}

// A field of `width` bits, big-endian; in two's complement if signed.
P4_UNUSED static inline void message_bytes(message_t *message, const uint8_t *number, uint32_t width, bool is_signed) {
  uint8_t digits[320];
  const uint32_t count = (width + 7) / 8;
  const uint32_t top = (width - 1) % 8; // the sign's place in the first byte
  if (count > sizeof digits) return;
  memcpy(digits, number, count);
  if (is_signed && (digits[0] >> top & 1) != 0) {
    digits[0] |= (uint8_t)(0xff << top);
    uint32_t carry = 1;
    for (uint32_t i = count; i > 0; i--) {
      carry += (uint8_t)~digits[i - 1];
      digits[i - 1] = (uint8_t)carry;
      carry >>= 8;
    }
    message_text(message, "-", 1);
  }
  message_digits(message, digits, count);
}

P4_UNUSED static inline void message_number(message_t *message, wide_int_t value) {
  uint8_t digits[16];
  wide_uint_t rest = value < 0 ? -(wide_uint_t)value : (wide_uint_t)value;
  if (value < 0) message_text(message, "-", 1);
  for (uint32_t i = sizeof digits; i > 0; i--) {
    digits[i - 1] = (uint8_t)rest;
    rest >>= 8;
  }
  message_digits(message, digits, sizeof digits);
}

P4_UNUSED static inline uint64_t random_seed(const void *unique) {
  return (uint64_t)time(NULL) * UINT64_C(0xd1342543de82ef95) ^ (uint64_t)(uintptr_t)unique;
}

// Uniform over [low, high], low <= high. splitmix64, with rejection of the uneven rest.
P4_UNUSED static inline uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high) {
  const uint64_t range = high - low + 1; // 0: all 64 bits
  const uint64_t limit = range == 0 ? 0 : (0 - range) % range;
  for (;;) {
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    value ^= value >> 31;
    if (range == 0) return value;
    if (value >= limit) return low + value % range;
  }
}

#endif
