// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "sending.h"

#include <errno.h>
#include <stdalign.h>

// On the stack, which all ports share: what one port keeps for itself leaves the cache while others send.
typedef struct {
  struct mmsghdr messages[PENDING_MAX];
  struct iovec vectors[3 * PENDING_MAX];
  uint32_t packets[PENDING_MAX]; // in each message
  joined_t joined[PENDING_MAX];
  alignas(struct cmsghdr) char controls[PENDING_MAX][SEND_CONTROL_BYTES];
} messages_t;

// single: as many packets at the front go alone. Returns the number of messages.
static uint32_t fill(port_t *port, const sending_ops_t *ops, packet_t *const *packets, uint32_t count, uint32_t single,
                     messages_t *out) {
  uint32_t used = 0;
  struct iovec *vectors = out->vectors;
  for (uint32_t done = 0; done < count; used++) {
    struct msghdr *header = &out->messages[used].msg_hdr;
    *header = (struct msghdr){.msg_iov = vectors};
    message_t message = {header, vectors, &out->joined[used], out->controls[used]};
    out->packets[used] = ops->fill(port, packets + done, done < single ? 1 : count - done, &message);
    done += out->packets[used];
    vectors += header->msg_iovlen;
  }
  return used;
}

void send_packets(port_t *port, int fd, const sending_ops_t *ops, packet_t *const *packets, uint32_t count) {
  messages_t out;
  uint32_t single = 0;
  for (uint32_t done = 0; done < count;) {
    uint32_t used = fill(port, ops, packets + done, count - done, single > done ? single - done : 0, &out);
    int sent;
    do {
      sent = sendmmsg(fd, out.messages, used, MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    for (int i = 0; i < sent; i++) {
      port->statistics[TX_SUPER_FRAMES] += out.packets[i] > 1;
      port->statistics[TX_PACKETS] += out.packets[i];
      for (uint32_t end = done + out.packets[i]; done < end; done++) port->statistics[TX_BYTES] += packets[done]->bytes;
    }
    if (sent >= 0) continue;
    if (out.packets[0] > 1) {
      const message_t first = {&out.messages[0].msg_hdr, out.vectors, &out.joined[0], out.controls[0]};
      ops->refused(port, &first, errno);
      single = done + out.packets[0];
    } else {
      port->statistics[ops->cause(errno)]++;
      done++;
    }
  }
}
