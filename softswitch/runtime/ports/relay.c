// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64u
#define SPARE_PACKETS 4096u // beyond those that settings hold by number: those held by time, and those on their way

struct relay {
  pthread_mutex_t lock; // for all below
  int receiver, sender, wake;
  bool is_stopping;
  pool_t pool;
  impairment_stage_t stage;
  priority_queue_t queue;
  uint64_t counters[RELAY_COUNTERS];
};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

relay_t *relay_create(int receiver, int sender) {
  relay_t *relay = calloc(1, sizeof *relay);
  if (!relay) return NULL;
  relay->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (relay->wake < 0) {
    free(relay);
    return NULL;
  }
  pthread_mutex_init(&relay->lock, NULL);
  relay->receiver = receiver;
  relay->sender = sender;
  relay->pool.limit = SPARE_PACKETS;
  relay->stage.queue_count = 1;
  relay->stage.queues = &relay->queue;
  relay->stage.counters = relay->counters;
  return relay;
}

static void wake(relay_t *relay) {
  uint64_t one = 1;
  // It can only fail where the relay is to wake up already.
  ssize_t written = write(relay->wake, &one, sizeof one);
  (void)written;
}

void relay_set(relay_t *relay, const impairments_t *settings, uint64_t stream) {
  uint64_t limit = settings->queue_packets + settings->reordering_packets + SPARE_PACKETS;
  pthread_mutex_lock(&relay->lock);
  relay->pool.limit = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
  impairments_set(&relay->stage, settings, stream);
  pthread_mutex_unlock(&relay->lock);
  wake(relay);
}

void relay_stop(relay_t *relay) {
  pthread_mutex_lock(&relay->lock);
  relay->is_stopping = true;
  pthread_mutex_unlock(&relay->lock);
  wake(relay);
}

static void count_missed(relay_t *relay) {
  struct tpacket_stats statistics; // since the last call
  socklen_t bytes = sizeof statistics;
  if (getsockopt(relay->receiver, SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes) == 0) {
    relay->counters[RELAY_MISSED] += statistics.tp_drops;
  }
}

void relay_counters(relay_t *relay, uint64_t *values) {
  pthread_mutex_lock(&relay->lock);
  count_missed(relay);
  memcpy(values, relay->counters, sizeof relay->counters);
  pthread_mutex_unlock(&relay->lock);
}

void relay_destroy(relay_t *relay) {
  impairments_drop_all(&relay->stage, &relay->pool);
  pool_destroy(&relay->pool);
  close(relay->wake);
  pthread_mutex_destroy(&relay->lock);
  free(relay);
}

// Let frames arrive; return how many.
static uint32_t receive(relay_t *relay) {
  packet_t *packets[BATCH];
  struct iovec vectors[BATCH];
  struct mmsghdr messages[BATCH];
  uint32_t room = 0;
  memset(messages, 0, sizeof messages);
  for (; room < BATCH && (packets[room] = pool_take(&relay->pool)); room++) {
    vectors[room] = (struct iovec){packets[room]->data, FRAME_BYTES_MAX};
    messages[room].msg_hdr.msg_iov = &vectors[room];
    messages[room].msg_hdr.msg_iovlen = 1;
  }
  int received = room ? recvmmsg(relay->receiver, messages, room, MSG_DONTWAIT, NULL) : 0;
  uint32_t count = received > 0 ? (uint32_t)received : 0;
  uint64_t now_ns = now();
  for (uint32_t i = 0; i < room; i++) {
    if (i >= count) {
      pool_give(&relay->pool, packets[i]);
      continue;
    }
    packets[i]->bytes = messages[i].msg_len;
    relay->counters[RELAY_SEEN]++;
    impairments_push(&relay->stage, &relay->pool, packets[i], 0, now_ns, false);
  }
  return count;
}

static void send_batch(relay_t *relay, struct mmsghdr *messages, uint32_t count) {
  for (uint32_t first = 0; first < count;) {
    int sent = sendmmsg(relay->sender, messages + first, count - first, MSG_DONTWAIT);
    if (sent > 0) {
      relay->counters[RELAY_SENT] += (uint64_t)sent;
      first += (uint32_t)sent;
    } else if (errno != EINTR) {
      bool is_full = errno == EAGAIN || errno == ENOBUFS;
      relay->counters[is_full ? RELAY_LINK_FULL : RELAY_REFUSED]++;
      first++;
    }
  }
}

static void send_ready(relay_t *relay) {
  packet_t *packets[BATCH];
  struct iovec vectors[BATCH];
  struct mmsghdr messages[BATCH];
  uint32_t count;
  memset(messages, 0, sizeof messages);
  do {
    for (count = 0; count < BATCH && (packets[count] = impairments_pop(&relay->stage)); count++) {
      vectors[count] = (struct iovec){packets[count]->data, packets[count]->bytes};
      messages[count].msg_hdr.msg_iov = &vectors[count];
      messages[count].msg_hdr.msg_iovlen = 1;
    }
    send_batch(relay, messages, count);
    for (uint32_t i = 0; i < count; i++) pool_give(&relay->pool, packets[i]);
  } while (count == BATCH);
}

static int await(relay_t *relay, uint64_t deadline_ns, bool has_room) {
  struct pollfd waits[2] = {{.fd = relay->wake, .events = POLLIN}, {.fd = relay->receiver, .events = POLLIN}};
  struct timespec limit;
  if (deadline_ns != UINT64_MAX) {
    uint64_t now_ns = now();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    limit = (struct timespec){(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
  }
  if (ppoll(waits, has_room ? 2 : 1, deadline_ns == UINT64_MAX ? NULL : &limit, NULL) < 0 && errno != EINTR) {
    return -errno;
  }
  uint64_t ignored;
  ssize_t bytes = read(relay->wake, &ignored, sizeof ignored); // EAGAIN: something else has ended the wait
  (void)bytes;
  return 0;
}

int relay_run(relay_t *relay) {
  int error = 0;
  for (bool is_over = false; !error && !is_over;) {
    pthread_mutex_lock(&relay->lock);
    is_over = relay->is_stopping;
    uint32_t received = receive(relay);
    while (is_over && received) {
      send_ready(relay);
      received = receive(relay);
    }
    impairments_advance(&relay->stage, is_over ? UINT64_MAX : now());
    send_ready(relay);
    uint64_t deadline_ns = impairments_deadline(&relay->stage);
    bool has_room = relay->pool.free || relay->pool.allocated < relay->pool.limit;
    pthread_mutex_unlock(&relay->lock);
    if (!is_over) error = await(relay, deadline_ns, has_room);
  }
  return error;
}

int relay_program(uint32_t mark, uint32_t interface_index) {
  const struct bpf_insn program[] = {
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1,
       .off = offsetof(struct __sk_buff, mark)},
      {.code = BPF_JMP32 | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_2, .off = 4, .imm = (int32_t)mark},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = (int32_t)interface_index},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 0},
      {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect},
      {.code = BPF_JMP | BPF_EXIT},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = TC_ACT_OK},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr load;
  memset(&load, 0, sizeof load);
  load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  load.insns = (uint64_t)(uintptr_t)program;
  load.insn_cnt = sizeof program / sizeof program[0];
  load.license = (uint64_t)(uintptr_t) "Apache-2.0";
  long descriptor = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
  return descriptor < 0 ? -errno : (int)descriptor;
}
