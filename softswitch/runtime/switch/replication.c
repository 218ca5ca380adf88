// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "replication.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PHV_ALIGNMENT 64u

static phv_t *allocate_phv(uint32_t bytes) {
  size_t rounded = (bytes + PHV_ALIGNMENT - 1) & ~(size_t)(PHV_ALIGNMENT - 1);
  phv_t *phv = aligned_alloc(PHV_ALIGNMENT, rounded);
  if (phv) memset(phv, 0, rounded);
  return phv;
}

void replication_init(replication_t *engine, uint32_t drop_port, uint32_t priority_queues) {
  engine->drop_port = drop_port;
  engine->priority_queues = priority_queues;
  reports_init(&engine->digests);
  reports_init(&engine->messages);
}

void replication_destroy(replication_t *engine) {
  replication_unload(engine);
  reports_destroy(&engine->digests);
  reports_destroy(&engine->messages);
}

static void take_message(void *context, const char *text, uint32_t bytes) {
  replication_t *engine = context;
  reports_put(&engine->messages, 0, text, bytes);
}

void replication_set_log(replication_t *engine, bool is_on) {
  if (engine->ops) engine->ops->set_log(engine->pipeline, is_on ? take_message : NULL, engine);
}

int replication_load(replication_t *engine, const pipeline_ops_t *ops) {
  if (ops->abi_version != PIPELINE_ABI_VERSION) return -EPROTO;
  pipeline_t *pipeline = ops->create();
  phv_t *phv = allocate_phv(ops->phv_bytes), *replica_phv = allocate_phv(ops->phv_bytes);
  if (!pipeline || !phv || !replica_phv) {
    if (pipeline) ops->destroy(pipeline);
    free(phv);
    free(replica_phv);
    return -ENOMEM;
  }
  replication_unload(engine);
  engine->ops = ops;
  engine->pipeline = pipeline;
  engine->phv = phv;
  engine->replica_phv = replica_phv;
  ops->set_drop_port(pipeline, engine->drop_port);
  replication_set_log(engine, engine->messages.data != NULL);
  return 0;
}

static void clear(replicas_t **lists, uint32_t count) {
  for (uint32_t id = 0; id < count; id++) {
    free(lists[id]);
    lists[id] = NULL;
  }
}

void replication_unload(replication_t *engine) {
  if (engine->ops) engine->ops->destroy(engine->pipeline);
  free(engine->phv);
  free(engine->replica_phv);
  engine->ops = NULL;
  engine->pipeline = NULL;
  engine->phv = engine->replica_phv = NULL;
  while (engine->free_clones) {
    egress_copy_t *copy = engine->free_clones;
    engine->free_clones = copy->next;
    free(copy->phv);
    free(copy);
  }
  clear(engine->groups, GROUPS_MAX);
  clear(engine->sessions, SESSIONS_MAX);
}

egress_copy_t *replication_take_copy(replication_t *engine) {
  egress_copy_t *copy = engine->free_clones;
  if (copy) {
    engine->free_clones = copy->next;
    return copy;
  }
  copy = calloc(1, sizeof *copy);
  if (copy) copy->phv = allocate_phv(engine->ops->phv_bytes);
  if (copy && copy->phv) return copy;
  free(copy);
  return NULL;
}

void replication_give_copy(replication_t *engine, egress_copy_t *copy) {
  copy->next = engine->free_clones;
  engine->free_clones = copy;
}

static int set_replicas(replicas_t **list, const replica_t *replicas, uint32_t count, uint32_t packet_length_bytes) {
  replicas_t *created = malloc(sizeof *created + count * sizeof *replicas);
  if (!created) return P_FULL;
  created->count = count;
  created->packet_length_bytes = packet_length_bytes;
  if (count) memcpy(created->replicas, replicas, count * sizeof *replicas);
  free(*list);
  *list = created;
  return P_OK;
}

static int delete_replicas(replicas_t **list) {
  if (!*list) return P_NOT_FOUND;
  free(*list);
  *list = NULL;
  return P_OK;
}

int replication_set_group(replication_t *engine, uint32_t group, const replica_t *replicas, uint32_t count) {
  if (group == 0 || group >= GROUPS_MAX || count > GROUPS_MAX) return P_BAD_ARGUMENT;
  return set_replicas(&engine->groups[group], replicas, count, 0);
}

int replication_delete_group(replication_t *engine, uint32_t group) {
  return group < GROUPS_MAX ? delete_replicas(&engine->groups[group]) : P_NOT_FOUND;
}

int replication_set_session(replication_t *engine, uint32_t session, const replica_t *replicas, uint32_t count,
                            uint32_t packet_length_bytes) {
  if (session >= SESSIONS_MAX || count > GROUPS_MAX) return P_BAD_ARGUMENT;
  return set_replicas(&engine->sessions[session], replicas, count, packet_length_bytes);
}

int replication_delete_session(replication_t *engine, uint32_t session) {
  return session < SESSIONS_MAX ? delete_replicas(&engine->sessions[session]) : P_NOT_FOUND;
}
