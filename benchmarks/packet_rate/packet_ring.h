// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A packet socket on one interface: frames in through a memory-mapped ring, out by sendmmsg. What load generator and
// bare forwarder have in common; like softswitch's veth port, without its statistics and corner cases. A ring with
// super-frames takes and gives frames with a virtio_net_hdr in front; those that are larger than a slot wait in the
// socket's queue.
#ifndef BENCHMARKS_PACKET_RING_H
#define BENCHMARKS_PACKET_RING_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_BYTES (8u << 20)
#define BLOCK_BYTES (1u << 16)
#define SLOT_BYTES 2048u
#define RING_SLOTS (RING_BYTES / SLOT_BYTES)
#define RING_BATCH 64u
#define OFFLOAD_BYTES sizeof(struct virtio_net_hdr)
#define SUPER_FRAME_BYTES (OFFLOAD_BYTES + 65550u)

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

typedef struct {
  int fd;
  uint8_t *ring;
  uint32_t next;
  bool has_super_frames;
} packet_ring_t;

static inline int ring_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) < 0 ? -errno : 0;
}

static inline void ring_close(packet_ring_t *ring) {
  if (ring->ring) munmap(ring->ring, RING_BYTES);
  if (ring->fd >= 0) close(ring->fd);
  *ring = (packet_ring_t){.fd = -1};
}

// 0 or -errno; the interface is looked up in the caller's network namespace.
static inline int ring_open(packet_ring_t *ring, const char *interface, bool super_frames) {
  *ring = (packet_ring_t){.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  ring->has_super_frames = super_frames;
  if (ring->fd < 0) return -errno;
  struct sockaddr_ll own = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
  own.sll_ifindex = (int)if_nametoindex(interface);
  const struct packet_mreq promiscuous = {.mr_ifindex = own.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
  const struct tpacket_req shape = {BLOCK_BYTES, RING_BYTES / BLOCK_BYTES, SLOT_BYTES, RING_SLOTS};
  int error = own.sll_ifindex ? ring_option(ring->fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2) : -ENODEV;
  if (!error) error = ring_option(ring->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
  if (!error) error = ring_option(ring->fd, SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20);
  if (!error && super_frames) {
    error = ring_option(ring->fd, SOL_PACKET, PACKET_VNET_HDR, 1);
    if (!error) error = ring_option(ring->fd, SOL_PACKET, PACKET_COPY_THRESH, 1);
    if (!error) error = ring_option(ring->fd, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
  }
  if (!error && setsockopt(ring->fd, SOL_PACKET, PACKET_RX_RING, &shape, sizeof shape) < 0) error = -errno;
  if (!error) {
    void *mapped = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (mapped == MAP_FAILED) {
      error = -errno;
    } else {
      ring->ring = mapped;
    }
  }
  if (!error && bind(ring->fd, (const struct sockaddr *)&own, sizeof own) < 0) error = -errno;
  if (!error && setsockopt(ring->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0) {
    error = -errno;
  }
  if (error) ring_close(ring);
  return error;
}

static inline struct tpacket2_hdr *ring_slot(const packet_ring_t *ring, uint32_t ahead) {
  return (void *)(ring->ring + (size_t)((ring->next + ahead) % RING_SLOTS) * SLOT_BYTES);
}

// The frame `ahead` places from the next one; false when it has not arrived yet.
static inline bool ring_peek(const packet_ring_t *ring, uint32_t ahead, struct iovec *frame) {
  struct tpacket2_hdr *slot = ring_slot(ring, ahead);
  if (!(atomic_load_explicit((_Atomic __u32 *)&slot->tp_status, memory_order_acquire) & TP_STATUS_USER)) return false;
  *frame = (struct iovec){(uint8_t *)slot + slot->tp_mac, slot->tp_snaplen};
  return true;
}

// Like ring_peek with a virtio_net_hdr in front of the frame. One that is larger than the slot is taken out of the socket
// into `large`, of SUPER_FRAME_BYTES, and must not be peeked at twice. -errno if that fails; 1: a frame; 0: none.
static inline int ring_take(const packet_ring_t *ring, uint32_t ahead, uint8_t *large, struct iovec *frame) {
  if (!ring_peek(ring, ahead, frame)) return 0;
  if (!(ring_slot(ring, ahead)->tp_status & TP_STATUS_COPY)) {
    *frame = (struct iovec){(uint8_t *)frame->iov_base - OFFLOAD_BYTES, frame->iov_len + OFFLOAD_BYTES};
    return 1;
  }
  ssize_t bytes = recv(ring->fd, large, SUPER_FRAME_BYTES, MSG_DONTWAIT);
  *frame = (struct iovec){large, bytes < 0 ? 0 : (size_t)bytes};
  return bytes < 0 ? -errno : 1;
}

static inline void ring_release(packet_ring_t *ring, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    struct tpacket2_hdr *slot = ring_slot(ring, i);
    atomic_store_explicit((_Atomic __u32 *)&slot->tp_status, TP_STATUS_KERNEL, memory_order_release);
  }
  ring->next = (ring->next + count) % RING_SLOTS;
}

// Messages sent, all of them unless an error other than a full buffer occurs: then -errno.
static inline int ring_send(packet_ring_t *ring, struct mmsghdr *messages, uint32_t count) {
  for (uint32_t done = 0; done < count;) {
    int sent = sendmmsg(ring->fd, messages + done, count - done, 0);
    if (sent >= 0) {
      done += (uint32_t)sent;
    } else if (errno != EINTR && errno != EAGAIN && errno != ENOBUFS) {
      return -errno;
    }
  }
  return (int)count;
}

#endif
