// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packet buffers: a pool that grows to what the traffic needs and then allocates nothing more, and intrusive lists.
#ifndef SOFTSWITCH_PACKETS_H
#define SOFTSWITCH_PACKETS_H

#include <stdint.h>

#define FRAME_BYTES_MAX 9232u // a jumbo frame with its VLAN tag

typedef struct packet packet_t;
struct packet {
  packet_t *next;
  uint64_t release_ns;     // while it is held or delayed
  uint64_t release_sequence;
  packet_t *fields;        // while it waits for another pass: the metadata that it keeps, or NULL
  uint32_t ingress_port, field_list; // likewise
  uint16_t instance_type;            // likewise
  uint16_t priority;                 // within a stage of impairments: the queue that it waits in
  uint32_t bytes;
  uint8_t data[FRAME_BYTES_MAX];
};

typedef struct {
  packet_t *free;
  uint32_t allocated, limit;
} pool_t;

typedef struct {
  packet_t *head, *tail;
  uint32_t count;
} packet_list_t;

packet_t *pool_take(pool_t *); // NULL at the limit or out of memory
packet_t *pool_copy(pool_t *, const uint8_t *data, uint32_t bytes);
void pool_give(pool_t *, packet_t *);
void pool_destroy(pool_t *);

void packet_list_append(packet_list_t *, packet_t *);
packet_t *packet_list_pop(packet_list_t *);

#endif
