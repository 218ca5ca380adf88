// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The recorder of a traced build: generated text with trace points includes it, an ordinary build does not.
//
// Records follow each other, each a multiple of 8 bytes, numbers in host order:
//   uint32_t bytes (of the whole record), kind, number, count; then by kind
//   TRACE_POINT_RECORD: count numbers of 64 bits, then the phv
//   other kinds: count bytes
// A library has one recorder, so only one switch at a time may be traced. The data plane writes under the switch's lock;
// p4_trace_take may be called from another thread.
#ifndef SOFTSWITCH_TRACE_H
#define SOFTSWITCH_TRACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  TRACE_POINT_RECORD = 1,
  TRACE_MEMORY_RECORD = 2,  // an object that belongs to the previous point; number: which object
  TRACE_START_RECORD = 3,   // packet_info_t
  TRACE_FRAME_RECORD = 4,   // the frame that start was given
  TRACE_INGRESS_RECORD = 5, // intrinsic_t after ingress
  TRACE_COPY_RECORD = 6,    // packet_info_t of a packet that enters egress
  TRACE_EGRESS_RECORD = 7,  // intrinsic_t after egress
  TRACE_SENT_RECORD = 8,    // the frame that the deparser wrote
};

#define TRACE_BYTES_MAX ((size_t)256 << 20) // bytes that may wait to be taken; further records are lost and counted

typedef struct {
  uint8_t *data;
  size_t bytes, capacity;
} trace_buffer_t;

static struct {
  pthread_mutex_t lock;
  bool is_on;            // the current packet is recorded
  uint64_t packets_left; // packets still to record
  int64_t port;          // only packets from this port; -1: any
  uint64_t lost;         // records that were dropped for lack of room
  trace_buffer_t filling, taken;
} trace_sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .port = -1};

static uint8_t *trace_room(size_t bytes) {
  trace_buffer_t *buffer = &trace_sink.filling;
  if (buffer->bytes + bytes > buffer->capacity) {
    const size_t capacity = 2 * (buffer->bytes + bytes);
    uint8_t *data = capacity > TRACE_BYTES_MAX ? NULL : realloc(buffer->data, capacity);
    if (data == NULL) {
      trace_sink.lost++;
      return NULL;
    }
    buffer->data = data;
    buffer->capacity = capacity;
  }
  uint8_t *room = buffer->data + buffer->bytes;
  buffer->bytes += bytes;
  return room;
}

static void trace_record(uint32_t kind, uint32_t number, uint32_t count, const void *first, size_t first_bytes,
                         const void *second, size_t second_bytes) {
  const size_t payload = first_bytes + second_bytes;
  const size_t bytes = 16 + (payload + 7) / 8 * 8;
  pthread_mutex_lock(&trace_sink.lock);
  uint8_t *to = trace_room(bytes);
  if (to != NULL) {
    const uint32_t head[4] = {(uint32_t)bytes, kind, number, count};
    memcpy(to, head, sizeof head);
    if (first_bytes != 0) memcpy(to + 16, first, first_bytes);
    if (second_bytes != 0) memcpy(to + 16 + first_bytes, second, second_bytes);
    memset(to + 16 + payload, 0, bytes - 16 - payload);
  }
  pthread_mutex_unlock(&trace_sink.lock);
}

static void trace_bytes(uint32_t kind, uint32_t number, const void *data, size_t bytes) {
  if (trace_sink.is_on) trace_record(kind, number, (uint32_t)bytes, data, bytes, NULL, 0);
}

P4_UNUSED static void trace_memory(uint32_t index, const void *data, size_t bytes) {
  trace_bytes(TRACE_MEMORY_RECORD, index, data, bytes);
}

// The first of the numbers is a filler, so that the array is never empty.
#define TRACE_POINT(number, count, ...)                                                                             \
  do {                                                                                                              \
    if (trace_sink.is_on) {                                                                                         \
      const uint64_t trace_numbers[] = {__VA_ARGS__};                                                               \
      trace_record(TRACE_POINT_RECORD, number, count, trace_numbers + 1, sizeof trace_numbers - 8, p, sizeof *p);   \
    }                                                                                                               \
  } while (0)

// Record the next packets, of one port or of any (-1).
void p4_trace_start(int64_t port, uint64_t packets) {
  pthread_mutex_lock(&trace_sink.lock);
  trace_sink.port = port;
  trace_sink.packets_left = packets;
  trace_sink.filling.bytes = 0;
  trace_sink.lost = 0;
  pthread_mutex_unlock(&trace_sink.lock);
}

// Give the records since the last call, valid until the next one. Returns how many records were lost since the start.
uint64_t p4_trace_take(const uint8_t **data, size_t *bytes) {
  pthread_mutex_lock(&trace_sink.lock);
  const trace_buffer_t full = trace_sink.filling;
  trace_sink.filling = trace_sink.taken;
  trace_sink.filling.bytes = 0;
  trace_sink.taken = full;
  *data = full.data;
  *bytes = full.bytes;
  const uint64_t lost = trace_sink.lost;
  pthread_mutex_unlock(&trace_sink.lock);
  return lost;
}

#endif
