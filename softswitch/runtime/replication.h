// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// From a received frame to packets on egress ports, in the order of simple_switch: ingress, multicast or unicast,
// egress per replica, deparse. The caller holds the switch's lock.
#ifndef SOFTSWITCH_REPLICATION_H
#define SOFTSWITCH_REPLICATION_H

#include "pipeline.h"
#include "ports.h"
#include "switch.h"

#define GROUPS_MAX 65536u

typedef struct {
  uint32_t count;
  replica_t replicas[];
} group_t;

typedef struct {
  const pipeline_ops_t *ops; // NULL: no program
  pipeline_t *pipeline;
  phv_t *phv, *replica_phv;
  group_t *groups[GROUPS_MAX]; // by multicast group id
  port_t *ports[PORTS_MAX];    // by number
  uint64_t started_ns;         // time stamps of the program count from here
} replication_t;

int replication_load(replication_t *, const pipeline_ops_t *); // on failure the old program stays
void replication_unload(replication_t *);
int replication_set_group(replication_t *, uint32_t group, const replica_t *, uint32_t count);
int replication_delete_group(replication_t *, uint32_t group);

// A frame as the wire brought it: impairments, then the program.
void replication_receive(replication_t *, batch_t *, port_t *, const frame_t *);
// What the in impairments release by now.
void replication_advance_in(replication_t *, batch_t *, port_t *, uint64_t now_ns);

#endif
