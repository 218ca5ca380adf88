// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The data-plane thread: waits for frames, timers and wake-ups; one lock and one time stamp per batch.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "switch_state.h"

#define EVENTS_MAX 64
#define NO_EVENT UINT64_MAX
#define TIMER_EVENT PORTS_MAX

void loop_ports_changed(softswitch_t *sw) {
  sw->active_count = 0;
  for (uint32_t number = 0; number < PORTS_MAX; number++) {
    if (sw->engine.ports[number]) sw->active[sw->active_count++] = sw->engine.ports[number];
  }
}

void loop_flush(softswitch_t *sw) {
  for (uint32_t i = 0; i < sw->active_count; i++) port_flush(sw->active[i], &sw->batch);
}

void loop_advance(softswitch_t *sw, uint64_t now_ns) {
  // First in, then out, so that packets that are released here can also leave here.
  for (uint32_t i = 0; i < sw->active_count; i++) {
    port_t *port = sw->active[i];
    if (impairments_deadline(&port->in) <= now_ns) path_advance_in(&sw->engine, &sw->batch, port, now_ns);
  }
  for (uint32_t i = 0; i < sw->active_count; i++) {
    port_t *port = sw->active[i];
    if (impairments_deadline(&port->out) <= now_ns) port_advance_out(port, &sw->batch, now_ns);
  }
  loop_flush(sw);
}

void loop_rearm(softswitch_t *sw) {
  uint64_t deadline = UINT64_MAX;
  for (uint32_t i = 0; i < sw->active_count; i++) {
    const port_t *port = sw->active[i];
    uint64_t in = impairments_deadline(&port->in), out = impairments_deadline(&port->out);
    if (in < deadline) deadline = in;
    if (out < deadline) deadline = out;
  }
  if (deadline == sw->armed_ns) return;
  sw->armed_ns = deadline;
  struct itimerspec when = {0};
  if (deadline != UINT64_MAX) {
    uint64_t at = deadline ? deadline : 1; // 0 would disarm
    when.it_value.tv_sec = (time_t)(at / 1000000000u);
    when.it_value.tv_nsec = (long)(at % 1000000000u);
  }
  timerfd_settime(sw->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void receive_batch(softswitch_t *sw, port_t *port) {
  frame_t frame;
  port->ops->receive(port);
  while (port->ops->next(port, &frame)) path_receive(&sw->engine, &sw->batch, port, &frame);
  port->ops->release(port);
}

// Handle one event under one lock. data: the port's number in the low 16 bits, its serial above, so that a port that was
// removed meanwhile is not found.
// Returns whether packets wait for another pass.
static bool handle_event(softswitch_t *sw, uint64_t data) {
  switch_lock(sw);
  sw->batch.now_ns = switch_now_ns();
  uint32_t number = (uint32_t)(data & 0xffff);
  port_t *port = number < PORTS_MAX ? sw->engine.ports[number] : NULL;
  if (port && port->fd >= 0 && port->serial == data >> 16) receive_batch(sw, port);
  path_run_again(&sw->engine, &sw->batch, PASSES_PER_BATCH);
  bool waits = sw->engine.again.count != 0;
  // A timer that has fired is always set again: this core's clock may be slightly behind the clock that fired it.
  if (data == TIMER_EVENT || sw->armed_ns <= sw->batch.now_ns) {
    sw->armed_ns = UINT64_MAX - 1;
    loop_advance(sw, sw->batch.now_ns);
  } else {
    loop_flush(sw);
  }
  loop_rearm(sw);
  switch_unlock(sw);
  return waits;
}

void *loop_run(void *argument) {
  softswitch_t *sw = argument;
  struct epoll_event events[EVENTS_MAX];
  bool waits = false;
  while (!atomic_load(&sw->is_stopping)) {
    int count = epoll_wait(sw->epoll, events, EVENTS_MAX, waits ? 0 : -1);
    if (count < 0 && errno != EINTR) break;
    if (waits) waits = handle_event(sw, NO_EVENT);
    for (int i = 0; i < count; i++) {
      uint64_t expirations;
      if (events[i].data.u64 == TIMER_EVENT && read(sw->timer, &expirations, sizeof expirations) < 0) continue;
      if (events[i].data.u64 == PORTS_MAX + 1 && read(sw->wake, &expirations, sizeof expirations) < 0) continue;
      waits = handle_event(sw, events[i].data.u64);
    }
  }
  return NULL;
}
