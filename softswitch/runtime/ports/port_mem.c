// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports inside the process: two rings of records {length, frame padded to 8}; a record never wraps, the rest of the
// ring before a wrap is marked SKIP.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ports.h"

#define SKIP UINT32_MAX

typedef struct {
  uint8_t *data;
  uint64_t capacity;
  uint64_t head, tail; // positions in the endless stream: written up to head, read up to tail
} ring_t;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t arrived;
  ring_t to_switch, from_switch;
  // The current batch: of to_switch, the end of what next has handed out, and the end of what had arrived. Only for the
  // switch's thread.
  uint64_t taken, arrived_until;
  uint32_t batch_frames;
  uint32_t waiting;
  bool is_closing;
} mem_t;

static bool ring_put(ring_t *ring, const uint8_t *frame, uint32_t bytes) {
  uint64_t record = (8 + (uint64_t)bytes + 7) & ~7ull;
  uint64_t offset = ring->head % ring->capacity;
  uint64_t skip = offset + record > ring->capacity ? ring->capacity - offset : 0;
  if (ring->head + skip + record - ring->tail > ring->capacity) return false;
  if (skip) {
    memcpy(ring->data + offset, &(uint32_t){SKIP}, 4);
    ring->head += skip;
    offset = 0;
  }
  memcpy(ring->data + offset, &bytes, 4);
  memcpy(ring->data + offset + 8, frame, bytes);
  ring->head += record;
  return true;
}

// The frame at *position, which moves past it.
static frame_t ring_next(const ring_t *ring, uint64_t *position) {
  uint32_t bytes;
  memcpy(&bytes, ring->data + *position % ring->capacity, 4);
  if (bytes == SKIP) {
    *position += ring->capacity - *position % ring->capacity;
    memcpy(&bytes, ring->data + *position % ring->capacity, 4);
  }
  frame_t frame = {ring->data + *position % ring->capacity + 8, bytes};
  *position += (8 + (uint64_t)bytes + 7) & ~7ull;
  return frame;
}

static void mem_receive(port_t *port) {
  mem_t *mem = port->state;
  uint64_t events;
  if (read(port->fd, &events, sizeof events) < 0 && errno != EAGAIN) port->statistics[PORT_ERRORS]++;
  pthread_mutex_lock(&mem->lock);
  mem->taken = mem->to_switch.tail;
  mem->arrived_until = mem->to_switch.head;
  pthread_mutex_unlock(&mem->lock);
  mem->batch_frames = 0;
}

static bool mem_next(port_t *port, frame_t *frame) {
  mem_t *mem = port->state;
  if (mem->batch_frames == PORT_BATCH || mem->taken == mem->arrived_until) return false;
  mem->batch_frames++;
  *frame = ring_next(&mem->to_switch, &mem->taken);
  uint64_t following = mem->taken;
  if (following != mem->arrived_until) port_prefetch(ring_next(&mem->to_switch, &following));
  return true;
}

static void mem_release(port_t *port) {
  mem_t *mem = port->state;
  pthread_mutex_lock(&mem->lock);
  mem->to_switch.tail = mem->taken;
  bool has_more = mem->taken != mem->to_switch.head;
  pthread_mutex_unlock(&mem->lock);
  if (has_more && eventfd_write(port->fd, 1) < 0) port->statistics[PORT_ERRORS]++;
}

static void mem_transmit(port_t *port, packet_t *const *packets, uint32_t count) {
  mem_t *mem = port->state;
  pthread_mutex_lock(&mem->lock);
  for (uint32_t i = 0; i < count; i++) {
    if (ring_put(&mem->from_switch, packets[i]->data, packets[i]->bytes)) {
      port->statistics[TX_PACKETS]++;
      port->statistics[TX_BYTES] += packets[i]->bytes;
    } else {
      port->statistics[TX_OVERFLOW]++;
    }
  }
  if (mem->waiting) pthread_cond_broadcast(&mem->arrived);
  pthread_mutex_unlock(&mem->lock);
}

static void mem_close(port_t *port) {
  mem_t *mem = port->state;
  pthread_cond_destroy(&mem->arrived);
  pthread_mutex_destroy(&mem->lock);
  free(mem->to_switch.data);
  free(mem->from_switch.data);
  free(mem);
  if (port->fd >= 0) close(port->fd);
  port->fd = -1;
}

static const port_ops_t mem_ops = {mem_receive, mem_next, mem_release, mem_transmit, mem_close, NULL, NULL};

int port_mem_open(port_t *port, uint32_t ring_bytes) {
  mem_t *mem = calloc(1, sizeof *mem);
  if (!mem) return -ENOMEM;
  mem->to_switch = (ring_t){malloc(ring_bytes), ring_bytes, 0, 0};
  mem->from_switch = (ring_t){malloc(ring_bytes), ring_bytes, 0, 0};
  port->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int error = errno;
  pthread_mutex_init(&mem->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&mem->arrived, &attributes);
  pthread_condattr_destroy(&attributes);
  port->state = mem;
  port->ops = &mem_ops;
  if (mem->to_switch.data && mem->from_switch.data && port->fd >= 0) return 0;
  error = port->fd < 0 ? error : ENOMEM;
  mem_close(port);
  port->ops = NULL;
  return -error;
}

int port_mem_send(port_t *port, const uint8_t *frames, const int32_t *lengths, uint32_t count, size_t stride) {
  mem_t *mem = port->state;
  uint32_t accepted = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (lengths[i] < 0 || (uint32_t)lengths[i] > FRAME_BYTES_MAX || (uint32_t)lengths[i] > stride) return -EMSGSIZE;
  }
  pthread_mutex_lock(&mem->lock);
  while (accepted < count && !mem->is_closing &&
         ring_put(&mem->to_switch, frames + accepted * stride, (uint32_t)lengths[accepted])) {
    accepted++;
  }
  pthread_mutex_unlock(&mem->lock);
  if (accepted && eventfd_write(port->fd, 1) < 0) return -errno;
  return (int)accepted;
}

int port_mem_receive(port_t *port, uint8_t *frames, int32_t *lengths, uint32_t count, size_t stride,
                     int64_t timeout_ns) {
  mem_t *mem = port->state;
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  int64_t nanoseconds = deadline.tv_nsec + timeout_ns % 1000000000;
  deadline.tv_sec += timeout_ns / 1000000000 + nanoseconds / 1000000000;
  deadline.tv_nsec = nanoseconds % 1000000000;
  uint32_t received = 0;
  int result = 0;
  pthread_mutex_lock(&mem->lock);
  ring_t *ring = &mem->from_switch;
  mem->waiting++;
  while (ring->head == ring->tail && !mem->is_closing && timeout_ns > 0 && result == 0) {
    result = pthread_cond_timedwait(&mem->arrived, &mem->lock, &deadline);
  }
  while (received < count && ring->head != ring->tail) {
    uint64_t position = ring->tail;
    frame_t frame = ring_next(ring, &position);
    if (frame.bytes > stride) { // the caller's rows are too short: the frame stays in the ring
      if (received == 0) result = -EMSGSIZE;
      break;
    }
    memcpy(frames + received * stride, frame.data, frame.bytes);
    lengths[received++] = (int32_t)frame.bytes;
    ring->tail = position;
  }
  if (mem->is_closing && received == 0) result = -ESHUTDOWN;
  mem->waiting--;
  pthread_mutex_unlock(&mem->lock);
  return received > 0 || result >= 0 ? (int)received : result;
}

void port_mem_interrupt(port_t *port) {
  mem_t *mem = port->state;
  pthread_mutex_lock(&mem->lock);
  mem->is_closing = true;
  pthread_cond_broadcast(&mem->arrived);
  pthread_mutex_unlock(&mem->lock);
}

bool port_is_mem(const port_t *port) { return port->ops == &mem_ops; }
