// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports on network interfaces: a packet socket with a TPACKET_V2 ring for receiving (version 3 hands over whole blocks
// and would add up to a millisecond) and sendmmsg through the interface's queueing discipline, so that tc shapes.
//
// Senders on the same machine leave checksums and segmentation to the card, which veth does not have. The kernel puts a
// virtio_net_hdr with what is left to do before each frame, and the port does it. A frame larger than a slot waits whole in
// the socket's queue. Likewise, packets of a flow that leave together leave as one super-frame.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "joining.h"
#include "layers.h"
#include "offload.h"
#include "ports.h"
#include "sending.h"

#define RING_BYTES (8u << 20)
#define BLOCK_BYTES (1u << 16)
#define SEND_BUFFER_BYTES (4 << 20)
#define LARGE_QUEUE_BYTES (8 << 20)
#define LARGE_BYTES (1u << 17)
#define FRAME_OVERHEAD (ETH_HLEN + VLAN_TAG_BYTES)

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

typedef struct {
  char name[IFNAMSIZ];
  int index;
  int sender; // a separate socket that no thread polls, so that a sent frame causes no wake-up
  int claim;  // abstract socket whose name says that this interface is taken, in this network namespace
  uint32_t mtu;
  uint8_t *ring;
  uint32_t slot_bytes, slots; // powers of two
  uint32_t next, taken; // the next slot; how many from there on the current batch has taken
  uint32_t batch_frames;
  bool is_losing;      // the kernel has lost frames since the last batch
  uint8_t *large;      // LARGE_BYTES: a frame that did not fit into its slot; a VLAN tag may come before it
  segments_t segments; // of the last slot that was taken
  bool super_frames;          // as asked for
  bool joins_udp, joins_tcp;  // as the kernel takes them
  uint32_t frame_limit; // while packets are sent: the longest frame that the MTU lets pass; 0: not looked up
} veth_t;

// Size and number of slots are powers of two, so that slots fill the blocks without a gap.
static struct tpacket2_hdr *slot_at(const veth_t *veth, uint32_t slot) {
  return (void *)(veth->ring + (size_t)(slot & (veth->slots - 1)) * veth->slot_bytes);
}

static uint32_t slot_status(struct tpacket2_hdr *slot) {
  return atomic_load_explicit((_Atomic __u32 *)&slot->tp_status, memory_order_acquire);
}

// The kernel strips a VLAN tag; there is room for it before the frame (PACKET_RESERVE).
static void restore_vlan(frame_t *frame, const struct tpacket2_hdr *slot) {
  uint16_t type = slot->tp_status & TP_STATUS_VLAN_TPID_VALID ? slot->tp_vlan_tpid : ETHERTYPE_VLAN;
  uint16_t tag[2] = {htons(type), htons(slot->tp_vlan_tci)};
  memmove(frame->data - VLAN_TAG_BYTES, frame->data, 2 * ETH_ALEN);
  frame->data -= VLAN_TAG_BYTES;
  memcpy(frame->data + 2 * ETH_ALEN, tag, sizeof tag);
  frame->bytes += VLAN_TAG_BYTES;
}

// The socket reports ENETDOWN both for an interface that is down and for one that has vanished.
static void check_error(port_t *port) {
  veth_t *veth = port->state;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(port->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) < 0) error = errno;
  if (error == 0) return;
  port->statistics[PORT_ERRORS]++;
  if ((int)if_nametoindex(veth->name) == veth->index) return;
  close(port->fd); // this also takes it out of the epoll set
  port->fd = -1;
}

static void count_ring_drops(port_t *port) {
  struct tpacket_stats statistics;
  socklen_t bytes = sizeof statistics;
  if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes) == 0) {
    port->statistics[RX_OVERFLOW] += statistics.tp_drops;
  }
}

// The longest frame of a slot that the switch can carry with its VLAN tag restored.
static uint32_t longest(const struct tpacket2_hdr *slot) {
  return FRAME_BYTES_MAX - (slot->tp_status & TP_STATUS_VLAN_VALID ? VLAN_TAG_BYTES : 0);
}

// Take the whole frame of a slot that was too small. Returns its length, 0 if it is longer than LARGE_BYTES.
static uint32_t take_large(port_t *port, struct virtio_net_hdr *offload) {
  veth_t *veth = port->state;
  struct iovec parts[] = {{offload, sizeof *offload}, {veth->large + VLAN_TAG_BYTES, LARGE_BYTES}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  ssize_t bytes = recvmsg(port->fd, &message, MSG_DONTWAIT);
  if (bytes < (ssize_t)sizeof *offload || message.msg_flags & MSG_TRUNC) return 0;
  return (uint32_t)bytes - (uint32_t)sizeof *offload;
}

static bool next_segment(port_t *port, const struct tpacket2_hdr *slot, frame_t *frame) {
  veth_t *veth = port->state;
  while (veth->segments.next < veth->segments.bytes) {
    frame->bytes = segments_cut(&veth->segments, &frame->data);
    if (frame->bytes <= longest(slot)) {
      if (slot->tp_status & TP_STATUS_VLAN_VALID) restore_vlan(frame, slot);
      return true;
    }
    port->statistics[RX_OVERSIZE]++;
  }
  return false;
}

// The first frame of a slot; false if it has none.
static bool take_slot(port_t *port, struct tpacket2_hdr *slot, frame_t *frame) {
  veth_t *veth = port->state;
  *frame = (frame_t){(uint8_t *)slot + slot->tp_mac, slot->tp_snaplen};
  struct virtio_net_hdr offload = {0};
  if (slot->tp_status & TP_STATUS_COPY) {
    *frame = (frame_t){veth->large + VLAN_TAG_BYTES, take_large(port, &offload)};
  } else {
    memcpy(&offload, frame->data - sizeof offload, sizeof offload);
    if (slot->tp_snaplen < slot->tp_len) { // the queue of large frames was full
      port->statistics[RX_OVERFLOW]++;
      return false;
    }
  }
  bool is_super_frame = offload.gso_type != VIRTIO_NET_HDR_GSO_NONE;
  if (is_super_frame && segments_begin(&veth->segments, &offload, frame->data, frame->bytes)) {
    port->statistics[RX_SUPER_FRAMES]++;
    return next_segment(port, slot, frame);
  }
  veth->segments.next = veth->segments.bytes = 0;
  if (is_super_frame || frame->bytes == 0 || frame->bytes > longest(slot)) {
    port->statistics[RX_OVERSIZE]++;
    return false;
  }
  offload_checksum(&offload, frame->data, frame->bytes);
  if (slot->tp_status & TP_STATUS_VLAN_VALID) restore_vlan(frame, slot);
  return true;
}

static void veth_receive(port_t *port) {
  veth_t *veth = port->state;
  veth->taken = veth->batch_frames = 0;
  veth->segments.next = veth->segments.bytes = 0;
  veth->is_losing = false;
  if (!(slot_status(slot_at(veth, veth->next)) & TP_STATUS_USER)) check_error(port);
}

// A batch ends with the slot that fills it, so that the segments of a super-frame are in one batch.
static bool veth_next(port_t *port, frame_t *frame) {
  veth_t *veth = port->state;
  if (veth->taken > 0 && next_segment(port, slot_at(veth, veth->next + veth->taken - 1), frame)) {
    veth->batch_frames++;
    return true;
  }
  while (veth->batch_frames < PORT_BATCH && veth->taken < veth->slots) {
    struct tpacket2_hdr *slot = slot_at(veth, veth->next + veth->taken);
    uint32_t status = slot_status(slot);
    if (!(status & TP_STATUS_USER)) return false;
    veth->taken++;
    veth->is_losing = veth->is_losing || status & TP_STATUS_LOSING;
    if (!take_slot(port, slot, frame)) continue;
    veth->batch_frames++;
    slot = slot_at(veth, veth->next + veth->taken);
    if (slot_status(slot) & TP_STATUS_USER) port_prefetch((frame_t){(uint8_t *)slot + slot->tp_mac, slot->tp_snaplen});
    return true;
  }
  return false;
}

static void veth_release(port_t *port) {
  veth_t *veth = port->state;
  if (veth->is_losing) count_ring_drops(port);
  for (; veth->taken > 0; veth->taken--) {
    struct tpacket2_hdr *slot = slot_at(veth, veth->next);
    atomic_store_explicit((_Atomic __u32 *)&slot->tp_status, TP_STATUS_KERNEL, memory_order_release);
    veth->next++;
  }
}

static statistic_t drop_cause(int error) {
  switch (error) {
  case EAGAIN:
  case ENOBUFS: return TX_OVERFLOW; // the send buffer or the queueing discipline is full
  case EMSGSIZE: return TX_OVERSIZE;
  case ENETDOWN:
  case ENXIO:
  case ENODEV: return TX_DOWN;
  default: return PORT_ERRORS;
  }
}

// The kernel does not compare the segments of a super-frame with the MTU, which may have changed.
static bool fits_mtu(veth_t *veth, uint32_t bytes) {
  struct ifreq request = {0};
  if (veth->frame_limit == 0) {
    memcpy(request.ifr_name, veth->name, sizeof request.ifr_name);
    bool is_known = ioctl(veth->sender, SIOCGIFMTU, &request) == 0;
    veth->frame_limit = ETH_HLEN + (is_known ? (uint32_t)request.ifr_mtu : 0);
  }
  return bytes <= veth->frame_limit;
}

static uint32_t fill_message(port_t *port, packet_t *const *packets, uint32_t count, message_t *message) {
  static const struct virtio_net_hdr nothing_to_do;
  veth_t *veth = port->state;
  joined_t *joined = message->joined;
  uint32_t number = veth->joins_udp || veth->joins_tcp ? join_packets(packets, count, joined) : 1;
  if (number > 1 && !((joined->is_udp ? veth->joins_udp : veth->joins_tcp) && fits_mtu(veth, packets[0]->bytes))) {
    number = 1;
  }
  struct iovec *vectors = message->vectors;
  if (number == 1) {
    vectors[0] = (struct iovec){(void *)&nothing_to_do, sizeof nothing_to_do};
    vectors[1] = (struct iovec){packets[0]->data, packets[0]->bytes};
  } else {
    vectors[0] = (struct iovec){&joined->offload, sizeof joined->offload};
    vectors[1] = (struct iovec){joined->header, joined->header_bytes};
    for (uint32_t i = 0; i < number; i++) {
      vectors[2 + i] =
          (struct iovec){packets[i]->data + joined->header_bytes, packets[i]->bytes - joined->header_bytes};
    }
  }
  message->header->msg_iovlen = number == 1 ? 2 : 2 + number;
  return number;
}

// EINVAL: the kernel does not know this kind of super-frame (UDP: before Linux 6.2).
static void super_frame_refused(port_t *port, const message_t *message, int error) {
  veth_t *veth = port->state;
  if (error != EINVAL) return;
  if (message->joined->is_udp) veth->joins_udp = false;
  else veth->joins_tcp = false;
}

static const sending_ops_t sending = {fill_message, super_frame_refused, drop_cause};

static void veth_transmit(port_t *port, packet_t *const *packets, uint32_t count) {
  veth_t *veth = port->state;
  veth->frame_limit = 0;
  send_packets(port, veth->sender, &sending, packets, count);
}

static void veth_close(port_t *port) {
  veth_t *veth = port->state;
  if (veth->ring) munmap(veth->ring, RING_BYTES);
  if (port->fd >= 0) close(port->fd);
  port->fd = -1;
  if (veth->sender >= 0) close(veth->sender);
  if (veth->claim >= 0) close(veth->claim);
  free(veth->large);
  free(veth);
}

static uint32_t veth_super_frames(const port_t *port) {
  const veth_t *veth = port->state;
  return SUPER_FRAMES_RECEIVED | (veth->joins_udp ? SUPER_FRAMES_SENT_UDP : 0) |
         (veth->joins_tcp ? SUPER_FRAMES_SENT_TCP : 0);
}

static const port_ops_t veth_ops = {veth_receive, veth_next, veth_release, veth_transmit, veth_close, count_ring_drops,
                                    veth_super_frames};

static int claim_interface(veth_t *veth) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  int bytes = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "switchfold-port-%d", veth->index);
  veth->claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (veth->claim < 0) return -errno;
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
  return bind(veth->claim, (const struct sockaddr *)&name, size) < 0 ? -errno : 0;
}

static int read_interface(veth_t *veth, int fd, const char *interface) {
  struct ifreq request = {0};
  size_t length = strlen(interface);
  if (length == 0 || length >= IFNAMSIZ) return -ENODEV;
  memcpy(veth->name, interface, length);
  memcpy(request.ifr_name, interface, length);
  if (ioctl(fd, SIOCGIFINDEX, &request) < 0) return -errno;
  veth->index = request.ifr_ifindex;
  if (ioctl(fd, SIOCGIFMTU, &request) < 0) return -errno;
  veth->mtu = (uint32_t)request.ifr_mtu;
  veth->slot_bytes = 2048;
  while (veth->slot_bytes < veth->mtu + FRAME_OVERHEAD + 256 && veth->slot_bytes < 16384) veth->slot_bytes *= 2;
  veth->slots = RING_BYTES / veth->slot_bytes;
  return 0;
}

static int set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) < 0 ? -errno : 0;
}

// The kernel's limits apply only without CAP_NET_ADMIN.
static int set_buffer(int fd, int forced, int limited, int bytes) {
  int error = set_option(fd, SOL_SOCKET, forced, bytes);
  return error == -EPERM ? set_option(fd, SOL_SOCKET, limited, bytes) : error;
}

static int configure(veth_t *veth, int fd) {
  const struct packet_mreq promiscuous = {.mr_ifindex = veth->index, .mr_type = PACKET_MR_PROMISC};
  const struct tpacket_req ring = {BLOCK_BYTES, RING_BYTES / BLOCK_BYTES, veth->slot_bytes, veth->slots};
  struct sockaddr_ll own = {.sll_family = AF_PACKET, .sll_ifindex = veth->index};
  int error = set_option(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2);
  if (!error) error = set_option(fd, SOL_PACKET, PACKET_RESERVE, VLAN_TAG_BYTES);
  if (!error) error = set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
  if (!error) error = set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
  if (!error) error = set_option(veth->sender, SOL_PACKET, PACKET_VNET_HDR, 1);
  if (!error) error = set_option(fd, SOL_PACKET, PACKET_COPY_THRESH, 1);
  if (!error) error = set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, LARGE_QUEUE_BYTES);
  if (!error) error = set_buffer(veth->sender, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BUFFER_BYTES);
  if (!error && setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) < 0) error = -errno;
  if (error) return error;
  veth->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (veth->ring == MAP_FAILED) {
    veth->ring = NULL;
    return -errno;
  }
  // Protocol 0: it receives nothing.
  if (bind(veth->sender, (const struct sockaddr *)&own, sizeof own) < 0) return -errno;
  own.sll_protocol = htons(ETH_P_ALL);
  if (bind(fd, (const struct sockaddr *)&own, sizeof own) < 0) return -errno;
  return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0 ? -errno : 0;
}

int port_veth_open(port_t *port, const char *interface, bool super_frames) {
  veth_t *veth = calloc(1, sizeof *veth);
  if (!veth) return -ENOMEM;
  veth->claim = -1;
  veth->super_frames = veth->joins_udp = veth->joins_tcp = super_frames;
  veth->large = malloc(VLAN_TAG_BYTES + LARGE_BYTES);
  port->state = veth;
  port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  veth->sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = port->fd < 0 || veth->sender < 0 ? -errno : read_interface(veth, port->fd, interface);
  if (!error && !veth->large) error = -ENOMEM;
  if (!error) error = claim_interface(veth);
  if (!error) error = configure(veth, port->fd);
  if (error) {
    veth_close(port);
    return error;
  }
  port->ops = &veth_ops;
  return 0;
}

int port_veth_reopen(port_t *port) {
  veth_t *old = port->state;
  port_t fresh = {.fd = -1};
  if (old->claim >= 0) close(old->claim); // the interface may be back with the same index
  old->claim = -1;
  int error = port_veth_open(&fresh, old->name, old->super_frames);
  if (error) return error;
  veth_close(port);
  port->state = fresh.state;
  port->fd = fresh.fd;
  return 0;
}
