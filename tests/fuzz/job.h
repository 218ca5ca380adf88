// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What takes part in a schedule: workers of the C library, their ports at the switch, and tensors, all drawn at random.
#ifndef SWITCHFOLD_FUZZ_JOB_H
#define SWITCHFOLD_FUZZ_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/frames.h"
#include "gathers.h"
#include "network.h"
#include "slots/reducer.h"
#include "slot_switch.h"
#include "transport/socket_transport.h"
#include "tensors.h"

#define MOST_TREES 3u
#define MOST_SLOTS 32u

typedef struct {
  int fd, wake_fd;
  socket_transport_t *transport;
  reducer_t *reducer;
  uint32_t num_enqueued[NUM_STREAMS], num_gathers;
  uint8_t *withheld;
  uint64_t num_received, num_results, num_blocks; // datagrams that the reducer got
} worker_t;

typedef struct {
  bool is_hostile, has_frames; // whether packets are frames; those of SUPER_FRAMES are datagrams
  bool is_packet_socket;
  bool has_blocks; // the switch copies the blocks of allgathers
  messages_t messages;
  uint32_t num_workers, num_trees, values_per_packet, datagram_bytes, packet_bytes;
  uint32_t slot_count, exponent_slots;
  uint16_t tree_ids[MOST_TREES];
  uint32_t tree_slots[MOST_TREES], first_slot[MOST_TREES];
  slot_place_t places[MOST_SLOTS];
  uint32_t num_tensors[NUM_STREAMS];
  tensor_t tensors[NUM_STREAMS][MOST_TENSORS];
  uint32_t num_gathers;
  gathered_t gathers[MOST_GATHERS];
  slot_switch_t held;
  frames_t frames; // from the switch
  worker_t workers[MOST_WORKERS];
  port_t ports[MOST_WORKERS];
  queue_t in;
  packet_t latest; // that the switch sent
  uint64_t num_damaged;
  const char *failure;
} job_t;

void job_init(job_t *, bool is_hostile);
void job_close(job_t *);

// The tree and the slot in it that a datagram names. Returns false if there is no such slot.
bool job_slot(const job_t *, const uint8_t *datagram, uint32_t *tree, uint32_t *local);

// Whether a datagram is a multicast that the other workers take for one of this worker, by its header alone.
bool job_is_multicast(const job_t *, uint32_t id, const uint8_t *datagram);

// Whether a worker has no means to notice that a packet's values are wrong. Of a multicast it may have none.
bool job_is_deceived(const job_t *, const packet_t *);

#endif
