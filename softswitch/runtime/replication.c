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
  return 0;
}

void replication_unload(replication_t *engine) {
  if (engine->ops) engine->ops->destroy(engine->pipeline);
  free(engine->phv);
  free(engine->replica_phv);
  engine->ops = NULL;
  engine->pipeline = NULL;
  engine->phv = engine->replica_phv = NULL;
  for (uint32_t group = 0; group < GROUPS_MAX; group++) {
    free(engine->groups[group]);
    engine->groups[group] = NULL;
  }
}

int replication_set_group(replication_t *engine, uint32_t group, const replica_t *replicas, uint32_t count) {
  if (group == 0 || group >= GROUPS_MAX || count > GROUPS_MAX) return P_BAD_ARGUMENT;
  group_t *created = malloc(sizeof *created + count * sizeof *replicas);
  if (!created) return P_FULL;
  created->count = count;
  if (count) memcpy(created->replicas, replicas, count * sizeof *replicas);
  free(engine->groups[group]);
  engine->groups[group] = created;
  return P_OK;
}

int replication_delete_group(replication_t *engine, uint32_t group) {
  if (group >= GROUPS_MAX || !engine->groups[group]) return P_NOT_FOUND;
  free(engine->groups[group]);
  engine->groups[group] = NULL;
  return P_OK;
}

// Egress and deparse of one replica. The phv is used up.
static void send_replica(replication_t *engine, batch_t *batch, port_t *from, phv_t *phv, packet_info_t *info) {
  port_t *to = info->egress_port < PORTS_MAX ? engine->ports[info->egress_port] : NULL;
  if (!to) {
    from->statistics[DROPPED_UNKNOWN_PORT]++;
    return;
  }
  intrinsic_t result = {0};
  engine->ops->egress(engine->pipeline, phv, info, &result);
  if (result.egress_spec == engine->ops->drop_port) {
    from->statistics[DROPPED_BY_PROGRAM]++;
    return;
  }
  packet_t *packet = pool_take(&batch->pool);
  if (!packet) {
    to->statistics[TX_OVERFLOW]++;
    return;
  }
  int bytes = engine->ops->deparse(engine->pipeline, phv, packet->data, FRAME_BYTES_MAX);
  if (bytes < 0) {
    to->statistics[TX_OVERSIZE]++;
    pool_give(&batch->pool, packet);
    return;
  }
  packet->bytes = (uint32_t)bytes;
  port_enqueue(to, batch, packet);
}

static void multicast(replication_t *engine, batch_t *batch, port_t *from, uint32_t id, packet_info_t *info) {
  const group_t *group = id < GROUPS_MAX ? engine->groups[id] : NULL;
  if (!group) {
    from->statistics[DROPPED_UNKNOWN_GROUP]++;
    return;
  }
  info->instance_type = INSTANCE_REPLICATION;
  for (uint32_t i = 0; i < group->count; i++) {
    phv_t *phv = engine->phv;
    if (i + 1 < group->count) { // the last replica may use the original
      phv = engine->replica_phv;
      engine->ops->copy_phv(phv, engine->phv);
    }
    info->egress_port = group->replicas[i].port;
    info->egress_rid = group->replicas[i].replica_id;
    send_replica(engine, batch, from, phv, info);
  }
}

static void run_program(replication_t *engine, batch_t *batch, port_t *from, const uint8_t *frame, uint32_t bytes) {
  if (!engine->ops) {
    from->statistics[DROPPED_NO_PROGRAM]++;
    return;
  }
  uint64_t now_us = (batch->now_ns - engine->started_ns) / 1000;
  packet_info_t info = {.ingress_port = from->number, .packet_length = bytes, .instance_type = INSTANCE_NORMAL,
                        .ingress_global_timestamp = now_us, .egress_global_timestamp = now_us,
                        .enq_timestamp = (uint32_t)now_us};
  intrinsic_t result = {0};
  engine->ops->start(engine->pipeline, engine->phv, frame, bytes, &info);
  engine->ops->parse(engine->pipeline, engine->phv);
  engine->ops->ingress(engine->pipeline, engine->phv, &result);
  if (result.mcast_grp) {
    multicast(engine, batch, from, result.mcast_grp, &info);
  } else if (result.egress_spec == engine->ops->drop_port) {
    from->statistics[DROPPED_BY_PROGRAM]++;
  } else {
    info.egress_port = result.egress_spec;
    send_replica(engine, batch, from, engine->phv, &info);
  }
}

void replication_receive(replication_t *engine, batch_t *batch, port_t *port, const frame_t *frame) {
  port->statistics[RX_PACKETS]++;
  port->statistics[RX_BYTES] += frame->bytes;
  port_capture(port, frame->data, frame->bytes);
  if (!port->in.is_active) {
    run_program(engine, batch, port, frame->data, frame->bytes);
    return;
  }
  packet_t *packet = pool_copy(&batch->pool, frame->data, frame->bytes);
  if (!packet) {
    port->statistics[RX_OVERFLOW]++;
    return;
  }
  impairments_push(&port->in, &batch->pool, packet, batch->now_ns, batch->ignore_time);
  replication_advance_in(engine, batch, port, 0);
}

void replication_advance_in(replication_t *engine, batch_t *batch, port_t *port, uint64_t now_ns) {
  impairments_advance(&port->in, now_ns);
  for (packet_t *packet = impairments_pop(&port->in); packet; packet = impairments_pop(&port->in)) {
    run_program(engine, batch, port, packet->data, packet->bytes);
    pool_give(&batch->pool, packet);
  }
}
