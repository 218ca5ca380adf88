// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A pipeline written by hand for tests of the runtime. The frame's first byte says what happens:
// 0 echo, 1 multicast to the group in byte 1, 2 to the CPU port, 3 drop, 4 to the port in byte 1, 5 drop in egress,
// 6 to the port in byte 1 with the priority in byte 4.
// Egress writes the replica id to byte 2 and the instance type to byte 3. Control: one counter array of 1 element that
// counts packets; one register array of 4 cells of 4 bytes; no tables.
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"

struct pipeline {
  uint64_t packets, bytes;
  uint8_t cells[4][4];
};

struct phv {
  const uint8_t *frame;
  uint32_t bytes;
  uint32_t ingress_port, packet_length;
  uint8_t head[4];
};

static pipeline_t *create(void) { return calloc(1, sizeof(pipeline_t)); }
static void destroy(pipeline_t *pipeline) { free(pipeline); }

static void start(pipeline_t *pipeline, phv_t *phv, const uint8_t *frame, uint32_t bytes, const packet_info_t *info) {
  (void)pipeline;
  *phv = (phv_t){.frame = frame, .bytes = bytes, .ingress_port = info->ingress_port,
                 .packet_length = info->packet_length};
}

static int parse(pipeline_t *pipeline, phv_t *phv) {
  (void)pipeline;
  memcpy(phv->head, phv->frame, phv->bytes < 4 ? phv->bytes : 4);
  return 0;
}

static intrinsic_t send_to(uint32_t port) {
  return (intrinsic_t){.egress_spec = port, .clone_session = PIPELINE_NONE, .resubmit_fields = PIPELINE_NONE,
                       .recirculate_fields = PIPELINE_NONE, .truncate_bytes = PIPELINE_NONE};
}

static int ingress(pipeline_t *pipeline, phv_t *phv, intrinsic_t *out) {
  const uint8_t *frame = phv->frame;
  *out = send_to(511);
  pipeline->packets++;
  pipeline->bytes += phv->packet_length;
  if (phv->bytes < 4) return 0;
  switch (frame[0]) {
  case 0:
  case 5: out->egress_spec = phv->ingress_port; break;
  case 1: out->mcast_grp = frame[1]; break;
  case 2: out->egress_spec = 255; break;
  case 4: out->egress_spec = frame[1]; break;
  case 6:
    out->egress_spec = frame[1];
    out->priority = phv->bytes > 4 ? frame[4] : 0;
    break;
  default: break;
  }
  return 0;
}

static int egress(pipeline_t *pipeline, phv_t *phv, const packet_info_t *info, intrinsic_t *out) {
  (void)pipeline;
  *out = send_to(phv->head[0] == 5 ? 511 : 0);
  phv->head[2] = (uint8_t)info->egress_rid;
  phv->head[3] = (uint8_t)info->instance_type;
  return 0;
}

static int deparse(pipeline_t *pipeline, phv_t *phv, uint8_t *out, uint32_t capacity) {
  (void)pipeline;
  if (phv->bytes > capacity) return P_BAD_ARGUMENT;
  memcpy(out, phv->frame, phv->bytes);
  memcpy(out, phv->head, 4);
  return (int)phv->bytes;
}

static void set_drop_port(pipeline_t *pipeline, uint32_t port) { (void)pipeline, (void)port; }
static void set_log(pipeline_t *pipeline, pipeline_log_t log, void *context) {
  (void)pipeline, (void)log, (void)context;
}
static int copy_fields(pipeline_t *pipeline, phv_t *to, const phv_t *from, uint32_t list) {
  return (void)pipeline, (void)to, (void)from, (void)list, 0;
}
static int save_fields(pipeline_t *pipeline, const phv_t *phv, uint32_t list, uint8_t *out, uint32_t capacity) {
  return (void)pipeline, (void)phv, (void)list, (void)out, (void)capacity, 0;
}
static int load_fields(pipeline_t *pipeline, phv_t *phv, uint32_t list, const uint8_t *from, uint32_t bytes) {
  return (void)pipeline, (void)phv, (void)list, (void)from, (void)bytes, 0;
}
static int digest(pipeline_t *pipeline, const phv_t *phv, uint32_t list, uint8_t *out, uint32_t capacity) {
  return (void)pipeline, (void)phv, (void)list, (void)out, (void)capacity, P_NOT_FOUND;
}
static void copy_phv(phv_t *to, const phv_t *from) { *to = *from; }
static int insert(pipeline_t *p, uint32_t table, const table_entry_t *entry, uint64_t *handle) {
  (void)p, (void)table, (void)entry, (void)handle;
  return P_FULL;
}
static int find(pipeline_t *p, uint32_t table, const table_entry_t *entry, uint64_t *handle) {
  (void)p, (void)table, (void)entry, (void)handle;
  return P_NOT_FOUND;
}
static int change(pipeline_t *p, uint32_t table, const table_entry_t *entry) {
  (void)p, (void)table, (void)entry;
  return P_NOT_FOUND;
}
static int set_default(pipeline_t *p, uint32_t table, const table_entry_t *entry) {
  (void)p, (void)table, (void)entry;
  return P_BAD_ARGUMENT;
}
static uint32_t size(pipeline_t *p, uint32_t table) { return (void)p, (void)table, 0; }
static int clear(pipeline_t *p, uint32_t table) { return (void)p, (void)table, P_BAD_ARGUMENT; }
static int direct(pipeline_t *p, uint32_t table, uint64_t handle, uint64_t *packets, uint64_t *bytes) {
  (void)p, (void)table, (void)handle, (void)packets, (void)bytes;
  return P_UNSUPPORTED;
}
static int direct_write(pipeline_t *p, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes) {
  (void)p, (void)table, (void)handle, (void)packets, (void)bytes;
  return P_UNSUPPORTED;
}
static int counter_read(pipeline_t *p, uint32_t array, uint32_t index, uint64_t *packets, uint64_t *bytes) {
  if (array || index) return P_BAD_ARGUMENT;
  *packets = p->packets;
  *bytes = p->bytes;
  return P_OK;
}
static int counter_write(pipeline_t *p, uint32_t array, uint32_t index, uint64_t packets, uint64_t bytes) {
  if (array || index) return P_BAD_ARGUMENT;
  p->packets = packets;
  p->bytes = bytes;
  return P_OK;
}
static int register_read(pipeline_t *p, uint32_t array, uint32_t index, uint8_t *out, uint32_t capacity) {
  if (array || index >= 4 || capacity < 4) return P_BAD_ARGUMENT;
  memcpy(out, p->cells[index], 4);
  return 4;
}
static int register_write(pipeline_t *p, uint32_t array, uint32_t index, const uint8_t *value, uint32_t bytes) {
  if (array || index >= 4 || bytes != 4) return P_BAD_ARGUMENT;
  memcpy(p->cells[index], value, 4);
  return P_OK;
}

static const pipeline_ops_t ops = {
    .abi_version = PIPELINE_ABI_VERSION, .phv_bytes = sizeof(phv_t), .drop_port = 511, .program_name = "first_byte",
    .create = create, .destroy = destroy, .set_drop_port = set_drop_port, .set_log = set_log,
    .start = start, .parse = parse, .ingress = ingress, .egress = egress, .deparse = deparse, .copy_phv = copy_phv,
    .copy_fields = copy_fields, .save_fields = save_fields, .load_fields = load_fields, .digest = digest,
    .table_insert = insert, .table_modify = change, .table_delete = change, .table_find = find,
    .table_set_default = set_default, .table_size = size, .table_clear = clear,
    .direct_counter = direct, .direct_counter_write = direct_write,
    .counter_read = counter_read, .counter_write = counter_write,
    .register_read = register_read, .register_write = register_write};

const pipeline_ops_t *p4_pipeline(void) { return &ops; }
