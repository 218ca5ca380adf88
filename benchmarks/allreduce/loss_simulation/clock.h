// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Simulated time, what is going to happen, and lots.
#ifndef SWITCHFOLD_SIMULATED_CLOCK_H
#define SWITCHFOLD_SIMULATED_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slots/header.h"

#define VALUES 1u // of a packet: the values cost no simulated time
#define PACKET_BYTES (HEADER_BYTES + VALUE_BYTES * VALUES)

typedef enum {
  AT_LINK, AT_SWITCH, AT_WORKER, WAKE, BEGIN, BEGIN_LATE,
  FLOW_BEGIN, FLOW_ARRIVED, FLOW_ACKNOWLEDGED, FLOW_TIMER,
} kind_t;

typedef struct {
  double at_s;
  uint64_t order;
  kind_t kind, next;   // `next`: what it is behind the last link
  uint32_t links_left; // that it crosses then
  uint32_t job, worker;
  bool is_marked;
  uint8_t datagram[PACKET_BYTES];
} event_t;

extern double now_s;

// What is due at the same time happens in the order of the calls.
void clock_push(event_t);
// Take what happens next, and let time pass until then.
event_t clock_pop(void);

double draw(uint64_t *state); // a number from 0 to 1, and the lot after it

extern uint64_t lots; // of workers that begin late or sleep

_Noreturn void fail(const char *what);
void *room(void *old, size_t bytes); // as realloc, or fail

#endif
