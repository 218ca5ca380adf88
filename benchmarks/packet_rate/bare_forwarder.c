// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves frames between pairs of interfaces (first and second, third and fourth, ...), from receive ring to batched send,
// and does nothing else: what a switch on packet sockets could reach if its pipeline cost nothing. With --super-frames,
// it moves super-frames uncut. Ends with its standard input.
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "packet_ring.h"

#define PORTS_MAX 64

static int forward(packet_ring_t *from, packet_ring_t *to) {
  static uint8_t large[RING_BATCH][SUPER_FRAME_BYTES];
  struct iovec frames[RING_BATCH];
  struct mmsghdr messages[RING_BATCH];
  uint32_t count = 0;
  for (; count < RING_BATCH; count++) {
    int found = from->has_super_frames ? ring_take(from, count, large[count], &frames[count])
                                       : ring_peek(from, count, &frames[count]);
    if (found < 0) return found;
    if (!found) break;
    messages[count] = (struct mmsghdr){.msg_hdr = {.msg_iov = &frames[count], .msg_iovlen = 1}};
  }
  int result = ring_send(to, messages, count);
  ring_release(from, count);
  return result;
}

int main(int argc, char **argv) {
  static packet_ring_t ports[PORTS_MAX];
  static struct pollfd watched[PORTS_MAX + 1];
  bool super_frames = argc > 1 && strcmp(argv[1], "--super-frames") == 0;
  argc -= super_frames;
  argv += super_frames;
  int count = argc - 1;
  if (count < 2 || count > PORTS_MAX || count % 2) {
    fprintf(stderr, "usage: bare_forwarder [--super-frames] INTERFACE INTERFACE [...], an even number of them\n");
    return 2;
  }
  for (int i = 0; i < count; i++) {
    int error = ring_open(&ports[i], argv[i + 1], super_frames);
    if (error) {
      fprintf(stderr, "%s: %s\n", argv[i + 1], strerror(-error));
      return 1;
    }
    watched[i] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN};
  }
  watched[count] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
  puts("ready");
  fflush(stdout);
  while (!watched[count].revents) {
    int moved = 0;
    for (int i = 0; i < count; i++) {
      int result = forward(&ports[i], &ports[i ^ 1]);
      if (result < 0) {
        fprintf(stderr, "%s: %s\n", argv[(i ^ 1) + 1], strerror(-result));
        return 1;
      }
      moved += result;
    }
    if (poll(watched, (nfds_t)count + 1, moved ? 0 : -1) < 0 && errno != EINTR) return 1;
  }
  return 0;
}
