// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "reports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A report in the ring: its head, then its bytes, without padding; both may wrap.
typedef struct {
  uint32_t id, bytes;
} head_t;

void reports_init(reports_t *ring) {
  pthread_condattr_t monotonic;
  memset(ring, 0, sizeof *ring);
  pthread_mutex_init(&ring->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&ring->filled, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void reports_destroy(reports_t *ring) {
  free(ring->data);
  ring->data = NULL;
  pthread_cond_destroy(&ring->filled);
  pthread_mutex_destroy(&ring->lock);
}

int reports_open(reports_t *ring, uint32_t capacity) {
  int result = 0;
  pthread_mutex_lock(&ring->lock);
  if (!ring->data) {
    ring->data = malloc(capacity);
    ring->capacity = capacity;
    ring->written = ring->taken = 0;
    if (!ring->data) result = -ENOMEM;
  }
  pthread_mutex_unlock(&ring->lock);
  return result;
}

void reports_close(reports_t *ring) {
  pthread_mutex_lock(&ring->lock);
  free(ring->data);
  ring->data = NULL;
  ring->written = ring->taken = 0;
  pthread_cond_broadcast(&ring->filled);
  pthread_mutex_unlock(&ring->lock);
}

static void copy_in(reports_t *ring, const void *data, uint32_t bytes) {
  uint32_t at = (uint32_t)(ring->written % ring->capacity);
  uint32_t first = bytes < ring->capacity - at ? bytes : ring->capacity - at;
  memcpy(ring->data + at, data, first);
  memcpy(ring->data, (const uint8_t *)data + first, bytes - first);
  ring->written += bytes;
}

static void copy_out(const reports_t *ring, uint64_t from, void *out, uint32_t bytes) {
  uint32_t at = (uint32_t)(from % ring->capacity);
  uint32_t first = bytes < ring->capacity - at ? bytes : ring->capacity - at;
  memcpy(out, ring->data + at, first);
  memcpy((uint8_t *)out + first, ring->data, bytes - first);
}

bool reports_put(reports_t *ring, uint32_t id, const void *data, uint32_t bytes) {
  head_t head = {id, bytes};
  bool is_kept = true;
  pthread_mutex_lock(&ring->lock);
  if (ring->data) {
    is_kept = sizeof head + bytes <= ring->capacity - (ring->written - ring->taken);
    if (is_kept) {
      copy_in(ring, &head, sizeof head);
      if (bytes) copy_in(ring, data, bytes);
      pthread_cond_broadcast(&ring->filled);
    } else {
      ring->lost++;
    }
  }
  pthread_mutex_unlock(&ring->lock);
  return is_kept;
}

// The caller holds the lock.
static int wait_for_report(reports_t *ring, int64_t timeout_ns) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t nanoseconds = until.tv_nsec + (timeout_ns > 0 ? timeout_ns : 0);
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  int error = 0;
  while (ring->data && ring->written == ring->taken && timeout_ns > 0 && error == 0) {
    error = pthread_cond_timedwait(&ring->filled, &ring->lock, &until);
  }
  return ring->data && ring->written != ring->taken ? 0 : -EAGAIN;
}

int reports_wait(reports_t *ring, int64_t timeout_ns) {
  pthread_mutex_lock(&ring->lock);
  int result = wait_for_report(ring, timeout_ns);
  pthread_mutex_unlock(&ring->lock);
  return result;
}

int reports_take(reports_t *ring, uint32_t *id, void *out, uint32_t capacity, int64_t timeout_ns) {
  pthread_mutex_lock(&ring->lock);
  int result = wait_for_report(ring, timeout_ns);
  if (result == 0) {
    head_t head;
    copy_out(ring, ring->taken, &head, sizeof head);
    if (head.bytes > capacity) {
      result = -EMSGSIZE;
    } else {
      copy_out(ring, ring->taken + sizeof head, out, head.bytes);
      ring->taken += sizeof head + head.bytes;
      *id = head.id;
      result = (int)head.bytes;
    }
  }
  pthread_mutex_unlock(&ring->lock);
  return result;
}

uint64_t reports_lost(reports_t *ring) {
  pthread_mutex_lock(&ring->lock);
  uint64_t lost = ring->lost;
  pthread_mutex_unlock(&ring->lock);
  return lost;
}
