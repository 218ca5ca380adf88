// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "slots/header.h"
#include "random.h"

#define MOST_SEGMENTS 64u
#define MOST_PAYLOAD 60000u
#define MESSAGE_BYTES 65536u
#define OFFLOAD_BYTES (uint32_t)sizeof(struct virtio_net_hdr)
#define HEAD_BYTES (OFFLOAD_BYTES + LAYERS_BYTES)
#define IP_LENGTH_AT 16u
#define ADDRESSES_AT 26u
#define UDP_AT 34u
#define UDP_LENGTH_AT 38u
#define CHECKSUM_AT 40u
#define PROTOCOL_UDP 17u

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

// The sanitizer marks each byte of a new array, and of one that is freed: later schedules use these again.
static packet_t *spare[MOST_SPARE];
static uint32_t num_spare;

void queue_init(queue_t *queue) {
  *queue = (queue_t){0, num_spare > 0 ? spare[--num_spare] : malloc(MOST_QUEUED * sizeof(packet_t))};
}

void queue_close(queue_t *queue) {
  if (num_spare < MOST_SPARE) {
    spare[num_spare++] = queue->packets;
  } else {
    free(queue->packets);
  }
}

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

void port_init(port_t *port, int fd, messages_t messages, const frames_t *frames, const weather_t *weather) {
  *port = (port_t){.fd = fd, .messages = messages, .frames = *frames, .weather = *weather};
  queue_init(&port->out);
  queue_init(&port->held_in);
  queue_init(&port->held_out);
}

void port_close(port_t *port) {
  queue_close(&port->out);
  queue_close(&port->held_in);
  queue_close(&port->held_out);
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

// One's complement sum of the addresses, `bytes` from there on, and the rest of the pseudo header.
static uint16_t udp_sum(const uint8_t *frame, uint32_t bytes, uint32_t udp_bytes) {
  uint32_t sum = PROTOCOL_UDP + udp_bytes;
  for (uint32_t i = ADDRESSES_AT; i < ADDRESSES_AT + bytes; i++) sum += (uint32_t)frame[i] << (i % 2 ? 0 : 8);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)sum;
}

bool has_good_checksum(const uint8_t *frame, uint32_t bytes) {
  return load16(frame + CHECKSUM_AT) == 0 || udp_sum(frame, bytes - ADDRESSES_AT, bytes - UDP_AT) == 0xffff;
}

// Cut a message of a worker with super-frames, as the kernel would.
static void receive_super_frame(port_t *port, const uint8_t *message, uint32_t bytes, queue_t *in) {
  static packet_t packet;
  struct virtio_net_hdr offload;
  memcpy(&offload, message, OFFLOAD_BYTES);
  const uint8_t *frame = message + OFFLOAD_BYTES;
  uint32_t frame_size = bytes - OFFLOAD_BYTES, payload = frame_size - LAYERS_BYTES, part = port->frames.datagram_bytes;
  bool is_joined = offload.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
  bool is_unfinished = offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
  bool is_summed = is_unfinished ? udp_sum(frame, 8, frame_size - UDP_AT) == load16(frame + CHECKSUM_AT)
                                 : has_good_checksum(frame, frame_size);
  bool is_good = is_summed && payload && payload % part == 0 && (is_joined ? offload.gso_size == part : payload == part) &&
                 load16(frame + IP_LENGTH_AT) == frame_size - 14 && load16(frame + UDP_LENGTH_AT) == frame_size - UDP_AT;
  port->has_bad_frame |= !is_good;
  for (uint32_t at = 0; is_good && at < payload; at += part) {
    packet.bytes = part;
    memcpy(packet.data, frame + LAYERS_BYTES + at, part);
    carry(port, &packet, in, &port->held_in);
  }
}

void port_receive(port_t *port, queue_t *in) {
  static uint8_t message[MESSAGE_BYTES];
  static packet_t packet;
  ssize_t bytes;
  while ((bytes = recv(port->fd, message, sizeof message, MSG_DONTWAIT)) >= 0) {
    packet.bytes = (uint32_t)bytes;
    if (port->messages == SUPER_FRAMES && packet.bytes >= HEAD_BYTES) {
      receive_super_frame(port, message, packet.bytes, in);
    } else if (packet.bytes <= MOST_BYTES) {
      memcpy(packet.data, message, packet.bytes);
      carry(port, &packet, in, &port->held_in);
    } else {
      port->has_bad_frame = true;
    }
  }
  release(&port->held_in, in);
}

void port_reply(port_t *port, const packet_t *packet) { carry(port, packet, &port->out, &port->held_out); }

static void send_bytes(port_t *port, const struct msghdr *message, size_t bytes) {
  if (sendmsg(port->fd, message, 0) == (ssize_t)bytes) return;
  perror("sendmsg");
  abort();
}

// Let the kernel cut and join datagrams of `segment` bytes, the last of which may be shorter.
static void send_joined(port_t *port, uint8_t *data, uint32_t bytes, uint32_t segment) {
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
  }
  send_bytes(port, &message, bytes);
}

// The checksum is there, or was verified, or is left to others.
static void finish_frame(uint8_t *frame, uint32_t bytes, struct virtio_net_hdr *offload) {
  static const uint8_t flags[] = {0, VIRTIO_NET_HDR_F_DATA_VALID, VIRTIO_NET_HDR_F_NEEDS_CSUM};
  store16(frame + IP_LENGTH_AT, (uint16_t)(bytes - 14));
  store16(frame + UDP_LENGTH_AT, (uint16_t)(bytes - UDP_AT));
  offload->flags = flags[draw(3)];
  if (offload->flags) return;
  uint16_t sum = (uint16_t)~udp_sum(frame, bytes - ADDRESSES_AT, bytes - UDP_AT);
  store16(frame + CHECKSUM_AT, sum ? sum : 0xffff);
}

// Returns whether the head is as it should be.
static bool send_super_frame(port_t *port, const uint8_t *data, uint32_t bytes, uint32_t segment) {
  static uint8_t message[MESSAGE_BYTES];
  static packet_t head, other;
  struct virtio_net_hdr offload = {0};
  uint8_t *frame = message + OFFLOAD_BYTES;
  memcpy(frame, port->frames.layers, LAYERS_BYTES);
  memcpy(frame + LAYERS_BYTES, data, bytes);
  if (segment < bytes) {
    offload.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
    offload.gso_size = (uint16_t)segment;
  }
  finish_frame(frame, LAYERS_BYTES + bytes, &offload);
  memcpy(message, &offload, OFFLOAD_BYTES);
  bool is_bad = happens(port->weather.bad_heads);
  if (is_bad) {
    head.bytes = other.bytes = HEAD_BYTES;
    memcpy(head.data, message, HEAD_BYTES);
    memcpy(other.data, message, HEAD_BYTES);
    damage(&head, 0, &other);
    memcpy(message, head.data, HEAD_BYTES);
  }
  uint32_t all = is_bad && head.bytes < HEAD_BYTES ? head.bytes : HEAD_BYTES + bytes;
  struct iovec vector = {message, all};
  send_bytes(port, &(struct msghdr){.msg_iov = &vector, .msg_iovlen = 1}, all);
  return !is_bad;
}

// Send one message: datagrams of `segment` bytes, but for a shorter last one.
static void send_message(port_t *port, uint8_t *data, uint32_t bytes, uint32_t segment) {
  bool is_good = true;
  if (port->messages == SUPER_FRAMES) is_good = send_super_frame(port, data, bytes, segment);
  else send_joined(port, data, bytes, segment);
  uint32_t count = bytes ? (bytes + segment - 1) / segment : 1;
  port->num_joined += count > 1;
  // With another size of segments, at most each byte is a datagram.
  port->least_sent += is_good ? count : 1;
  port->most_sent += is_good ? count : 1 + bytes;
}

// Compose one message from the packets at `first`, and return how many are in it.
static uint32_t send_some(port_t *port, uint32_t first) {
  static uint8_t data[MOST_PAYLOAD];
  const packet_t *packets = port->out.packets;
  uint32_t segment = packets[first].bytes, most = port->messages == SINGLE ? 1 : between(1, MOST_SEGMENTS);
  uint32_t count = 0, bytes = 0;
  while (first + count < port->out.count && count < most) {
    const packet_t *packet = &packets[first + count];
    if (packet->bytes > segment || (count && packet->bytes == 0) || bytes + packet->bytes > MOST_PAYLOAD) break;
    memcpy(data + bytes, packet->data, packet->bytes);
    bytes += packet->bytes;
    count++;
    if (packet->bytes < segment || segment == 0) break;
  }
  if (bytes > 1 && happens(port->weather.truncation)) bytes -= draw(bytes);
  send_message(port, data, bytes, segment);
  return count;
}

bool port_flush(port_t *port) {
  release(&port->held_out, &port->out);
  bool is_used = port->out.count > 0;
  for (uint32_t i = 0; i < port->out.count; i++) {
    if (happens(port->weather.disorder)) queue_swap(&port->out, i, draw(port->out.count));
  }
  for (uint32_t first = 0; first < port->out.count;) first += send_some(port, first);
  port->out.count = 0;
  return is_used;
}
