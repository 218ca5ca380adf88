// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "random.h"

#define MOST_SEGMENTS 64u
#define MESSAGE_BYTES 60000u

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

static void queue_init(queue_t *queue) { *queue = (queue_t){0, malloc(MOST_QUEUED * sizeof(packet_t))}; }

void queue_add(queue_t *queue, const packet_t *packet) {
  if (queue->count == MOST_QUEUED) return;
  packet_t *at = &queue->packets[queue->count++];
  at->bytes = packet->bytes;
  memcpy(at->data, packet->data, packet->bytes);
}

static void queue_swap(queue_t *queue, uint32_t i, uint32_t j) {
  packet_t packet = queue->packets[i];
  queue->packets[i] = queue->packets[j];
  queue->packets[j] = packet;
}

static packet_t queue_take_any(queue_t *queue) {
  queue_swap(queue, draw(queue->count), queue->count - 1);
  return queue->packets[--queue->count];
}

void port_init(port_t *port, int fd, const weather_t *weather) {
  *port = (port_t){.fd = fd, .weather = *weather};
  queue_init(&port->out);
  queue_init(&port->held_in);
  queue_init(&port->held_out);
}

void port_close(port_t *port) {
  free(port->out.packets);
  free(port->held_in.packets);
  free(port->held_out.packets);
}

// One direction of the link: a packet arrives never, once or twice, now or later.
static void carry(const port_t *port, const packet_t *packet, queue_t *now, queue_t *later) {
  const weather_t *weather = &port->weather;
  if (happens(weather->loss)) return;
  for (uint32_t copies = 1 + happens(weather->duplication); copies > 0; copies--) {
    queue_add(happens(weather->delay) ? later : now, packet);
  }
}

static void release(queue_t *held, queue_t *to) {
  while (held->count && happens(300)) {
    packet_t packet = queue_take_any(held);
    queue_add(to, &packet);
  }
}

void port_receive(port_t *port, queue_t *in) {
  packet_t packet;
  ssize_t bytes;
  while ((bytes = recv(port->fd, packet.data, MOST_BYTES, MSG_DONTWAIT)) >= 0) {
    packet.bytes = (uint32_t)bytes;
    carry(port, &packet, in, &port->held_in);
  }
  release(&port->held_in, in);
}

void port_reply(port_t *port, const packet_t *packet) { carry(port, packet, &port->out, &port->held_out); }

// Send one message: datagrams of `segment` bytes, but for a shorter last one.
static void send_message(port_t *port, uint8_t *data, uint32_t bytes, uint32_t segment) {
  struct iovec vector = {data, bytes};
  uint8_t control[CMSG_SPACE(sizeof(uint16_t))] __attribute__((aligned(8))) = {0};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  if (segment < bytes) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    memcpy(CMSG_DATA(header), &(uint16_t){(uint16_t)segment}, sizeof(uint16_t));
    port->num_joined++;
  }
  if (sendmsg(port->fd, &message, 0) != (ssize_t)bytes) {
    perror("sendmsg");
    abort();
  }
  port->num_sent += bytes ? (bytes + segment - 1) / segment : 1;
}

// Compose one message from the packets at `first`, and return how many are in it.
static uint32_t send_some(port_t *port, uint32_t first) {
  static uint8_t data[MESSAGE_BYTES];
  const packet_t *packets = port->out.packets;
  uint32_t segment = packets[first].bytes, most = between(1, MOST_SEGMENTS), count = 0, bytes = 0;
  while (first + count < port->out.count && count < most) {
    const packet_t *packet = &packets[first + count];
    if (packet->bytes > segment || (count && packet->bytes == 0) || bytes + packet->bytes > MESSAGE_BYTES) break;
    memcpy(data + bytes, packet->data, packet->bytes);
    bytes += packet->bytes;
    count++;
    if (packet->bytes < segment || segment == 0) break;
  }
  if (bytes > 1 && happens(port->weather.truncation)) bytes -= draw(bytes);
  send_message(port, data, bytes, segment);
  return count;
}

uint32_t port_flush(port_t *port) {
  uint64_t before = port->num_sent;
  release(&port->held_out, &port->out);
  for (uint32_t i = 0; i < port->out.count; i++) {
    if (happens(port->weather.disorder)) queue_swap(&port->out, i, draw(port->out.count));
  }
  for (uint32_t first = 0; first < port->out.count;) first += send_some(port, first);
  port->out.count = 0;
  return (uint32_t)(port->num_sent - before);
}
