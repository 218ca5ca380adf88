// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program, and the replication engine's multicast groups and clone sessions.
// packet_path.c carries packets through. The caller holds the switch's lock.
#ifndef SOFTSWITCH_REPLICATION_H
#define SOFTSWITCH_REPLICATION_H

#include "pipeline.h"
#include "ports.h"
#include "reports.h"
#include "switch.h"

#define GROUPS_MAX 65536u
#define SESSIONS_MAX 32768u // clone session ids have 15 bits
#define WAITING_MAX 1024u   // packets that may wait for another pass; more are dropped
#define CLONES_MAX 1024u    // egress clones that may descend from one packet; more are dropped

typedef struct {
  uint32_t count;
  uint32_t packet_length_bytes; // of a clone session: copies are cut to this; 0: whole
  replica_t replicas[];
} replicas_t;

// A copy of a packet that goes to egress.
typedef struct egress_copy egress_copy_t;
struct egress_copy {
  egress_copy_t *next;
  phv_t *phv;
  uint32_t session;
};

typedef struct {
  const pipeline_ops_t *ops; // NULL: no program
  pipeline_t *pipeline;
  phv_t *phv, *replica_phv;
  replicas_t *groups[GROUPS_MAX];     // by multicast group id
  replicas_t *sessions[SESSIONS_MAX]; // by clone session id
  port_t *ports[PORTS_MAX];           // by number
  uint64_t started_ns;                // time stamps of the program count from here
  uint32_t drop_port;
  uint32_t priority_queues;           // of each port: packets of that priority and above are dropped
  packet_list_t again;                // resubmitted and recirculated, waiting for ingress
  egress_copy_t *clones, *last_clone; // egress clones of the current packet, in order
  egress_copy_t *free_clones;
  uint32_t clones_left; // egress clones that the current packet may still make
  reports_t digests, messages;
} replication_t;

void replication_init(replication_t *, uint32_t drop_port, uint32_t priority_queues);
void replication_destroy(replication_t *);
int replication_load(replication_t *, const pipeline_ops_t *); // on failure the old program stays
void replication_unload(replication_t *);
void replication_set_log(replication_t *, bool is_on); // messages of the program
int replication_set_group(replication_t *, uint32_t group, const replica_t *, uint32_t count);
int replication_delete_group(replication_t *, uint32_t group);
int replication_set_session(replication_t *, uint32_t session, const replica_t *, uint32_t count,
                            uint32_t packet_length_bytes);
int replication_delete_session(replication_t *, uint32_t session);
egress_copy_t *replication_take_copy(replication_t *); // NULL: out of memory
void replication_give_copy(replication_t *, egress_copy_t *);

#endif
