// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "packet_path.h"

#include <string.h>

#define DIGEST_BYTES_MAX 8192
#define CLONE_PRIORITY 0u // a clone's standard metadata is empty

static uint64_t time_us(const replication_t *engine, const batch_t *batch) {
  return (batch->now_ns - engine->started_ns) / 1000;
}

// ---- another pass ----

static void drop_again(replication_t *engine, batch_t *batch, packet_t *packet) {
  port_t *from = packet->ingress_port < PORTS_MAX ? engine->ports[packet->ingress_port] : NULL;
  if (from) from->statistics[DROPPED_RECIRCULATED]++;
  if (packet->fields) pool_give(&batch->pool, packet->fields);
  packet->fields = NULL;
  pool_give(&batch->pool, packet);
}

// Takes ownership of a packet that is to be parsed again, and saves the fields that it keeps.
static void queue_again(replication_t *engine, batch_t *batch, port_t *from, packet_t *packet, const phv_t *phv,
                        uint32_t instance_type, uint32_t field_list) {
  packet->ingress_port = from->number;
  packet->instance_type = (uint16_t)instance_type;
  packet->field_list = field_list;
  packet->fields = NULL;
  if (engine->again.count >= WAITING_MAX) {
    drop_again(engine, batch, packet);
    return;
  }
  if (field_list) {
    packet->fields = pool_take(&batch->pool);
    int bytes = packet->fields ? engine->ops->save_fields(engine->pipeline, phv, field_list, packet->fields->data,
                                                          FRAME_BYTES_MAX)
                               : P_FULL;
    if (bytes < 0) {
      drop_again(engine, batch, packet);
      return;
    }
    packet->fields->bytes = (uint32_t)bytes;
  }
  packet_list_append(&engine->again, packet);
}

static void resubmit(replication_t *engine, batch_t *batch, port_t *from, const uint8_t *frame, uint32_t bytes,
                     uint32_t field_list) {
  packet_t *packet = pool_copy(&batch->pool, frame, bytes);
  if (packet) {
    queue_again(engine, batch, from, packet, engine->phv, INSTANCE_RESUBMIT, field_list);
  } else {
    from->statistics[DROPPED_RECIRCULATED]++;
  }
}

// ---- egress ----

static void clone_in_egress(replication_t *engine, port_t *from, const phv_t *phv, const intrinsic_t *asked) {
  if (asked->clone_session >= SESSIONS_MAX || !engine->sessions[asked->clone_session]) return;
  egress_copy_t *copy = engine->clones_left ? replication_take_copy(engine) : NULL;
  if (!copy) {
    from->statistics[DROPPED_CLONES]++;
    return;
  }
  engine->clones_left--;
  engine->ops->copy_phv(copy->phv, phv);
  engine->ops->copy_fields(engine->pipeline, copy->phv, phv, asked->clone_fields);
  copy->session = asked->clone_session;
  copy->next = NULL;
  if (engine->clones) {
    engine->last_clone->next = copy;
  } else {
    engine->clones = copy;
  }
  engine->last_clone = copy;
}

// Run egress and deparser for one replica. Overwrites the phv. limit: most bytes that leave. priority: its queue.
static void send_replica(replication_t *engine, batch_t *batch, port_t *from, phv_t *phv, packet_info_t *info,
                         uint32_t limit, uint32_t priority) {
  port_t *to = info->egress_port < PORTS_MAX ? engine->ports[info->egress_port] : NULL;
  intrinsic_t asked = {0};
  if (to) info->enq_qdepth = info->deq_qdepth = impairments_queued(&to->out, priority, batch->now_ns);
  engine->ops->egress(engine->pipeline, phv, info, &asked);
  if (asked.clone_session != PIPELINE_NONE) clone_in_egress(engine, from, phv, &asked);
  if (asked.egress_spec == engine->drop_port) {
    from->statistics[DROPPED_BY_PROGRAM]++;
    return;
  }
  bool is_recirculated = asked.recirculate_fields != PIPELINE_NONE;
  if (!to && !is_recirculated) {
    from->statistics[DROPPED_UNKNOWN_PORT]++;
    return;
  }
  port_t *counted = is_recirculated ? from : to;
  packet_t *packet = pool_take(&batch->pool);
  if (!packet) {
    counted->statistics[TX_OVERFLOW]++;
    return;
  }
  int bytes = engine->ops->deparse(engine->pipeline, phv, packet->data, FRAME_BYTES_MAX);
  if (bytes < 0) {
    counted->statistics[TX_OVERSIZE]++;
    pool_give(&batch->pool, packet);
    return;
  }
  packet->bytes = (uint32_t)bytes;
  if (is_recirculated) {
    queue_again(engine, batch, from, packet, phv, INSTANCE_RECIRC, asked.recirculate_fields);
    return;
  }
  if (asked.truncate_bytes < limit) limit = asked.truncate_bytes;
  if (packet->bytes > limit) packet->bytes = limit;
  port_enqueue(to, batch, packet, priority);
}

// Send one packet to every replica. Overwrites the phv.
static void replicate(replication_t *engine, batch_t *batch, port_t *from, phv_t *original, const replicas_t *replicas,
                      packet_info_t *info, uint32_t priority) {
  uint32_t limit = replicas->packet_length_bytes ? replicas->packet_length_bytes : UINT32_MAX;
  for (uint32_t i = 0; i < replicas->count; i++) {
    phv_t *phv = original;
    if (i + 1 < replicas->count) { // the last replica may use the original
      phv = engine->replica_phv;
      engine->ops->copy_phv(phv, original);
    }
    info->egress_port = replicas->replicas[i].port;
    info->egress_rid = replicas->replicas[i].replica_id;
    send_replica(engine, batch, from, phv, info, limit, priority);
  }
}

// ---- after ingress ----

static packet_info_t info_of_copy(const replication_t *engine, const batch_t *batch, uint32_t bytes,
                                  uint32_t instance_type) {
  uint64_t now_us = time_us(engine, batch);
  return (packet_info_t){.packet_length = bytes, .instance_type = instance_type, .egress_global_timestamp = now_us,
                         .enq_timestamp = (uint32_t)now_us};
}

// Clone the packet as it came to ingress: it is parsed again and keeps only the metadata of the field list.
static void clone_in_ingress(replication_t *engine, batch_t *batch, port_t *from, const uint8_t *frame, uint32_t bytes,
                             const intrinsic_t *asked) {
  const replicas_t *session = asked->clone_session < SESSIONS_MAX ? engine->sessions[asked->clone_session] : NULL;
  if (!session) return;
  egress_copy_t *copy = replication_take_copy(engine);
  if (!copy) {
    from->statistics[DROPPED_CLONES]++;
    return;
  }
  packet_info_t parsed_with = {.ingress_port = from->number};
  engine->ops->start(engine->pipeline, copy->phv, frame, bytes, &parsed_with);
  engine->ops->parse(engine->pipeline, copy->phv);
  engine->ops->copy_fields(engine->pipeline, copy->phv, engine->phv, asked->clone_fields);
  packet_info_t info = info_of_copy(engine, batch, bytes, INSTANCE_INGRESS_CLONE);
  replicate(engine, batch, from, copy->phv, session, &info, CLONE_PRIORITY);
  replication_give_copy(engine, copy);
}

static void send_digest(replication_t *engine, port_t *from, uint32_t learn_list) {
  uint8_t sample[DIGEST_BYTES_MAX];
  if (!engine->digests.data) return;
  int bytes = engine->ops->digest(engine->pipeline, engine->phv, learn_list, sample, sizeof sample);
  if (bytes < 0 || !reports_put(&engine->digests, learn_list, sample, (uint32_t)bytes)) {
    from->statistics[DROPPED_DIGESTS]++;
  }
}

// Run every egress clone of the packet, and the clones of these clones.
static void run_clones(replication_t *engine, batch_t *batch, port_t *from, uint32_t bytes) {
  while (engine->clones) {
    egress_copy_t *copy = engine->clones;
    engine->clones = copy->next;
    packet_info_t info = info_of_copy(engine, batch, bytes, INSTANCE_EGRESS_CLONE);
    replicate(engine, batch, from, copy->phv, engine->sessions[copy->session], &info, CLONE_PRIORITY);
    replication_give_copy(engine, copy);
  }
}

static void forward(replication_t *engine, batch_t *batch, port_t *from, const intrinsic_t *asked,
                    packet_info_t *info) {
  if (asked->mcast_grp) {
    const replicas_t *group = asked->mcast_grp < GROUPS_MAX ? engine->groups[asked->mcast_grp] : NULL;
    if (!group) {
      from->statistics[DROPPED_UNKNOWN_GROUP]++;
      return;
    }
    if (asked->priority >= engine->priority_queues) {
      from->statistics[DROPPED_PRIORITY]++;
      return;
    }
    info->instance_type = INSTANCE_REPLICATION;
    replicate(engine, batch, from, engine->phv, group, info, asked->priority);
  } else if (asked->egress_spec == engine->drop_port) {
    from->statistics[DROPPED_BY_PROGRAM]++;
  } else if (asked->priority >= engine->priority_queues) {
    from->statistics[DROPPED_PRIORITY]++;
  } else {
    info->instance_type = INSTANCE_NORMAL;
    info->egress_port = asked->egress_spec;
    send_replica(engine, batch, from, engine->phv, info, UINT32_MAX, asked->priority);
  }
}

// Run the program for one pass. again: the packet of a further pass, with the fields that it keeps; NULL: the first pass.
static void run_program(replication_t *engine, batch_t *batch, port_t *from, const uint8_t *frame, uint32_t bytes,
                        packet_info_t *info, const packet_t *again) {
  const pipeline_ops_t *ops = engine->ops;
  intrinsic_t asked = {0};
  engine->clones_left = CLONES_MAX;
  ops->start(engine->pipeline, engine->phv, frame, bytes, info);
  if (again && again->fields) {
    ops->load_fields(engine->pipeline, engine->phv, again->field_list, again->fields->data, again->fields->bytes);
  }
  ops->parse(engine->pipeline, engine->phv);
  ops->ingress(engine->pipeline, engine->phv, &asked);
  if (asked.clone_session != PIPELINE_NONE) clone_in_ingress(engine, batch, from, frame, bytes, &asked);
  if (asked.digest_list) send_digest(engine, from, asked.digest_list);
  if (asked.resubmit_fields != PIPELINE_NONE) {
    resubmit(engine, batch, from, frame, bytes, asked.resubmit_fields);
  } else {
    forward(engine, batch, from, &asked, info);
  }
  if (engine->clones) run_clones(engine, batch, from, bytes);
}

static void run_frame(replication_t *engine, batch_t *batch, port_t *from, const uint8_t *frame, uint32_t bytes) {
  if (!engine->ops) {
    from->statistics[DROPPED_NO_PROGRAM]++;
    return;
  }
  uint64_t now_us = time_us(engine, batch);
  packet_info_t info = {.ingress_port = from->number, .packet_length = bytes, .instance_type = INSTANCE_NORMAL,
                        .ingress_global_timestamp = now_us, .egress_global_timestamp = now_us,
                        .enq_timestamp = (uint32_t)now_us};
  run_program(engine, batch, from, frame, bytes, &info, NULL);
  if (engine->again.count) path_run_again(engine, batch, PASSES_AT_ONCE);
}

void path_run_again(replication_t *engine, batch_t *batch, uint32_t passes) {
  for (uint32_t i = 0; i < passes && engine->again.count; i++) {
    packet_t *packet = packet_list_pop(&engine->again);
    port_t *from = packet->ingress_port < PORTS_MAX ? engine->ports[packet->ingress_port] : NULL;
    if (engine->ops && from) {
      // As in simple_switch, metadata starts empty, except the fields that the packet kept.
      packet_info_t info = info_of_copy(engine, batch, packet->bytes, packet->instance_type);
      run_program(engine, batch, from, packet->data, packet->bytes, &info, packet);
    }
    if (packet->fields) pool_give(&batch->pool, packet->fields);
    packet->fields = NULL;
    pool_give(&batch->pool, packet);
  }
}

void path_drop_again(replication_t *engine, batch_t *batch) {
  while (engine->again.count) drop_again(engine, batch, packet_list_pop(&engine->again));
}

// ---- arrival ----

void path_receive(replication_t *engine, batch_t *batch, port_t *port, const frame_t *frame) {
  port->statistics[RX_PACKETS]++;
  port->statistics[RX_BYTES] += frame->bytes;
  port_capture(port, frame->data, frame->bytes);
  if (!port->in.is_active) {
    run_frame(engine, batch, port, frame->data, frame->bytes);
    return;
  }
  packet_t *packet = pool_copy(&batch->pool, frame->data, frame->bytes);
  if (!packet) {
    port->statistics[RX_OVERFLOW]++;
    return;
  }
  impairments_push(&port->in, &batch->pool, packet, 0, batch->now_ns, batch->ignore_time);
  path_advance_in(engine, batch, port, 0);
}

void path_advance_in(replication_t *engine, batch_t *batch, port_t *port, uint64_t now_ns) {
  impairments_advance(&port->in, now_ns);
  for (packet_t *packet = impairments_pop(&port->in); packet; packet = impairments_pop(&port->in)) {
    run_frame(engine, batch, port, packet->data, packet->bytes);
    pool_give(&batch->pool, packet);
  }
}
