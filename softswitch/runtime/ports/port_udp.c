// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports that carry one frame per UDP datagram: no privileges needed. The kernel may join datagrams that arrive (UDP_GRO)
// and cut several that leave in one piece (UDP_SEGMENT).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ports.h"
#include "sending.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif
#define SOCKET_BUFFER_BYTES (8 << 20)
#define MESSAGE_BYTES 65536u
#define MESSAGE_STRIDE (MESSAGE_BYTES + 13 * CACHE_LINE_BYTES) // so that messages begin in different cache sets
#define CONTROL_BYTES CMSG_SPACE(sizeof(int))
#define JOINED_BYTES_MAX 65000u // of one call; the most that IP can carry is a little more

typedef struct {
  bool has_peer, is_peer_fixed;
  struct sockaddr_storage peer;
  socklen_t peer_bytes;
  uint32_t dropped; // by the kernel, at the last count_drops
  struct sockaddr_storage sources[PORT_BATCH];
  struct mmsghdr messages[PORT_BATCH];
  struct iovec vectors[PORT_BATCH];
  alignas(struct cmsghdr) char controls[PORT_BATCH][CONTROL_BYTES];
  uint8_t *data;                      // of message i: at i * MESSAGE_STRIDE
  uint32_t wanted, received, message; // messages to ask for; of the current batch: received, and begun
  uint32_t batch_frames, segment;     // frames of the current batch; size of those of the current message
  uint8_t *next, *end;                // of the current message
  bool receives_joined;
  uint32_t joins_below; // frames of this size and more leave alone
} udp_t;

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
  if (a->ss_family != b->ss_family) return false;
  if (a->ss_family == AF_INET) {
    const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;
    return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
  }
  const struct sockaddr_in6 *x = (const void *)a, *y = (const void *)b;
  return x->sin6_port == y->sin6_port && memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
}

static bool accept_source(udp_t *udp, uint32_t index, socklen_t bytes) {
  if (udp->is_peer_fixed) return is_same_address(&udp->peer, &udp->sources[index]);
  udp->peer = udp->sources[index];
  udp->peer_bytes = bytes;
  udp->has_peer = true;
  return true;
}

// With UDP_GRO, a message is a super-frame that the kernel has joined: datagrams of one size, but for a shorter last one.
static uint32_t segment_bytes(struct msghdr *message, uint32_t bytes) {
  for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level != SOL_UDP || control->cmsg_type != UDP_GRO) continue;
    int segment;
    memcpy(&segment, CMSG_DATA(control), sizeof segment);
    if (segment > 0) return (uint32_t)segment;
  }
  return bytes;
}

static void udp_receive(port_t *port) {
  udp_t *udp = port->state;
  for (uint32_t i = 0; i < udp->wanted; i++) {
    udp->vectors[i] = (struct iovec){udp->data + (size_t)i * MESSAGE_STRIDE, MESSAGE_BYTES};
    udp->messages[i].msg_hdr = (struct msghdr){.msg_name = &udp->sources[i], .msg_namelen = sizeof udp->sources[i],
                                               .msg_iov = &udp->vectors[i], .msg_iovlen = 1,
                                               .msg_control = udp->controls[i], .msg_controllen = CONTROL_BYTES};
  }
  int received = recvmmsg(port->fd, udp->messages, udp->wanted, MSG_DONTWAIT, NULL);
  if (received < 0 && errno != EAGAIN && errno != EINTR) port->statistics[PORT_ERRORS]++;
  udp->received = received > 0 ? (uint32_t)received : 0;
  udp->message = udp->batch_frames = 0;
  udp->next = udp->end = udp->data;
}

// Go to the next message; false if there is none.
static bool next_message(port_t *port) {
  udp_t *udp = port->state;
  while (udp->message < udp->received) {
    uint32_t index = udp->message++, bytes = udp->messages[index].msg_len;
    uint32_t segment = segment_bytes(&udp->messages[index].msg_hdr, bytes);
    uint32_t segments = segment < bytes ? (bytes + segment - 1) / segment : 1;
    if (!accept_source(udp, index, udp->messages[index].msg_hdr.msg_namelen)) {
      port->statistics[RX_FOREIGN] += segments;
    } else if (segment > FRAME_BYTES_MAX) {
      port->statistics[RX_OVERSIZE] += segments;
    } else {
      port->statistics[RX_SUPER_FRAMES] += segments > 1;
      udp->next = udp->data + (size_t)index * MESSAGE_STRIDE;
      udp->end = udp->next + bytes;
      udp->segment = segment;
      return true;
    }
  }
  return false;
}

static bool udp_next(port_t *port, frame_t *frame) {
  udp_t *udp = port->state;
  if (udp->next == udp->end) {
    if (!next_message(port)) return false;
    if (udp->message < udp->received) {
      port_prefetch((frame_t){udp->data + (size_t)udp->message * MESSAGE_STRIDE, FRAME_BYTES_MAX});
    }
  }
  uint32_t left = (uint32_t)(udp->end - udp->next);
  *frame = (frame_t){udp->next, left < udp->segment ? left : udp->segment};
  udp->next += frame->bytes;
  udp->batch_frames++;
  return true;
}

// About as many messages as make a batch, if they bring as many frames as the last ones.
static void udp_release(port_t *port) {
  udp_t *udp = port->state;
  if (udp->batch_frames > 0) udp->wanted = (PORT_BATCH * udp->received + udp->batch_frames - 1) / udp->batch_frames;
  if (udp->wanted > PORT_BATCH) udp->wanted = PORT_BATCH;
}

// Frames of one size, the last may be shorter, leave as one message.
static uint32_t join_frames(const udp_t *udp, packet_t *const *packets, uint32_t count) {
  uint32_t number = 1, size = packets[0]->bytes, bytes = size;
  if (size == 0 || size >= udp->joins_below) return 1;
  if (count > JOINED_PACKETS_MAX) count = JOINED_PACKETS_MAX;
  while (number < count && packets[number - 1]->bytes == size) {
    uint32_t next = packets[number]->bytes;
    if (next == 0 || next > size || bytes + next > JOINED_BYTES_MAX) break;
    bytes += next;
    number++;
  }
  return number;
}

static uint32_t fill_message(port_t *port, packet_t *const *packets, uint32_t count, message_t *message) {
  udp_t *udp = port->state;
  uint32_t number = join_frames(udp, packets, count);
  struct msghdr *header = message->header;
  for (uint32_t i = 0; i < number; i++) message->vectors[i] = (struct iovec){packets[i]->data, packets[i]->bytes};
  header->msg_name = &udp->peer;
  header->msg_namelen = udp->peer_bytes;
  header->msg_iovlen = number;
  if (number == 1) return 1;
  uint16_t size = (uint16_t)packets[0]->bytes;
  header->msg_control = message->control;
  header->msg_controllen = CMSG_SPACE(sizeof size);
  struct cmsghdr *control = CMSG_FIRSTHDR(header);
  *control = (struct cmsghdr){.cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof size)};
  memcpy(CMSG_DATA(control), &size, sizeof size);
  return number;
}

// EINVAL, EMSGSIZE: the kernel joins no datagrams that are too long for the interface. EIO: before Linux 6.11, where the
// interface computes no checksums.
static void super_frame_refused(port_t *port, const message_t *message, int error) {
  udp_t *udp = port->state;
  if (error == EINVAL || error == EMSGSIZE) udp->joins_below = (uint32_t)message->vectors[0].iov_len;
  if (error == EIO) udp->joins_below = 0;
}

static statistic_t drop_cause(int error) {
  switch (error) {
  case EAGAIN:
  case ENOBUFS: return TX_OVERFLOW;
  case EMSGSIZE: return TX_OVERSIZE;
  case ECONNREFUSED: return TX_NO_PEER;
  default: return PORT_ERRORS;
  }
}

static const sending_ops_t sending = {fill_message, super_frame_refused, drop_cause};

static void udp_transmit(port_t *port, packet_t *const *packets, uint32_t count) {
  const udp_t *udp = port->state;
  if (udp->has_peer) send_packets(port, port->fd, &sending, packets, count);
  else port->statistics[TX_NO_PEER] += count;
}

static void udp_close(port_t *port) {
  if (port->fd >= 0) close(port->fd);
  port->fd = -1;
  udp_t *udp = port->state;
  free(udp->data);
  free(udp);
}

// The kernel counts the datagrams that found no room in the socket's buffer.
static void count_drops(port_t *port) {
  udp_t *udp = port->state;
  uint32_t memory[SK_MEMINFO_VARS] = {0};
  socklen_t bytes = sizeof memory;
  if (getsockopt(port->fd, SOL_SOCKET, SO_MEMINFO, memory, &bytes) < 0) return;
  port->statistics[RX_OVERFLOW] += memory[SK_MEMINFO_DROPS] - udp->dropped; // modulo 2^32
  udp->dropped = memory[SK_MEMINFO_DROPS];
}

static uint32_t udp_super_frames(const port_t *port) {
  const udp_t *udp = port->state;
  return (udp->receives_joined ? SUPER_FRAMES_RECEIVED : 0) | (udp->joins_below > 0 ? SUPER_FRAMES_SENT_UDP : 0);
}

static const port_ops_t udp_ops = {udp_receive, udp_next, udp_release, udp_transmit, udp_close, count_drops,
                                   udp_super_frames};

static int resolve(const char *host, const char *service, struct sockaddr_storage *address, socklen_t *bytes) {
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM};
  struct addrinfo *found;
  if (getaddrinfo(host, service, &hints, &found) != 0) return -EINVAL;
  memcpy(address, found->ai_addr, found->ai_addrlen);
  *bytes = found->ai_addrlen;
  freeaddrinfo(found);
  return 0;
}

static void enlarge_buffer(int fd, int forced, int plain) {
  const int bytes = SOCKET_BUFFER_BYTES;
  // Without the privilege to exceed the system's limit, the buffer gets at most that limit.
  if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) < 0) {
    (void)setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
}

// A frame may be longer than the interface's MTU and is then cut into fragments. Only the interface decides their size:
// ICMP messages about the MTU of the path are ignored, because anyone can forge them.
static int ignore_path_mtu(int fd, int family) {
  const int v4 = IP_PMTUDISC_OMIT, v6 = IPV6_PMTUDISC_OMIT;
  int done = family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof v6)
                                : setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof v4);
  return done < 0 ? -errno : 0;
}

// Kernels that lack an option (UDP_SEGMENT: before Linux 4.18, UDP_GRO: 5.0) go on frame by frame.
static void offer_super_frames(udp_t *udp, int fd) {
  const int none = 0, on = 1;
  if (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &none, sizeof none) == 0) udp->joins_below = UINT32_MAX;
  udp->receives_joined = setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
}

int port_udp_open(port_t *port, const char *host, const char *service, const char *peer_host,
                  const char *peer_service, bool super_frames) {
  struct sockaddr_storage own;
  socklen_t own_bytes;
  int error = resolve(host, service, &own, &own_bytes);
  if (error) return error;
  udp_t *udp = calloc(1, sizeof *udp);
  if (!udp) return -ENOMEM;
  udp->data = malloc((size_t)PORT_BATCH * MESSAGE_STRIDE);
  udp->wanted = PORT_BATCH;
  if (!udp->data) error = -ENOMEM;
  if (!error && peer_host) {
    error = resolve(peer_host, peer_service, &udp->peer, &udp->peer_bytes);
    if (!error && udp->peer.ss_family != own.ss_family) error = -EAFNOSUPPORT;
    udp->has_peer = udp->is_peer_fixed = true;
  }
  int fd = error ? -1 : socket(own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!error && fd < 0) error = -errno;
  if (!error) error = ignore_path_mtu(fd, own.ss_family);
  if (!error && bind(fd, (const struct sockaddr *)&own, own_bytes) < 0) error = -errno;
  if (error) {
    if (fd >= 0) close(fd);
    free(udp->data);
    free(udp);
    return error;
  }
  if (super_frames) offer_super_frames(udp, fd);
  enlarge_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  enlarge_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  port->fd = fd;
  port->state = udp;
  port->ops = &udp_ops;
  return 0;
}

int port_udp_number(const port_t *port) {
  struct sockaddr_storage own;
  socklen_t bytes = sizeof own;
  if (getsockname(port->fd, (struct sockaddr *)&own, &bytes) < 0) return -errno;
  return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                         : ((struct sockaddr_in *)&own)->sin_port);
}
