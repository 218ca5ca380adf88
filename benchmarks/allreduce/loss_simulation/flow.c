// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "flow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "network.h"
#include "settings.h"

#define INITIAL_PACKETS 10.0
#define DECREASE 0.7
#define INCREASE 0.53
#define LATER_PACKETS 3u
#define TIMEOUT_S 0.2
#define ROOM 65536u // most packets under way

// Packets have numbers in the order in which they are sent, in which links keep them.
typedef struct {
  double window, threshold;
  uint64_t next, oldest;   // numbers: of the next packet, and of the first one that may be under way
  uint64_t deaf_until;     // what is lost or marked of those before shows nothing new
  bool is_over[ROOM];      // by number: acknowledged or lost
  uint32_t under_way;
  double timer_s;          // when the timer runs out; infinite: it does not
  uint64_t delivered;
} flow_t;

static flow_t flows[MAX_FLOWS][2];

static uint64_t number_of(const event_t *event) {
  uint64_t number;
  memcpy(&number, event->datagram, sizeof number);
  return number;
}

static event_t event_of(const flow_t *flow, kind_t kind, uint64_t number) {
  uint32_t index = (uint32_t)(flow - flows[0]);
  event_t event = {.at_s = now_s, .kind = kind, .job = index / 2, .worker = index % 2};
  memcpy(event.datagram, &number, sizeof number);
  return event;
}

void flows_init(void) {
  for (uint32_t i = 0; i < settings.num_flows; i++) {
    for (uint32_t is_down = 0; is_down < 2; is_down++) {
      flow_t *flow = &flows[i][is_down];
      flow->window = INITIAL_PACKETS;
      flow->threshold = flow->timer_s = INFINITY;
      event_t event = event_of(flow, FLOW_BEGIN, 0);
      event.at_s = settings.flow_s + 0.001 * i;
      clock_push(event);
    }
  }
}

static void set_timer(flow_t *flow) {
  flow->timer_s = now_s + TIMEOUT_S;
  event_t event = event_of(flow, FLOW_TIMER, 0);
  event.at_s = flow->timer_s;
  clock_push(event);
}

static void send(flow_t *flow) {
  while (flow->under_way < (uint32_t)flow->window && flow->next - flow->oldest < ROOM) {
    flow->is_over[flow->next % ROOM] = false;
    network_send_beside(event_of(flow, FLOW_ARRIVED, flow->next++));
    flow->under_way++;
  }
}

static void decrease(flow_t *flow, uint64_t number) {
  if (number < flow->deaf_until) return;
  flow->window = flow->threshold = fmax(1, flow->window * DECREASE);
  flow->deaf_until = flow->next;
}

static void close_number(flow_t *flow, uint64_t number) {
  flow->is_over[number % ROOM] = true;
  flow->under_way--;
}

static void acknowledge(flow_t *flow, uint64_t number, bool is_marked) {
  if (number < flow->oldest || flow->is_over[number % ROOM]) return; // the timer has given it up
  close_number(flow, number);
  if (flow->window < flow->threshold) flow->window += 1;
  else flow->window += INCREASE / flow->window;
  if (is_marked) decrease(flow, number);
  for (uint64_t each = flow->oldest; each + LATER_PACKETS <= number; each++) {
    if (flow->is_over[each % ROOM]) continue;
    close_number(flow, each);
    decrease(flow, each);
  }
  while (flow->oldest < flow->next && flow->is_over[flow->oldest % ROOM]) flow->oldest++;
  set_timer(flow);
  send(flow);
}

static void expire(flow_t *flow) {
  if (now_s < flow->timer_s) return; // something came since
  flow->threshold = fmax(2, flow->window / 2);
  flow->window = 1;
  flow->oldest = flow->deaf_until = flow->next;
  flow->under_way = 0;
  set_timer(flow);
  send(flow);
}

void flows_step(const event_t *event) {
  flow_t *flow = &flows[event->job][event->worker];
  event_t back = *event;
  switch (event->kind) {
  case FLOW_BEGIN:
    set_timer(flow);
    send(flow);
    break;
  case FLOW_ARRIVED:
    flow->delivered++;
    back.kind = FLOW_ACKNOWLEDGED;
    back.at_s = now_s + settings.delay_s;
    clock_push(back);
    break;
  case FLOW_ACKNOWLEDGED: acknowledge(flow, number_of(event), event->is_marked); break;
  case FLOW_TIMER: expire(flow); break;
  default: fail("this happens to no flow");
  }
}

void flows_report(void) {
  double seconds = WARM_UP_S + settings.seconds - settings.flow_s;
  for (uint32_t i = 0; i < settings.num_flows; i++) {
    printf("flow %" PRIu32 " %.3f %.3f\n", i, (double)flows[i][0].delivered / seconds, (double)flows[i][1].delivered / seconds);
  }
}
