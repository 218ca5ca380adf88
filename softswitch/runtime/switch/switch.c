// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "switch_state.h"

#define MEM_RING_BYTES (4u << 20)

void switch_lock(softswitch_t *sw) {
  pthread_mutex_lock(&sw->turn_lock);
  if (!sw->depth || !pthread_equal(sw->holder, pthread_self())) {
    uint64_t mine = sw->next_turn++;
    while (sw->turn != mine) pthread_cond_wait(&sw->turn_passed, &sw->turn_lock);
    sw->holder = pthread_self();
  }
  sw->depth++;
  pthread_mutex_unlock(&sw->turn_lock);
}

void switch_unlock(softswitch_t *sw) {
  pthread_mutex_lock(&sw->turn_lock);
  if (--sw->depth == 0) {
    sw->turn++;
    if (sw->turn != sw->next_turn) pthread_cond_broadcast(&sw->turn_passed);
  }
  pthread_mutex_unlock(&sw->turn_lock);
}

uint64_t switch_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int watch(softswitch_t *sw, int fd, uint64_t data) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};
  return epoll_ctl(sw->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void free_port(softswitch_t *sw, port_t *port) {
  port_close(port, &sw->batch);
  free(port);
}

// Takes ownership of an opened port, also if it fails.
static int install_port(softswitch_t *sw, port_t *port, const char *capture_path) {
  int error = capture_path ? capture_open(&port->capture, capture_path) : 0;
  if (error) error += S_CAPTURE_FAILED;
  switch_lock(sw);
  if (!error && sw->engine.ports[port->number]) error = -EEXIST;
  port->serial = ++sw->next_serial;
  if (!error) error = watch(sw, port->fd, port->serial << 16 | port->number);
  if (error) {
    free_port(sw, port);
  } else {
    pthread_mutex_lock(&sw->users_lock);
    sw->engine.ports[port->number] = port;
    pthread_mutex_unlock(&sw->users_lock);
    loop_ports_changed(sw);
  }
  switch_unlock(sw);
  return error;
}

// NULL with *error set if there can be no such port.
static port_t *new_port(softswitch_t *sw, uint32_t number, int *error) {
  *error = number >= PORTS_MAX ? -EINVAL : 0;
  if (*error) return NULL;
  switch_lock(sw);
  if (sw->engine.ports[number]) *error = -EEXIST;
  switch_unlock(sw);
  if (*error) return NULL;
  uint32_t queues = sw->engine.priority_queues;
  port_t *port = calloc(1, sizeof *port + (1 + (size_t)queues) * sizeof port->queues[0]);
  *error = port ? 0 : -ENOMEM;
  if (!port) return NULL;
  port->number = number;
  port->fd = -1;
  port->in.queue_count = 1;
  port->in.queues = port->queues;
  port->out.queue_count = queues;
  port->out.queues = port->queues + 1;
  port->in.counters = &port->statistics[IMPAIRED_FIRST];
  port->out.counters = &port->statistics[IMPAIRED_FIRST + IMPAIRMENT_COUNTERS];
  return port;
}

static int finish_port(softswitch_t *sw, port_t *port, int error, const char *capture_path) {
  if (!error) return install_port(sw, port, capture_path);
  free(port);
  return error;
}

int switch_add_mem_port(softswitch_t *sw, uint32_t number, const char *capture_path) {
  int error;
  port_t *port = new_port(sw, number, &error);
  return port ? finish_port(sw, port, port_mem_open(port, MEM_RING_BYTES), capture_path) : error;
}

int switch_add_veth_port(softswitch_t *sw, uint32_t number, const char *interface, int super_frames,
                         const char *capture_path) {
  int error;
  port_t *port = new_port(sw, number, &error);
  return port ? finish_port(sw, port, port_veth_open(port, interface, super_frames), capture_path) : error;
}

int switch_add_udp_port(softswitch_t *sw, uint32_t number, const char *host, const char *service, const char *peer_host,
                        const char *peer_service, int super_frames, const char *capture_path) {
  int error;
  port_t *port = new_port(sw, number, &error);
  if (!port) return error;
  error = port_udp_open(port, host, service, peer_host, peer_service, super_frames);
  return finish_port(sw, port, error, capture_path);
}

// The port, which stays valid until the lock is released; NULL if there is none.
static port_t *find_port(softswitch_t *sw, uint32_t number) {
  return number < PORTS_MAX ? sw->engine.ports[number] : NULL;
}

static void take_out(softswitch_t *sw, port_t *port) {
  bool is_mem = port->ops && port_is_mem(port);
  pthread_mutex_lock(&sw->users_lock);
  sw->engine.ports[port->number] = NULL;
  if (is_mem) port_mem_interrupt(port);
  while (sw->users[port->number]) pthread_cond_wait(&sw->users_left, &sw->users_lock);
  pthread_mutex_unlock(&sw->users_lock);
  loop_ports_changed(sw);
  free_port(sw, port);
}

int switch_remove_port(softswitch_t *sw, uint32_t number) {
  if (number == sw->cpu_port) return -EPERM;
  switch_lock(sw);
  port_t *port = find_port(sw, number);
  if (port) take_out(sw, port);
  switch_unlock(sw);
  return port ? 0 : -ENOENT;
}

int switch_reopen_port(softswitch_t *sw, uint32_t number) {
  switch_lock(sw);
  port_t *port = find_port(sw, number);
  int error = !port ? -ENOENT : port->fd >= 0 ? -EALREADY : port_veth_reopen(port); // only veth ports go down
  if (!error) error = watch(sw, port->fd, port->serial << 16 | number);
  if (error && error != -EALREADY && port && port->fd >= 0) {
    close(port->fd);
    port->fd = -1;
  }
  switch_unlock(sw);
  return error;
}

int switch_udp_number(softswitch_t *sw, uint32_t number) {
  switch_lock(sw);
  const port_t *port = find_port(sw, number);
  int result = port ? port_udp_number(port) : -ENOENT;
  switch_unlock(sw);
  return result;
}

int switch_port_super_frames(softswitch_t *sw, uint32_t number) {
  switch_lock(sw);
  const port_t *port = find_port(sw, number);
  int bits = !port ? -ENOENT : port->ops->super_frames ? (int)port->ops->super_frames(port) : 0;
  switch_unlock(sw);
  return bits;
}

int switch_set_impairments(softswitch_t *sw, uint32_t number, int is_out, const impairments_t *settings) {
  switch_lock(sw);
  port_t *port = find_port(sw, number);
  if (port) {
    sw->batch.now_ns = switch_now_ns();
    impairments_set(is_out ? &port->out : &port->in, settings, number * 2u + (is_out ? 1u : 0u));
    if (sw->is_running) {
      loop_advance(sw, sw->batch.now_ns);
      loop_rearm(sw);
    }
  }
  switch_unlock(sw);
  return port ? 0 : -ENOENT;
}

uint32_t switch_statistics_count(void) { return STATISTICS_COUNT; }

const char *switch_statistic_name(uint32_t index) {
  return index < STATISTICS_COUNT ? port_statistic_names[index] : NULL;
}

int switch_port_statistics(softswitch_t *sw, uint32_t number, uint64_t *out) {
  switch_lock(sw);
  port_t *port = find_port(sw, number);
  if (port) {
    port_count_losses(port);
    memcpy(out, port->statistics, sizeof port->statistics);
  }
  switch_unlock(sw);
  return port ? 0 : -ENOENT;
}

static port_t *enter_mem(softswitch_t *sw, uint32_t number) {
  pthread_mutex_lock(&sw->users_lock);
  port_t *port = find_port(sw, number);
  if (port && !port_is_mem(port)) port = NULL;
  if (port) sw->users[number]++;
  pthread_mutex_unlock(&sw->users_lock);
  return port;
}

static void leave_mem(softswitch_t *sw, uint32_t number) {
  pthread_mutex_lock(&sw->users_lock);
  if (--sw->users[number] == 0) pthread_cond_broadcast(&sw->users_left);
  pthread_mutex_unlock(&sw->users_lock);
}

int switch_mem_send(softswitch_t *sw, uint32_t number, const uint8_t *frames, const int32_t *lengths, uint32_t count,
                    size_t stride) {
  port_t *port = enter_mem(sw, number);
  if (!port) return -ENOENT;
  int result = port_mem_send(port, frames, lengths, count, stride);
  leave_mem(sw, number);
  return result;
}

int switch_mem_receive(softswitch_t *sw, uint32_t number, uint8_t *frames, int32_t *lengths, uint32_t count,
                       size_t stride, int64_t timeout_ns) {
  port_t *port = enter_mem(sw, number);
  if (!port) return -ENOENT;
  int result = port_mem_receive(port, frames, lengths, count, stride, timeout_ns);
  leave_mem(sw, number);
  return result;
}

static void finish_passes(softswitch_t *sw) {
  path_run_again(&sw->engine, &sw->batch, PASSES_SYNCHRONOUS);
  path_drop_again(&sw->engine, &sw->batch);
}

int switch_process(softswitch_t *sw, uint32_t number, const uint8_t *frame, uint32_t bytes, int collect,
                   const uint8_t **out, size_t *out_bytes) {
  switch_lock(sw);
  port_t *port = find_port(sw, number);
  int result = bytes > FRAME_BYTES_MAX ? -EMSGSIZE : sw->is_running ? -EBUSY : port || !frame ? 0 : -ENOENT;
  if (result == 0) {
    sw->collector.bytes = 0;
    sw->batch.collector = collect ? &sw->collector : NULL;
    sw->batch.ignore_time = true;
    sw->batch.now_ns = switch_now_ns();
    if (frame) {
      path_receive(&sw->engine, &sw->batch, port, &(frame_t){(uint8_t *)frame, bytes});
      finish_passes(sw);
      loop_flush(sw);
    } else {
      loop_advance(sw, UINT64_MAX);
      finish_passes(sw);
      loop_flush(sw);
    }
    sw->batch.collector = NULL;
    sw->batch.ignore_time = false;
    *out = sw->collector.data;
    *out_bytes = sw->collector.bytes;
  }
  switch_unlock(sw);
  return result;
}

int switch_load(softswitch_t *sw, const pipeline_ops_t *ops) {
  int result = 0;
  switch_lock(sw);
  path_drop_again(&sw->engine, &sw->batch); // these packets keep fields of the old program
  if (ops) {
    result = replication_load(&sw->engine, ops);
  } else {
    replication_unload(&sw->engine);
  }
  switch_unlock(sw);
  return result;
}

int switch_start(softswitch_t *sw) {
  switch_lock(sw);
  int result = sw->is_running ? -EALREADY : 0;
  if (!result) {
    atomic_store(&sw->is_stopping, false);
    loop_rearm(sw); // for packets that the synchronous mode left in the impairments
    result = -pthread_create(&sw->thread, NULL, loop_run, sw);
    sw->is_running = result == 0;
  }
  switch_unlock(sw);
  return result;
}

int switch_stop(softswitch_t *sw) {
  switch_lock(sw);
  bool must_join = sw->is_running && !atomic_exchange(&sw->is_stopping, true);
  switch_unlock(sw);
  if (!must_join) return 0;
  int result = eventfd_write(sw->wake, 1) < 0 ? -errno : 0;
  pthread_join(sw->thread, NULL);
  switch_lock(sw);
  sw->is_running = false;
  switch_unlock(sw);
  return result;
}

int switch_is_running(softswitch_t *sw) {
  switch_lock(sw);
  int result = sw->is_running;
  switch_unlock(sw);
  return result;
}

softswitch_t *switch_create(uint32_t cpu_port, uint32_t drop_port, uint32_t priority_queues, uint32_t pool_packets) {
  softswitch_t *sw = calloc(1, sizeof *sw);
  if (!sw) return NULL;
  pthread_mutex_init(&sw->turn_lock, NULL);
  pthread_cond_init(&sw->turn_passed, NULL);
  pthread_mutex_init(&sw->users_lock, NULL);
  pthread_cond_init(&sw->users_left, NULL);
  replication_init(&sw->engine, drop_port, priority_queues);
  sw->engine.started_ns = switch_now_ns();
  sw->batch.pool.limit = pool_packets;
  sw->cpu_port = cpu_port;
  sw->armed_ns = UINT64_MAX;
  sw->epoll = epoll_create1(EPOLL_CLOEXEC);
  sw->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  sw->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  bool is_ready = sw->epoll >= 0 && sw->timer >= 0 && sw->wake >= 0 && watch(sw, sw->timer, PORTS_MAX) == 0 &&
                  watch(sw, sw->wake, PORTS_MAX + 1) == 0 && switch_add_mem_port(sw, cpu_port, NULL) == 0;
  if (is_ready) return sw;
  switch_destroy(sw);
  return NULL;
}

void switch_close(softswitch_t *sw) {
  switch_stop(sw);
  switch_lock(sw);
  path_drop_again(&sw->engine, &sw->batch);
  for (uint32_t number = 0; number < PORTS_MAX; number++) {
    if (sw->engine.ports[number]) take_out(sw, sw->engine.ports[number]);
  }
  replication_unload(&sw->engine);
  switch_unlock(sw);
}

void switch_destroy(softswitch_t *sw) {
  switch_close(sw);
  replication_destroy(&sw->engine);
  pool_destroy(&sw->batch.pool);
  free(sw->collector.data);
  if (sw->epoll >= 0) close(sw->epoll);
  if (sw->timer >= 0) close(sw->timer);
  if (sw->wake >= 0) close(sw->wake);
  pthread_cond_destroy(&sw->users_left);
  pthread_mutex_destroy(&sw->users_lock);
  pthread_cond_destroy(&sw->turn_passed);
  pthread_mutex_destroy(&sw->turn_lock);
  free(sw);
}
