// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

double now_s;
uint64_t lots;
static event_t *events; // a heap
static size_t num_events, events_room;
static uint64_t num_orders;

_Noreturn void fail(const char *what) {
  fprintf(stderr, "loss simulation: %s at %.6f s\n", what, now_s);
  exit(1);
}

void *room(void *old, size_t bytes) {
  void *found = realloc(old, bytes);
  if (!found) fail("no memory");
  return found;
}

// splitmix64
double draw(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool is_before(const event_t *a, const event_t *b) {
  return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

void clock_push(event_t event) {
  if (num_events == events_room) events = room(events, (events_room = 2 * events_room + 1024) * sizeof *events);
  event.order = num_orders++;
  size_t at = num_events++;
  for (; at && is_before(&event, &events[(at - 1) / 2]); at = (at - 1) / 2) events[at] = events[(at - 1) / 2];
  events[at] = event;
}

event_t clock_pop(void) {
  if (!num_events) fail("nothing is pending");
  event_t top = events[0], last = events[--num_events];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < num_events; at = child) {
    if (child + 1 < num_events && is_before(&events[child + 1], &events[child])) child++;
    if (!is_before(&events[child], &last)) break;
    events[at] = events[child];
  }
  events[at] = last;
  now_s = top.at_s;
  return top;
}
