// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Load generator and sink in one: a closed loop over slots. A slot's frames go in by some ports, its answers come back
// by some ports; once all have come, and each was the frame expected, the slot starts its next round. So nothing is
// counted that was lost or wrong, and a switch of any speed is fed as fast as it answers.
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internet_checksum.h"
#include "layers.h"
#include "offload.h"
#include "packet_ring.h"

#define PORTS_MAX 16
#define IDLE_SPINS 2000
#define IDENTIFICATION_AT (ETH_HLEN + 4)
#define IPV4_CHECKSUM_AT (ETH_HLEN + 10)
#define UDP_AT (ETH_HLEN + IPV4_BYTES)
#define HEADERS_BYTES (UDP_AT + UDP_BYTES)
#define SUPER_FRAME_MAX 64u // frames in one

// Frames consist of a head of its own for each slot and port, and a tail that slots share (slot % tails). Offsets are
// in the head: of the slot's index and round, 32 bits each, big-endian, of the UDP checksum, 0 if there is none, and of a
// byte that may have any value in an answer, 0 if there is none; it must be the higher byte of its 16-bit word.
typedef struct {
  uint32_t ports, slots, tails, head_bytes, tail_bytes;
  uint32_t slot_offset, round_offset, checksum_offset, any_offset;
  const uint64_t *sends, *answers;           // [slots]: bit p: port p
  uint8_t *heads;                            // [slots][ports][head_bytes], round 0; written to
  const uint8_t *bodies;                     // [tails][ports][tail_bytes]
  const uint8_t *answer_heads, *answer_bodies; // likewise, what is expected
} load_shape_t;

typedef struct {
  uint64_t sent, received; // frames
  uint64_t elapsed_ns;     // from before the first frame to after the last answer
  uint32_t wrong_port;     // after LOAD_WRONG: where the frame came, and the frame
  uint32_t wrong_bytes;
  uint8_t wrong[256];
} load_result_t;

typedef struct {
  packet_ring_t rings[PORTS_MAX];
  uint32_t ports;
  uint32_t round;
  bool has_super_frames;
  uint8_t large[SUPER_FRAME_BYTES];
} load_t;

typedef struct {
  struct virtio_net_hdr offload;
  uint8_t head[HEADERS_BYTES];
} super_frame_t;

typedef struct {
  uint32_t *ready, *next; // slots to send, slots whose last answer has come
  uint32_t *rounds;       // [slots]
  uint64_t *waiting;      // [slots]: ports whose answer is missing
  uint8_t *checksums;     // [slots][ports][2]: as of round 0
} work_t;

enum { LOAD_LOST = -1000, LOAD_WRONG = -1001 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t read32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return ntohl(value);
}

static void write32(uint8_t *at, uint32_t value) {
  value = htonl(value);
  memcpy(at, &value, 4);
}

// The checksum once a zero round has become this one, and a zero word `other` (RFC 1624).
static uint16_t checksum_with(const uint8_t *base, uint32_t round, uint32_t other) {
  uint32_t sum = (uint16_t)~(base[0] << 8 | base[1]);
  sum += (round >> 16) + (round & 0xffff) + other;
  sum = (sum >> 16) + (sum & 0xffff);
  sum = (sum >> 16) + (sum & 0xffff);
  uint16_t checksum = (uint16_t)~sum;
  return checksum ? checksum : 0xffff;
}

static size_t place(const load_shape_t *shape, uint32_t slot, uint32_t port) {
  return (size_t)slot * shape->ports + port;
}

static const uint8_t *tail_of(const load_shape_t *shape, const uint8_t *bodies, uint32_t slot, uint32_t port) {
  return bodies + place(shape, slot % shape->tails, port) * shape->tail_bytes;
}

// is_cut: of a super-frame, whose cut numbers the packets.
static bool is_expected(const load_shape_t *shape, const struct iovec *frame, uint32_t port, const uint32_t *rounds,
                        bool is_cut, uint32_t *slot) {
  const uint8_t *data = frame->iov_base;
  if (frame->iov_len != shape->head_bytes + shape->tail_bytes) return false;
  *slot = read32(data + shape->slot_offset);
  if (*slot >= shape->slots) return false;
  uint32_t round = rounds[*slot];
  uint8_t head[256];
  memcpy(head, shape->answer_heads + place(shape, *slot, port) * shape->head_bytes, shape->head_bytes);
  write32(head + shape->round_offset, round);
  if (is_cut) {
    memcpy(head + IDENTIFICATION_AT, data + IDENTIFICATION_AT, 2);
    memcpy(head + IPV4_CHECKSUM_AT, data + IPV4_CHECKSUM_AT, 2);
    if (ones_sum(data + ETH_HLEN, IPV4_BYTES) != 0xffff) return false;
  }
  uint8_t any = shape->any_offset ? data[shape->any_offset] : 0;
  if (shape->any_offset) head[shape->any_offset] = any;
  if (shape->checksum_offset) {
    uint16_t checksum = htons(checksum_with(head + shape->checksum_offset, round, (uint32_t)any << 8));
    // v1model's csum16 leaves a sum of 0, UDP's "no checksum", where senders write 0xffff.
    bool is_zero = checksum == 0xffff && !(data[shape->checksum_offset] | data[shape->checksum_offset + 1]);
    if (is_zero) checksum = 0;
    memcpy(head + shape->checksum_offset, &checksum, 2);
  }
  return memcmp(data, head, shape->head_bytes) == 0 &&
         memcmp(data + shape->head_bytes, tail_of(shape, shape->answer_bodies, *slot, port), shape->tail_bytes) == 0;
}

// Headers of a super-frame of `count` frames with these headers; the kernel or the receiver cuts it.
static void head_super_frame(const uint8_t *head, uint32_t frame_bytes, uint32_t count, super_frame_t *out) {
  uint32_t payload = frame_bytes - HEADERS_BYTES, udp_bytes = UDP_BYTES + count * payload;
  memcpy(out->head, head, HEADERS_BYTES);
  uint8_t *ip = out->head + ETH_HLEN, *udp = out->head + UDP_AT;
  store16(ip + 2, IPV4_BYTES + udp_bytes);
  store16(ip + 10, 0);
  store16(ip + 10, (uint16_t)~ones_sum(ip, IPV4_BYTES));
  store16(udp + 4, udp_bytes);
  store16(udp + UDP_CHECKSUM_AT, ones_fold((uint64_t)ones_sum(ip + 12, 8) + IPPROTO_UDP + udp_bytes));
  out->offload = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
                                         .hdr_len = HEADERS_BYTES, .gso_size = (uint16_t)payload,
                                         .csum_start = UDP_AT, .csum_offset = UDP_CHECKSUM_AT};
  if (count == 1) out->offload.gso_type = VIRTIO_NET_HDR_GSO_NONE;
}

// One round's frames of these slots that enter by one port, in super-frames.
static int send_joined(load_t *load, const load_shape_t *shape, uint32_t port, const work_t *work, uint32_t count,
                       uint64_t *sent) {
  uint32_t frame_bytes = shape->head_bytes + shape->tail_bytes, used = 0;
  uint32_t most = (IP_BYTES_MAX - IPV4_BYTES - UDP_BYTES) / (frame_bytes - HEADERS_BYTES);
  if (most > SUPER_FRAME_MAX) most = SUPER_FRAME_MAX;
  super_frame_t frame;
  struct iovec vectors[2 + 2 * SUPER_FRAME_MAX];
  vectors[0] = (struct iovec){&frame.offload, sizeof frame.offload};
  vectors[1] = (struct iovec){frame.head, HEADERS_BYTES};
  const uint8_t *first = NULL;
  for (uint32_t i = 0; i <= count; i++) {
    if (used == most || (i == count && used)) {
      head_super_frame(first, frame_bytes, used, &frame);
      struct mmsghdr message = {.msg_hdr = {.msg_iov = vectors, .msg_iovlen = 2 + 2 * used}};
      int result = ring_send(&load->rings[port], &message, 1);
      if (result < 0) return result;
      *sent += used;
      used = 0;
    }
    uint32_t slot = i < count ? work->ready[i] : 0;
    if (i == count || !(shape->sends[slot] >> port & 1)) continue;
    uint8_t *head = shape->heads + place(shape, slot, port) * shape->head_bytes;
    write32(head + shape->round_offset, work->rounds[slot]);
    if (used == 0) first = head;
    const uint8_t *tail = tail_of(shape, shape->bodies, slot, port);
    vectors[2 + 2 * used] = (struct iovec){head + HEADERS_BYTES, shape->head_bytes - HEADERS_BYTES};
    vectors[3 + 2 * used] = (struct iovec){(void *)tail, shape->tail_bytes};
    used++;
  }
  return 0;
}

// One round's frames of these slots that enter by one port.
static int send_port(load_t *load, const load_shape_t *shape, uint32_t port, const work_t *work, uint32_t count,
                     uint64_t *sent) {
  struct iovec vectors[RING_BATCH][2];
  struct mmsghdr messages[RING_BATCH];
  uint32_t used = 0;
  for (uint32_t i = 0; i <= count; i++) {
    if (used == RING_BATCH || (i == count && used)) {
      int result = ring_send(&load->rings[port], messages, used);
      if (result < 0) return result;
      *sent += used;
      used = 0;
    }
    uint32_t slot = i < count ? work->ready[i] : 0;
    if (i == count || !(shape->sends[slot] >> port & 1)) continue;
    size_t at = place(shape, slot, port);
    uint8_t *head = shape->heads + at * shape->head_bytes;
    write32(head + shape->round_offset, work->rounds[slot]);
    if (shape->checksum_offset) {
      uint16_t checksum = htons(checksum_with(work->checksums + 2 * at, work->rounds[slot], 0));
      memcpy(head + shape->checksum_offset, &checksum, 2);
    }
    vectors[used][0] = (struct iovec){head, shape->head_bytes};
    vectors[used][1] = (struct iovec){(void *)tail_of(shape, shape->bodies, slot, port), shape->tail_bytes};
    messages[used] = (struct mmsghdr){.msg_hdr = {.msg_iov = vectors[used], .msg_iovlen = 2}};
    used++;
  }
  return 0;
}

// Takes one frame; if it is its slot's last answer, the slot is appended to ready. 0 or LOAD_WRONG.
static int take_frame(const load_shape_t *shape, const struct iovec *frame, uint32_t port, bool is_cut,
                      const work_t *work, uint32_t *ready_count, load_result_t *out) {
  uint32_t slot;
  if (!is_expected(shape, frame, port, work->rounds, is_cut, &slot) || !(work->waiting[slot] >> port & 1)) { // or twice
    out->wrong_port = port;
    out->wrong_bytes = (uint32_t)(frame->iov_len < sizeof out->wrong ? frame->iov_len : sizeof out->wrong);
    memcpy(out->wrong, frame->iov_base, out->wrong_bytes);
    return LOAD_WRONG;
  }
  work->waiting[slot] &= ~(UINT64_C(1) << port);
  if (!work->waiting[slot]) work->next[(*ready_count)++] = slot;
  out->received++;
  return 0;
}

// Takes the frames of a super-frame, or the one frame, behind a virtio_net_hdr. Returns how many, or an error.
static int take_cut(const load_shape_t *shape, const struct iovec *whole, uint32_t port, const work_t *work,
                    uint32_t *ready_count, load_result_t *out) {
  struct virtio_net_hdr offload;
  segments_t segments;
  memcpy(&offload, whole->iov_base, sizeof offload);
  struct iovec frame = {(uint8_t *)whole->iov_base + sizeof offload, whole->iov_len - sizeof offload};
  if (offload.gso_type == VIRTIO_NET_HDR_GSO_NONE) {
    offload_checksum(&offload, frame.iov_base, (uint32_t)frame.iov_len);
    int result = take_frame(shape, &frame, port, false, work, ready_count, out);
    return result < 0 ? result : 1;
  }
  int count = 0;
  if (!segments_begin(&segments, &offload, frame.iov_base, (uint32_t)frame.iov_len)) return LOAD_WRONG;
  for (; segments.next < segments.bytes; count++) {
    uint8_t *data;
    frame.iov_len = segments_cut(&segments, &data);
    frame.iov_base = data;
    int result = take_frame(shape, &frame, port, true, work, ready_count, out);
    if (result < 0) return result;
  }
  return count;
}

// Takes what a port has brought, at least a batch; slots whose last answer it was are appended to ready.
static int receive_port(load_t *load, const load_shape_t *shape, uint32_t port, const work_t *work,
                        uint32_t *ready_count, load_result_t *out) {
  packet_ring_t *ring = &load->rings[port];
  struct iovec frame;
  uint32_t slots = 0;
  int count = 0;
  for (; count < (int)RING_BATCH; slots++) {
    int found = load->has_super_frames ? ring_take(ring, slots, load->large, &frame) : ring_peek(ring, slots, &frame);
    if (found == 0) break;
    if (found > 0 && load->has_super_frames) {
      found = take_cut(shape, &frame, port, work, ready_count, out);
    } else if (found > 0) {
      int result = take_frame(shape, &frame, port, false, work, ready_count, out);
      if (result < 0) found = result;
    }
    if (found < 0) return found;
    count += found;
  }
  ring_release(ring, slots);
  return count;
}

static int wait_for_frames(load_t *load, int timeout_ms) {
  struct pollfd watched[PORTS_MAX];
  for (uint32_t port = 0; port < load->ports; port++) {
    watched[port] = (struct pollfd){.fd = load->rings[port].fd, .events = POLLIN};
  }
  int result = poll(watched, load->ports, timeout_ms);
  return result < 0 && errno != EINTR ? -errno : result;
}

static int exchange(load_t *load, const load_shape_t *shape, work_t *work, uint64_t duration_ns, int timeout_ms,
                    load_result_t *out) {
  uint32_t ready_count = shape->slots, busy = 0, idle = 0;
  uint64_t started = now_ns();
  for (uint32_t slot = 0; slot < shape->slots; slot++) work->ready[slot] = slot;
  bool is_ending = false;
  while (busy || !is_ending) {
    is_ending = is_ending || now_ns() - started >= duration_ns;
    if (is_ending) ready_count = 0;
    for (uint32_t i = 0; i < ready_count; i++) {
      work->rounds[work->ready[i]]++;
      work->waiting[work->ready[i]] = shape->answers[work->ready[i]];
    }
    for (uint32_t port = 0; port < load->ports && ready_count; port++) {
      int result = load->has_super_frames ? send_joined(load, shape, port, work, ready_count, &out->sent)
                                          : send_port(load, shape, port, work, ready_count, &out->sent);
      if (result < 0) return result;
    }
    busy += ready_count;
    uint32_t completed = 0;
    int received = 0;
    for (uint32_t port = 0; port < load->ports; port++) {
      int result = receive_port(load, shape, port, work, &completed, out);
      if (result < 0) return result;
      received += result;
    }
    busy -= completed;
    uint32_t *ready = work->ready;
    work->ready = work->next;
    work->next = ready;
    ready_count = completed;
    idle = received ? 0 : idle + 1;
    if (busy && idle > IDLE_SPINS) {
      int result = wait_for_frames(load, timeout_ms);
      if (result < 0) return result;
      if (result == 0) return LOAD_LOST;
      idle = 0;
    }
  }
  out->elapsed_ns = now_ns() - started;
  return 0;
}

load_t *load_open(const char *const *interfaces, uint32_t ports, int super_frames, int *error) {
  load_t *load = calloc(1, sizeof *load);
  *error = load && ports <= PORTS_MAX ? 0 : -ENOMEM;
  if (load) load->has_super_frames = super_frames;
  for (uint32_t port = 0; !*error && port < ports; port++) {
    *error = ring_open(&load->rings[port], interfaces[port], super_frames);
    load->ports += *error == 0;
  }
  if (!*error) return load;
  for (uint32_t port = 0; load && port < load->ports; port++) ring_close(&load->rings[port]);
  free(load);
  return NULL;
}

void load_close(load_t *load) {
  for (uint32_t port = 0; port < load->ports; port++) ring_close(&load->rings[port]);
  free(load);
}

// Rounds go on from the last run of this load. 0, -errno, LOAD_LOST (no answer for timeout_ms) or LOAD_WRONG.
int load_run(load_t *load, const load_shape_t *shape, uint64_t duration_ns, int timeout_ms, load_result_t *out) {
  *out = (load_result_t){0};
  if (shape->ports != load->ports || shape->head_bytes > 256) return -EINVAL;
  size_t heads = (size_t)shape->slots * shape->ports;
  work_t work = {calloc(shape->slots, 4), calloc(shape->slots, 4), calloc(shape->slots, 4), calloc(shape->slots, 8),
                 malloc(2 * heads)};
  int result = work.ready && work.next && work.rounds && work.waiting && work.checksums ? 0 : -ENOMEM;
  for (size_t i = 0; !result && i < heads; i++) { // the heads come with round 0 and leave with it
    memcpy(work.checksums + 2 * i, shape->heads + i * shape->head_bytes + shape->checksum_offset, 2);
  }
  for (uint32_t slot = 0; !result && slot < shape->slots; slot++) work.rounds[slot] = load->round;
  if (!result) {
    result = exchange(load, shape, &work, duration_ns, timeout_ms, out);
    for (uint32_t slot = 0; slot < shape->slots; slot++) {
      if (work.rounds[slot] > load->round) load->round = work.rounds[slot];
    }
    for (size_t i = 0; i < heads; i++) {
      uint8_t *head = shape->heads + i * shape->head_bytes;
      write32(head + shape->round_offset, 0);
      if (shape->checksum_offset) memcpy(head + shape->checksum_offset, work.checksums + 2 * i, 2);
    }
  }
  free(work.ready);
  free(work.next);
  free(work.rounds);
  free(work.waiting);
  free(work.checksums);
  return result;
}
