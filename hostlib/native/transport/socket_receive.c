// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "socket_state.h"

#define BUSY_S 0.001 // longest wait while datagrams are kept for busy sockets

// Bytes of each datagram of a message: those that the kernel joined have one size, but for a shorter last one.
static uint32_t segment_bytes(struct msghdr *message, uint32_t bytes) {
  for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level != SOL_UDP || control->cmsg_type != UDP_GRO) continue;
    int size;
    memcpy(&size, CMSG_DATA(control), sizeof size);
    if (size > 0) return (uint32_t)size;
  }
  return bytes;
}

static void count_refused(socket_counters_t *counters, frame_check_t check) {
  switch (check) {
  case FRAME_GOOD: break;
  case FRAME_OTHER: counters->other_traffic++; break;
  case FRAME_LENGTH: counters->length++; break;
  case FRAME_CHECKSUM: counters->checksum++; break;
  }
}

// Point `rest` at the datagrams of a super-frame. Returns false if there are none.
static bool begin_packet(socket_transport_t *transport, const uint8_t *data, uint32_t bytes) {
  super_frame_t frame;
  frame_check_t check;
  if (transport->link.has_offload_header) {
    check = super_frame_read(&transport->frames, data, bytes, &frame);
  } else {
    check = frame_check(&transport->frames, data, bytes, false);
    frame = (super_frame_t){data + LAYERS_BYTES, transport->datagram_bytes, transport->datagram_bytes, false};
  }
  if (check != FRAME_GOOD) {
    count_refused(&transport->counters, check);
    return false;
  }
  if (frame.is_unfinished) transport->segments = transport->most_segments;
  transport->rest = frame.datagrams;
  transport->rest_bytes = frame.bytes;
  transport->part_bytes = frame.datagram_bytes;
  return true;
}

// Begin to cut the present message. Returns false if it has no datagrams, and counts it.
static bool begin_message(socket_transport_t *transport) {
  struct mmsghdr *message = &transport->messages[transport->message];
  const uint8_t *data = transport->in + (size_t)transport->message * MESSAGE_BYTES;
  uint32_t bytes = message->msg_len;
  if (bytes == 0 || message->msg_hdr.msg_flags & MSG_TRUNC) {
    transport->counters.length++;
    return false;
  }
  if (transport->carried == PACKETS) return begin_packet(transport, data, bytes);
  transport->rest = data;
  transport->rest_bytes = bytes;
  transport->part_bytes = segment_bytes(&message->msg_hdr, bytes);
  return true;
}

// The datagram in a part of a message, or NULL if it is not good.
static const uint8_t *checked(socket_transport_t *transport, const uint8_t *part, uint32_t bytes) {
  if (transport->carried == FRAMES_IN_DATAGRAMS) {
    frame_check_t check = frame_check(&transport->frames, part, bytes, false);
    count_refused(&transport->counters, check);
    return check == FRAME_GOOD ? part + LAYERS_BYTES : NULL;
  }
  if (bytes != transport->datagram_bytes) {
    transport->counters.length++;
    return NULL;
  }
  if (transport->num_sockets > 1 && socket_of(transport, part) != transport->message_sockets[transport->message]) {
    transport->counters.other_traffic++;
    return NULL;
  }
  return part;
}

// Cut the messages that are there. Returns how many datagrams came out.
static uint32_t cut(socket_transport_t *transport, const uint8_t **datagrams, uint32_t capacity) {
  uint32_t count = 0;
  while (count < capacity && transport->message < transport->num_messages) {
    if (transport->rest_bytes == 0 && !begin_message(transport)) {
      transport->message++;
      continue;
    }
    uint32_t bytes = transport->rest_bytes < transport->part_bytes ? transport->rest_bytes : transport->part_bytes;
    const uint8_t *datagram = checked(transport, transport->rest, bytes);
    if (datagram) datagrams[count++] = datagram;
    transport->rest += bytes;
    transport->rest_bytes -= bytes;
    if (transport->rest_bytes == 0) transport->message++;
  }
  return count;
}

// Fill messages from one socket. Returns how many came, at most `most`, or -errno.
static int receive_from(socket_transport_t *transport, uint32_t which, uint32_t most) {
  for (;;) {
    uint32_t first = transport->num_messages;
    int count = recvmmsg(transport->fds[which], transport->messages + first, most, MSG_DONTWAIT, NULL);
    if (count >= 0) {
      memset(transport->message_sockets + first, (int)which, (size_t)count);
      transport->num_messages += (uint32_t)count;
      if (count > 0) transport->has_answered[which] = true;
      return count;
    }
    if (socket_is_busy(errno)) return 0;
    if (!socket_is_soft(errno)) return -errno;
    socket_count_soft(transport, errno);
  }
}

// Returns how many messages came, at most `most`, or -errno.
static int receive_messages(socket_transport_t *transport, uint32_t most) {
  // The kernel has written to those that it filled.
  for (uint32_t i = 0; i < transport->num_messages; i++) {
    transport->messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    transport->messages[i].msg_hdr.msg_flags = 0;
  }
  transport->num_messages = transport->message = transport->rest_bytes = 0;
  if (most > MAX_MESSAGES) most = MAX_MESSAGES;
  // Another socket is first each time, as the first may fill all messages.
  for (uint32_t i = 0; i < transport->num_sockets && transport->num_messages < most; i++) {
    uint32_t which = (transport->first_socket + i) % transport->num_sockets;
    int count = receive_from(transport, which, most - transport->num_messages);
    if (count < 0) return count;
  }
  transport->first_socket = (transport->first_socket + 1) % transport->num_sockets;
  return (int)transport->num_messages;
}

// Wait to be woken, and for something to receive if that is awaited.
static void wait_ready(const socket_transport_t *transport, bool is_readable_awaited, double wait_s) {
  struct pollfd ready[1 + MAX_SOCKETS] = {{.fd = transport->wake_fd, .events = POLLIN}};
  for (uint32_t i = 0; i < transport->num_sockets; i++)
    ready[1 + i] = (struct pollfd){.fd = transport->fds[i], .events = POLLIN};
  struct timespec limit = {.tv_sec = (time_t)wait_s};
  limit.tv_nsec = (long)(1e9 * (wait_s - floor(wait_s)));
  if (ppoll(ready, is_readable_awaited ? 1 + transport->num_sockets : 1, &limit, NULL) > 0 && ready[0].revents) {
    uint64_t times;
    ssize_t bytes = read(transport->wake_fd, &times, sizeof times);
    (void)bytes; // nothing to read: another call was faster
  }
}

void socket_pause(transport_t *base, double pause_s) {
  wait_ready((socket_transport_t *)base, false, pause_s);
}

int socket_receive(transport_t *base, const uint8_t **datagrams, uint32_t capacity, double wait_s) {
  socket_transport_t *transport = (socket_transport_t *)base;
  int error = socket_send_kept(transport);
  if (error) return error;
  if (transport->num_kept) wait_s = fmin(wait_s, BUSY_S);
  uint32_t count = cut(transport, datagrams, capacity);
  if (count) return (int)count;
  int received = receive_messages(transport, capacity);
  if (received == 0 && wait_s > 0) {
    wait_ready(transport, true, wait_s);
    received = receive_messages(transport, capacity);
  }
  return received < 0 ? received : (int)cut(transport, datagrams, capacity);
}
