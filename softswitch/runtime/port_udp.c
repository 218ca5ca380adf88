// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports that carry one frame per UDP datagram: no privileges needed.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ports.h"

#define SOCKET_BUFFER_BYTES (8 << 20)

typedef struct {
  bool has_peer, is_peer_fixed;
  struct sockaddr_storage peer;
  socklen_t peer_bytes;
  uint32_t dropped; // by the kernel, at the last count_drops
  struct sockaddr_storage sources[PORT_BATCH];
  uint8_t frames[PORT_BATCH][FRAME_BYTES_MAX];
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

static uint32_t udp_receive(port_t *port, frame_t *frames, uint32_t capacity) {
  udp_t *udp = port->state;
  struct mmsghdr messages[PORT_BATCH];
  struct iovec vectors[PORT_BATCH];
  for (uint32_t i = 0; i < capacity; i++) {
    vectors[i] = (struct iovec){udp->frames[i], FRAME_BYTES_MAX};
    messages[i].msg_hdr = (struct msghdr){.msg_name = &udp->sources[i], .msg_namelen = sizeof udp->sources[i],
                                          .msg_iov = &vectors[i], .msg_iovlen = 1};
  }
  int received = recvmmsg(port->fd, messages, capacity, MSG_DONTWAIT, NULL);
  if (received < 0 && errno != EAGAIN && errno != EINTR) port->statistics[PORT_ERRORS]++;
  uint32_t count = 0;
  for (int i = 0; i < received; i++) {
    if (!accept_source(udp, (uint32_t)i, messages[i].msg_hdr.msg_namelen)) {
      port->statistics[RX_FOREIGN]++;
    } else if (messages[i].msg_hdr.msg_flags & MSG_TRUNC) {
      port->statistics[RX_OVERSIZE]++;
    } else {
      frames[count++] = (frame_t){udp->frames[i], messages[i].msg_len};
    }
  }
  return count;
}

static void udp_release(port_t *port) { (void)port; }

static void udp_transmit(port_t *port, packet_t *const *packets, uint32_t count) {
  udp_t *udp = port->state;
  if (!udp->has_peer) {
    port->statistics[TX_NO_PEER] += count;
    return;
  }
  struct mmsghdr messages[PORT_BATCH];
  struct iovec vectors[PORT_BATCH];
  for (uint32_t i = 0; i < count; i++) {
    vectors[i] = (struct iovec){packets[i]->data, packets[i]->bytes};
    messages[i].msg_hdr = (struct msghdr){.msg_name = &udp->peer, .msg_namelen = udp->peer_bytes,
                                          .msg_iov = &vectors[i], .msg_iovlen = 1};
  }
  for (uint32_t done = 0; done < count;) {
    int sent = sendmmsg(port->fd, messages + done, count - done, MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      statistic_t cause = errno == EAGAIN || errno == ENOBUFS ? TX_OVERFLOW
                          : errno == EMSGSIZE                 ? TX_OVERSIZE
                          : errno == ECONNREFUSED             ? TX_NO_PEER
                                                              : PORT_ERRORS;
      port->statistics[cause]++;
      done++;
      continue;
    }
    for (int i = 0; i < sent; i++) port->statistics[TX_BYTES] += packets[done + (uint32_t)i]->bytes;
    port->statistics[TX_PACKETS] += (uint64_t)sent;
    done += (uint32_t)sent;
  }
}

static void udp_close(port_t *port) {
  if (port->fd >= 0) close(port->fd);
  port->fd = -1;
  free(port->state);
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

static const port_ops_t udp_ops = {udp_receive, udp_release, udp_transmit, udp_close, count_drops};

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

int port_udp_open(port_t *port, const char *host, const char *service, const char *peer_host,
                  const char *peer_service) {
  struct sockaddr_storage own;
  socklen_t own_bytes;
  int error = resolve(host, service, &own, &own_bytes);
  if (error) return error;
  udp_t *udp = calloc(1, sizeof *udp);
  if (!udp) return -ENOMEM;
  if (peer_host) {
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
    free(udp);
    return error;
  }
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
