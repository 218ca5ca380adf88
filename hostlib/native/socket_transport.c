// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "socket_transport.h"

#include <errno.h>
#include <linux/udp.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "super_frames.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#define MAX_DATAGRAMS 256u   // in one call
#define MAX_MESSAGES 32u     // received in one call
#define MAX_PAYLOAD 65507u   // of UDP, in a message that the kernel cuts
#define MAX_SEGMENTS 64u     // in one message: the kernel's own limit
#define SEND_WAIT_MS 20      // how long a send waits for room before it gives the rest back
#define SOFT_ERROR_LIMIT 3u  // the first was left by an earlier packet; the next are this batch's own
#define CONTROL_BYTES CMSG_SPACE(sizeof(int))
// Room for a received message. Not a power of two, or all messages would lie in the same few lines of the cache.
#define MESSAGE_BYTES (65536u + 2112u)

typedef enum { DATAGRAMS, FRAMES_IN_DATAGRAMS, PACKETS } carried_t;

struct socket_transport {
  transport_t base;
  _Atomic int fd, wake_fd; // -1: closed
  carried_t carried;
  uint32_t datagram_bytes;
  frames_t frames;
  // Datagrams in one message that is sent: at most what kernel and peer take, 1 if they take no more.
  uint32_t segments, most_segments;
  bool joins;              // received messages may hold several datagrams
  bool has_offload_header; // packets: in front of each message
  char interface[IFNAMSIZ];
  socket_counters_t counters;
  // Messages to send: a head for each message or each frame, and the datagrams where they lie.
  struct mmsghdr out[MAX_DATAGRAMS];
  struct iovec out_vectors[2 * MAX_DATAGRAMS];
  uint8_t heads[MAX_DATAGRAMS][HEAD_BYTES];
  // Messages received last, and how far they were cut.
  uint8_t *in;
  struct mmsghdr messages[MAX_MESSAGES];
  struct iovec vectors[MAX_MESSAGES];
  uint8_t control[MAX_MESSAGES][CONTROL_BYTES] __attribute__((aligned(8)));
  uint32_t num_messages, message;
  const uint8_t *rest; // of the message
  uint32_t rest_bytes, part_bytes;
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

// Kernels before 6.11 cut no UDP message where the interface computes no checksums; those before 6.2 cut no super-frame.
static void stop_joining(socket_transport_t *transport) {
  int none = 0;
  if (transport->carried != PACKETS) setsockopt(transport->fd, SOL_UDP, UDP_SEGMENT, &none, sizeof none);
  transport->segments = transport->most_segments = 1;
}

// The kernel compares packets with the interface's MTU, but no super-frames.
static bool is_too_long(const socket_transport_t *transport) {
  struct ifreq request = {0};
  memcpy(request.ifr_name, transport->interface, IFNAMSIZ);
  return ioctl(transport->fd, SIOCGIFMTU, &request) == 0 &&
         (uint32_t)request.ifr_mtu + ETHERNET_BYTES < frame_bytes(&transport->frames);
}

// Write the head of a message of datagrams, if it has one.
static struct iovec message_head(socket_transport_t *transport, uint32_t index, const uint8_t *datagram, uint32_t count) {
  uint8_t *head = transport->heads[index];
  if (transport->segments > 1) super_head(&transport->frames, count, head);
  else whole_head(&transport->frames, datagram, head);
  uint32_t skipped = transport->has_offload_header ? 0 : OFFLOAD_BYTES;
  return (struct iovec){head + skipped, HEAD_BYTES - skipped};
}

// Point messages at datagrams. Returns how many messages there are.
static uint32_t make_messages(socket_transport_t *transport, uint8_t *const *datagrams, uint32_t count) {
  uint32_t num_messages = 0;
  struct iovec *vector = transport->out_vectors, *first = vector;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t left = count - i, segments = transport->segments;
    bool is_first = i % segments == 0;
    if (is_first) first = vector;
    if (is_first && transport->carried == PACKETS) {
      *vector++ = message_head(transport, num_messages, datagrams[i], left < segments ? left : segments);
    } else if (transport->carried == FRAMES_IN_DATAGRAMS) {
      frame_layers(&transport->frames, datagrams[i], transport->heads[i]);
      *vector++ = (struct iovec){transport->heads[i], LAYERS_BYTES};
    }
    *vector++ = (struct iovec){datagrams[i], transport->datagram_bytes};
    if (is_first) transport->out[num_messages++].msg_hdr = (struct msghdr){.msg_iov = first};
    transport->out[num_messages - 1].msg_hdr.msg_iovlen = (size_t)(vector - first);
  }
  return num_messages;
}

// One call of the kernel. Returns how many datagrams it took, or -errno.
static int send_some(socket_transport_t *transport, uint8_t *const *datagrams, uint32_t count) {
  if (transport->carried == PACKETS && transport->segments > 1 && is_too_long(transport)) return -EMSGSIZE;
  uint32_t num_messages = make_messages(transport, datagrams, count);
  int sent = sendmmsg(transport->fd, transport->out, num_messages, MSG_DONTWAIT);
  if (sent < 0) return -errno;
  uint32_t done = (uint32_t)sent * transport->segments;
  return (int)(done < count ? done : count);
}

static int send_datagrams(socket_transport_t *transport, uint8_t *const *datagrams, uint32_t count) {
  uint32_t done = 0, soft_errors = 0;
  bool has_waited = false;
  while (done < count) {
    int sent = send_some(transport, datagrams + done, count - done);
    if (sent >= 0) {
      done += (uint32_t)sent;
      transport->counters.too_long_in_a_row = 0;
      continue;
    }
    int error = -sent;
    if (transport->segments > 1 && (error == EIO || error == EINVAL)) {
      stop_joining(transport);
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
  for (uint32_t done = 0; done < count;) {
    uint32_t part = count - done < MAX_DATAGRAMS ? count - done : MAX_DATAGRAMS;
    int sent = send_datagrams(transport, datagrams + done, part);
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
  if (transport->has_offload_header) {
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
  if (bytes == transport->datagram_bytes) return part;
  transport->counters.length++;
  return NULL;
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

// Returns how many messages came, or -errno.
static int receive_messages(socket_transport_t *transport) {
  for (uint32_t i = 0; i < MAX_MESSAGES; i++) {
    transport->messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    transport->messages[i].msg_hdr.msg_flags = 0;
  }
  transport->num_messages = transport->message = transport->rest_bytes = 0;
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
  transport->segments = transport->most_segments = 1;
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
  free(transport);
}

void socket_transport_close(socket_transport_t *transport) {
  transport->fd = -1;
  transport->wake_fd = -1;
}

static uint32_t segments_of(uint32_t packet_bytes) {
  uint32_t segments = MAX_PAYLOAD / packet_bytes;
  return segments < MAX_SEGMENTS ? segments : MAX_SEGMENTS;
}

int socket_transport_open(socket_transport_t *transport, uint32_t datagram_bytes, const frames_t *frames) {
  int on = 1;
  transport->datagram_bytes = datagram_bytes;
  transport->carried = frames ? FRAMES_IN_DATAGRAMS : DATAGRAMS;
  if (frames) transport->frames = *frames;
  uint32_t packet_bytes = frames ? frame_bytes(frames) : datagram_bytes;
  int size = (int)packet_bytes;
  bool is_cut = setsockopt(transport->fd, SOL_UDP, UDP_SEGMENT, &size, sizeof size) == 0;
  transport->segments = transport->most_segments = is_cut ? segments_of(packet_bytes) : 1;
  transport->joins = setsockopt(transport->fd, SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  return 0;
}

int socket_transport_open_packets(socket_transport_t *transport, const frames_t *frames, const char *interface,
                                  join_t join) {
  if (strlen(interface) >= IFNAMSIZ) return -ENODEV;
  strcpy(transport->interface, interface);
  transport->frames = *frames;
  transport->datagram_bytes = frames->datagram_bytes;
  transport->carried = PACKETS;
  transport->has_offload_header = transport->joins = join != JOIN_NEVER;
  transport->most_segments = join == JOIN_NEVER ? 1 : segments_of(frames->datagram_bytes);
  transport->segments = join == JOIN_ALWAYS ? transport->most_segments : 1;
  return 0;
}

transport_t *socket_transport_base(socket_transport_t *transport) { return &transport->base; }

const socket_counters_t *socket_transport_counters(const socket_transport_t *transport) { return &transport->counters; }

uint32_t socket_transport_segments(const socket_transport_t *transport) { return transport->segments; }

uint32_t socket_transport_most_segments(const socket_transport_t *transport) { return transport->most_segments; }

bool socket_transport_joins(const socket_transport_t *transport) { return transport->joins; }
