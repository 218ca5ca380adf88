// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The switch's state, shared by switch.c (start, stop and ports), loop.c (the thread) and control.c (tables and arrays).
#ifndef SOFTSWITCH_SWITCH_STATE_H
#define SOFTSWITCH_SWITCH_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "packet_path.h"

struct softswitch {
  // A fair lock: first come, first served, so that a busy data plane cannot starve control operations. Its holder may take
  // it again, so that several operations can be atomic together.
  pthread_mutex_t turn_lock;
  pthread_cond_t turn_passed;
  uint64_t next_turn, turn;
  pthread_t holder; // while depth is not 0
  uint32_t depth;

  // Finds mem ports for user threads, which must not wait for the data plane. Taken inside the fair lock or alone.
  pthread_mutex_t users_lock;
  pthread_cond_t users_left;
  uint32_t users[PORTS_MAX];

  replication_t engine;
  port_t *active[PORTS_MAX]; // the ports that exist, by number; for loop.c
  uint32_t active_count;
  batch_t batch;
  collector_t collector;
  uint32_t cpu_port;
  uint64_t next_serial;

  int epoll, timer, wake;
  uint64_t armed_ns; // deadline that the timer is set to; UINT64_MAX: none
  bool is_running;
  atomic_bool is_stopping;
  pthread_t thread;
};

// Also called from Python, to make several control operations atomic together.
void switch_lock(softswitch_t *);
void switch_unlock(softswitch_t *);
uint64_t switch_now_ns(void);

// loop.c; the caller holds the lock.
void loop_ports_changed(softswitch_t *); // call it after each change of engine.ports
void loop_advance(softswitch_t *, uint64_t now_ns); // transmit packets that the impairments release by now_ns
void loop_flush(softswitch_t *);
void loop_rearm(softswitch_t *); // timer to the next deadline
void *loop_run(void *argument);  // the thread; called without the lock

#endif
