// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "socket_state.h"

#define SEND_WAIT_MS 20     // how long a send waits for room before it gives the rest back
#define SOFT_ERROR_LIMIT 3u // the first was left by an earlier packet; the next are this batch's own

// Kernels before 6.11 cut no UDP message where the interface computes no checksums; those before 6.2 cut no super-frame.
static void stop_joining(socket_transport_t *transport) {
  int none = 0;
  for (uint32_t i = 0; transport->carried != PACKETS && i < transport->num_sockets; i++)
    setsockopt(transport->fds[i], SOL_UDP, UDP_SEGMENT, &none, sizeof none);
  transport->segments = transport->most_segments = 1;
}

// The kernel compares packets with the interface's MTU, but no super-frames.
static bool is_too_long(const socket_transport_t *transport) {
  struct ifreq request = {0};
  memcpy(request.ifr_name, transport->link.interface, IFNAMSIZ);
  return ioctl(transport->fds[0], SIOCGIFMTU, &request) == 0 &&
         (uint32_t)request.ifr_mtu + ETHERNET_BYTES < frame_bytes(&transport->frames);
}

// Write the head of a message of datagrams, if it has one.
static struct iovec message_head(socket_transport_t *transport, uint32_t index, const uint8_t *datagram, uint32_t count) {
  uint8_t *head = transport->heads[index];
  if (transport->segments > 1) super_head(&transport->frames, count, head);
  else whole_head(&transport->frames, datagram, head);
  uint32_t skipped = transport->link.has_offload_header ? 0 : OFFLOAD_BYTES;
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
static int send_some(socket_transport_t *transport, uint32_t which, uint8_t *const *datagrams, uint32_t count) {
  if (transport->carried == PACKETS && transport->segments > 1 && is_too_long(transport)) return -EMSGSIZE;
  uint32_t num_messages = make_messages(transport, datagrams, count);
  // Where the switch answers, the kernel need not ask for its MAC address again: while the controller is away, nobody
  // would answer that.
  bool is_confirmed = transport->carried == DATAGRAMS && transport->has_answered[which];
  int flags = MSG_DONTWAIT | (is_confirmed ? MSG_CONFIRM : 0);
  int sent = sendmmsg(transport->fds[which], transport->out, num_messages, flags);
  if (sent < 0) return -errno;
  transport->has_answered[which] = false;
  uint32_t done = (uint32_t)sent * transport->segments;
  return (int)(done < count ? done : count);
}

// Send by one socket, and wait once for room if it is busy. Returns how many were taken, or -errno; less than all without
// `is_busy`: the network refused them.
static int send_datagrams(socket_transport_t *transport, uint32_t which, uint8_t *const *datagrams, uint32_t count,
                          int wait_ms, bool *is_busy) {
  uint32_t done = 0, soft_errors = 0;
  *is_busy = false;
  while (done < count) {
    int sent = send_some(transport, which, datagrams + done, count - done);
    if (sent >= 0) {
      done += (uint32_t)sent;
      transport->counters.too_long_in_a_row = 0;
      continue;
    }
    int error = -sent;
    if (transport->segments > 1 && (error == EIO || error == EINVAL)) {
      stop_joining(transport);
    } else if (socket_is_soft(error)) {
      socket_count_soft(transport, error);
      transport->counters.too_long_in_a_row += error == EMSGSIZE;
      if (++soft_errors == SOFT_ERROR_LIMIT) break;
    } else if (socket_is_busy(error)) {
      *is_busy = wait_ms == 0;
      if (*is_busy) break;
      struct pollfd writable = {.fd = transport->fds[which], .events = POLLOUT};
      poll(&writable, 1, wait_ms);
      wait_ms = 0;
    } else {
      return sent;
    }
  }
  return (int)done;
}

// Order datagrams by socket, and as they are for each. `ends`: where those of each socket end.
static void sort_by_socket(const socket_transport_t *transport, uint8_t *const *datagrams, uint32_t count,
                           uint8_t **sorted, uint32_t *ends) {
  uint32_t next = 0;
  memset(ends, 0, transport->num_sockets * sizeof *ends);
  for (uint32_t i = 0; i < count; i++) ends[socket_of(transport, datagrams[i])]++;
  for (uint32_t which = 0; which < transport->num_sockets; which++) {
    uint32_t num_mine = ends[which];
    ends[which] = next; // where they begin, until they are placed
    next += num_mine;
  }
  for (uint32_t i = 0; i < count; i++) sorted[ends[socket_of(transport, datagrams[i])]++] = datagrams[i];
}

// Send each datagram to the switch of its tree. Those that a busy socket does not take are kept, and go later: the caller
// counts a beginning as sent, and would send again what other sockets have taken behind it. Where a socket reaches nobody,
// its datagrams are lost, as the others must not wait for it. Returns 0 or -errno.
static int send_routed(socket_transport_t *transport, uint8_t *const *datagrams, uint32_t count) {
  uint8_t *sorted[MAX_DATAGRAMS];
  uint32_t ends[MAX_SOCKETS], first = 0;
  sort_by_socket(transport, datagrams, count, sorted, ends);
  transport->num_kept = 0;
  for (uint32_t which = 0; which < transport->num_sockets; first = ends[which++]) {
    bool is_busy;
    int sent = send_datagrams(transport, which, sorted + first, ends[which] - first, 0, &is_busy);
    if (sent < 0) return sent;
    for (uint32_t i = first + (uint32_t)sent; is_busy && i < ends[which]; i++) {
      // Those that were kept before lie in this order, so none is overwritten.
      uint8_t *row = transport->kept + (size_t)transport->num_kept++ * transport->datagram_bytes;
      memmove(row, sorted[i], transport->datagram_bytes);
    }
  }
  return 0;
}

int socket_send_kept(socket_transport_t *transport) {
  uint8_t *datagrams[MAX_DATAGRAMS];
  uint32_t count = transport->num_kept;
  if (!count) return 0;
  for (uint32_t i = 0; i < count; i++) datagrams[i] = transport->kept + (size_t)i * transport->datagram_bytes;
  return send_routed(transport, datagrams, count);
}

// Returns how many were taken, or -errno.
static int send_to_several(socket_transport_t *transport, uint8_t *const *datagrams, uint32_t count) {
  int error = socket_send_kept(transport);
  for (uint32_t done = 0; !error && done < count;) {
    if (transport->num_kept) return (int)done;
    uint32_t part = count - done < MAX_DATAGRAMS ? count - done : MAX_DATAGRAMS;
    error = send_routed(transport, datagrams + done, part);
    transport->counters.send_busy += transport->num_kept > 0;
    done += part;
  }
  return error ? error : (int)count;
}

int socket_send(transport_t *base, uint8_t *const *datagrams, uint32_t count) {
  socket_transport_t *transport = (socket_transport_t *)base;
  if (transport->num_sockets > 1) return send_to_several(transport, datagrams, count);
  for (uint32_t done = 0; done < count;) {
    uint32_t part = count - done < MAX_DATAGRAMS ? count - done : MAX_DATAGRAMS;
    bool is_busy;
    int sent = send_datagrams(transport, 0, datagrams + done, part, SEND_WAIT_MS, &is_busy);
    if (sent < 0) return sent;
    transport->counters.send_busy += is_busy;
    done += (uint32_t)sent;
    if (sent < (int)part) return (int)done;
  }
  return (int)count;
}
