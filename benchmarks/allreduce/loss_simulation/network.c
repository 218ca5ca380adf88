// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <math.h>
#include <string.h>

#include "settings.h"

#define HOSTS_PER_LEAF 2u
#define MAX_LEAVES (MAX_WORKERS / HOSTS_PER_LEAF)

typedef struct {
  double packet_s, free_s;
  uint64_t random;
  double loss;
  bool is_burst;
  double change_s;
  uint64_t dropped;
} link_t;

static link_t links[MAX_WORKERS][2], uplinks[MAX_LEAVES][2];

void network_init(void) {
  for (uint32_t i = 0; i < settings.num_workers; i++) {
    for (uint32_t j = 0; j < 2; j++) {
      uplinks[i / HOSTS_PER_LEAF][j].packet_s = settings.uplink_packet_s;
      links[i][j] = (link_t){.packet_s = settings.packet_s, .random = settings.seed * 1000003 + 2 * i + j, .loss = settings.loss[j]};
    }
  }
}

static bool is_lost(link_t *link) {
  if (now_s < WARM_UP_S) return false;
  if (settings.burst_loss > 0) {
    while (link->change_s < now_s) {
      link->is_burst = !link->is_burst;
      double mean_s = link->is_burst ? settings.burst_on_s : settings.burst_off_s;
      link->change_s = fmax(link->change_s, WARM_UP_S) - mean_s * log(1 - draw(&link->random));
    }
    if (link->is_burst && draw(&link->random) < settings.burst_loss) return true;
  }
  return link->loss > 0 && draw(&link->random) < link->loss;
}

static void transmit(link_t *link, event_t event) {
  double start_s = fmax(now_s, link->free_s), waiting = (start_s - now_s) / link->packet_s;
  if (waiting > settings.queue_packets) {
    link->dropped++;
    return;
  }
  link->free_s = start_s + link->packet_s;
  if (is_lost(link)) return;
  event.at_s = link->free_s + settings.delay_s;
  event.is_marked = event.is_marked || waiting > settings.mark_packets;
  clock_push(event);
}

uint32_t root_of(const uint8_t *datagram) { return load16(datagram + TREE_AT) - 1u; }

// The links between two hosts are those of the hosts, and those of leaves if the hosts are on two.
void network_forward(event_t event) {
  uint32_t root = root_of(event.datagram), is_down = event.next == AT_WORKER;
  uint32_t from = is_down ? root : event.worker, to = is_down ? event.worker : root;
  link_t *last_first[] = {&links[to][1], &uplinks[to / HOSTS_PER_LEAF][1], &uplinks[from / HOSTS_PER_LEAF][0], &links[from][0]};
  bool has_uplinks = settings.uplink_packet_s > 0 && from / HOSTS_PER_LEAF != to / HOSTS_PER_LEAF;
  if (event.kind != AT_LINK) event.links_left = 4;
  link_t *link = last_first[--event.links_left];
  if (!has_uplinks && event.links_left == 3) event.links_left = 1;
  event.kind = event.links_left ? AT_LINK : event.next;
  transmit(link, event);
}

void network_send(kind_t kind, uint32_t job, uint32_t worker, const uint8_t *datagram) {
  event_t event = {.at_s = now_s, .kind = kind, .next = kind, .job = job, .worker = worker};
  memcpy(event.datagram, datagram, PACKET_BYTES);
  if (!settings.is_transposed) transmit(&links[worker][kind == AT_WORKER], event);
  else if (root_of(datagram) == worker) clock_push(event);
  else network_forward(event);
}

void network_send_beside(event_t event) { transmit(&links[0][event.worker], event); }

uint64_t network_dropped(void) {
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < settings.num_workers; i++) dropped += links[i][0].dropped + links[i][1].dropped;
  for (uint32_t i = 0; i < MAX_LEAVES; i++) dropped += uplinks[i][0].dropped + uplinks[i][1].dropped;
  return dropped;
}
