// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "socket_transport.h"

#include <errno.h>
#include <linux/udp.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#define MAX_DATAGRAMS 256u    // in one call
#define MAX_MESSAGES 32u      // received in one call
#define MESSAGE_BYTES 65536u  // of a joined message
#define MAX_PAYLOAD 65507u    // of a message that the kernel cuts
#define MAX_SEGMENTS 64u      // in one message: the kernel's own limit
#define SEND_WAIT_MS 20       // how long a send waits for room before it gives the rest back
#define SOFT_ERROR_LIMIT 3u   // the first was left by an earlier packet; the next are this batch's own
#define CONTROL_BYTES CMSG_SPACE(sizeof(int))

struct socket_transport {
  transport_t base;
  int fd, wake_fd;
  uint32_t datagram_bytes, packet_bytes; // the latter with the frame's layers
  uint32_t segments;                     // datagrams in one message that is sent; 1: the kernel does not cut
  bool joins;
  bool has_frames;
  frames_t frames;
  socket_counters_t counters;
  uint8_t *out; // MAX_DATAGRAMS frames to send, or NULL
  // Messages received last, and how far they were cut.
  uint8_t *in;
  struct mmsghdr messages[MAX_MESSAGES];
  struct iovec vectors[MAX_MESSAGES];
  uint8_t control[MAX_MESSAGES][CONTROL_BYTES] __attribute__((aligned(8)));
  uint32_t num_messages, message, offset;
};

static bool is_busy(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

// What the kernel makes of ICMP messages about a connected socket, and of a link that is down. Each fails one call, and
// anybody who knows or guesses the ports can forge the former; the retransmission timer deals with them.
static bool is_soft(int error) {
  switch (error) {
  case ECONNREFUSED:
  case EHOSTDOWN:
  case EHOSTUNREACH:
  case EMSGSIZE:
  case ENETUNREACH:
  case ENONET:
  case ENOPROTOOPT:
  case EOPNOTSUPP:
  case EPROTO:
  case ENETDOWN:
  case EINTR: return true;
  default: return false;
  }
}

static void count_soft(socket_transport_t *transport, int error) {
  transport->counters.network_error++;
  transport->counters.path_mtu_ignored += error == EMSGSIZE;
}

static void stop_cutting(socket_transport_t *transport) {
  int none = 0;
  setsockopt(transport->fd, SOL_UDP, UDP_SEGMENT, &none, sizeof none);
  transport->segments = 1;
}

// One call of the kernel. Returns how many packets it took, or -errno.
static int send_some(socket_transport_t *transport, uint8_t *const *packets, uint32_t count) {
  struct mmsghdr messages[MAX_DATAGRAMS];
  struct iovec vectors[MAX_DATAGRAMS];
  uint32_t num_messages = 0;
  for (uint32_t i = 0; i < count; i++) {
    vectors[i] = (struct iovec){packets[i], transport->packet_bytes};
    if (i % transport->segments == 0) {
      messages[num_messages++] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i]}};
    }
    messages[num_messages - 1].msg_hdr.msg_iovlen++;
  }
  int sent = sendmmsg(transport->fd, messages, num_messages, MSG_DONTWAIT);
  if (sent < 0) return -errno;
  uint32_t done = (uint32_t)sent * transport->segments;
  return (int)(done < count ? done : count);
}

static int send_packets(socket_transport_t *transport, uint8_t *const *packets, uint32_t count) {
  uint32_t done = 0, soft_errors = 0;
  bool has_waited = false;
  while (done < count) {
    int sent = send_some(transport, packets + done, count - done);
    if (sent >= 0) {
      done += (uint32_t)sent;
      transport->counters.too_long_in_a_row = 0;
      continue;
    }
    int error = -sent;
    if (transport->segments > 1 && (error == EIO || error == EINVAL)) {
      stop_cutting(transport); // kernels before 6.11, where the interface computes no checksums
    } else if (is_soft(error)) {
      count_soft(transport, error);
      transport->counters.too_long_in_a_row += error == EMSGSIZE;
      if (++soft_errors == SOFT_ERROR_LIMIT) break;
    } else if (is_busy(error)) {
      if (has_waited) {
        transport->counters.send_busy++;
        break;
      }
      struct pollfd writable = {.fd = transport->fd, .events = POLLOUT};
      poll(&writable, 1, SEND_WAIT_MS);
      has_waited = true;
    } else {
      return sent;
    }
  }
  return (int)done;
}

static int transport_send(transport_t *base, uint8_t *const *datagrams, uint32_t count) {
  socket_transport_t *transport = (socket_transport_t *)base;
  uint8_t *packets[MAX_DATAGRAMS];
  for (uint32_t done = 0; done < count;) {
    uint32_t part = count - done < MAX_DATAGRAMS ? count - done : MAX_DATAGRAMS;
    for (uint32_t i = 0; i < part; i++) {
      packets[i] = datagrams[done + i];
      if (!transport->has_frames) continue;
      packets[i] = transport->out + (size_t)i * transport->packet_bytes;
      frame_wrap(&transport->frames, datagrams[done + i], packets[i]);
    }
    int sent = send_packets(transport, packets, part);
    if (sent < 0) return sent;
    done += (uint32_t)sent;
    if (sent < (int)part) return (int)done;
  }
  return (int)count;
}

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

// The datagram of a packet, or NULL if it is not good.
static const uint8_t *checked(socket_transport_t *transport, const uint8_t *packet, uint32_t bytes) {
  socket_counters_t *counters = &transport->counters;
  if (!transport->has_frames) {
    if (bytes == transport->packet_bytes) return packet;
    counters->length++;
    return NULL;
  }
  switch (frame_check(&transport->frames, packet, bytes, false)) {
  case FRAME_GOOD: return packet + LAYERS_BYTES;
  case FRAME_OTHER: counters->other_traffic++; break;
  case FRAME_LENGTH: counters->length++; break;
  case FRAME_CHECKSUM: counters->checksum++; break;
  }
  return NULL;
}

// Cut the messages that are there. Returns how many datagrams came out.
static uint32_t cut(socket_transport_t *transport, const uint8_t **datagrams, uint32_t capacity) {
  uint32_t count = 0;
  while (count < capacity && transport->message < transport->num_messages) {
    struct mmsghdr *message = &transport->messages[transport->message];
    const uint8_t *data = transport->in + (size_t)transport->message * MESSAGE_BYTES;
    uint32_t size = segment_bytes(&message->msg_hdr, message->msg_len), left = message->msg_len - transport->offset;
    uint32_t bytes = left < size ? left : size;
    const uint8_t *datagram = checked(transport, data + transport->offset, bytes);
    if (datagram) datagrams[count++] = datagram;
    transport->offset += bytes;
    if (transport->offset < message->msg_len) continue;
    transport->message++;
    transport->offset = 0;
  }
  return count;
}

// Returns how many messages came, or -errno.
static int receive_messages(socket_transport_t *transport) {
  for (uint32_t i = 0; i < MAX_MESSAGES; i++) {
    transport->messages[i].msg_hdr.msg_controllen = transport->joins ? CONTROL_BYTES : 0;
    transport->messages[i].msg_hdr.msg_flags = 0;
  }
  transport->num_messages = transport->message = transport->offset = 0;
  for (;;) {
    int count = recvmmsg(transport->fd, transport->messages, MAX_MESSAGES, MSG_DONTWAIT, NULL);
    if (count >= 0) {
      transport->num_messages = (uint32_t)count;
      return count;
    }
    if (is_busy(errno)) return 0;
    if (!is_soft(errno)) return -errno;
    count_soft(transport, errno);
  }
}

// Wait to be woken, and for something to receive if that is awaited.
static void wait_ready(const socket_transport_t *transport, bool is_readable_awaited, double wait_s) {
  struct pollfd ready[] = {{.fd = transport->wake_fd, .events = POLLIN}, {.fd = transport->fd, .events = POLLIN}};
  struct timespec limit = {.tv_sec = (time_t)wait_s};
  limit.tv_nsec = (long)(1e9 * (wait_s - floor(wait_s)));
  if (ppoll(ready, is_readable_awaited ? 2 : 1, &limit, NULL) > 0 && ready[0].revents) {
    uint64_t times;
    ssize_t bytes = read(transport->wake_fd, &times, sizeof times);
    (void)bytes; // nothing to read: another call was faster
  }
}

static void transport_pause(transport_t *base, double pause_s) {
  wait_ready((socket_transport_t *)base, false, pause_s);
}

static int transport_receive(transport_t *base, const uint8_t **datagrams, uint32_t capacity, double wait_s) {
  socket_transport_t *transport = (socket_transport_t *)base;
  uint32_t count = cut(transport, datagrams, capacity);
  if (count) return (int)count;
  int received = receive_messages(transport);
  if (received == 0 && wait_s > 0) {
    wait_ready(transport, true, wait_s);
    received = receive_messages(transport);
  }
  return received < 0 ? received : (int)cut(transport, datagrams, capacity);
}

socket_transport_t *socket_transport_new(int fd, int wake_fd) {
  socket_transport_t *transport = calloc(1, sizeof *transport);
  if (!transport) return NULL;
  transport->base = (transport_t){transport_send, transport_receive, transport_pause};
  transport->fd = fd;
  transport->wake_fd = wake_fd;
  transport->segments = 1;
  transport->in = malloc((size_t)MAX_MESSAGES * MESSAGE_BYTES);
  if (transport->in) {
    for (uint32_t i = 0; i < MAX_MESSAGES; i++) {
      transport->vectors[i] = (struct iovec){transport->in + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES};
      transport->messages[i].msg_hdr =
          (struct msghdr){.msg_iov = &transport->vectors[i], .msg_iovlen = 1, .msg_control = transport->control[i]};
    }
    return transport;
  }
  free(transport);
  return NULL;
}

void socket_transport_free(socket_transport_t *transport) {
  free(transport->in);
  free(transport->out);
  free(transport);
}

int socket_transport_open(socket_transport_t *transport, uint32_t datagram_bytes, const frames_t *frames) {
  int on = 1;
  transport->datagram_bytes = transport->packet_bytes = datagram_bytes;
  transport->has_frames = frames != NULL;
  if (frames) {
    transport->frames = *frames;
    transport->packet_bytes = frame_bytes(frames);
    free(transport->out);
    transport->out = malloc((size_t)MAX_DATAGRAMS * transport->packet_bytes);
    if (!transport->out) return -ENOMEM;
  }
  int size = (int)transport->packet_bytes;
  uint32_t segments = MAX_PAYLOAD / transport->packet_bytes;
  transport->segments = segments < MAX_SEGMENTS ? segments : MAX_SEGMENTS;
  if (setsockopt(transport->fd, SOL_UDP, UDP_SEGMENT, &size, sizeof size) < 0) transport->segments = 1;
  transport->joins = setsockopt(transport->fd, SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  return 0;
}

transport_t *socket_transport_base(socket_transport_t *transport) { return &transport->base; }

const socket_counters_t *socket_transport_counters(const socket_transport_t *transport) { return &transport->counters; }

bool socket_transport_cuts(const socket_transport_t *transport) { return transport->segments > 1; }

bool socket_transport_joins(const socket_transport_t *transport) { return transport->joins; }
