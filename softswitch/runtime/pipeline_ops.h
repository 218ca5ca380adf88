// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of the seam, on top of what generated code defined: struct pipeline, struct phv and the p4_ functions.
// Included once, at the end of generated code.
#ifndef SOFTSWITCH_PIPELINE_OPS_H
#define SOFTSWITCH_PIPELINE_OPS_H

static void op_destroy(pipeline_t *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; i < NUM_TABLES; i++) table_destroy(&s->tables[i]);
  for (uint32_t i = 0; i < NUM_PROFILES; i++) profile_destroy(&s->profiles[i]);
  p4_free_arrays(s);
  p4_free_value_sets(s);
  free(s);
}

static pipeline_t *op_create(void) {
  pipeline_t *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->drop_port = DROP_PORT;
  s->random = random_seed(s);
  int result = P_OK;
  for (uint32_t i = 0; i < NUM_PROFILES; i++)
    if (profile_create(&s->profiles[i]) != P_OK) result = P_FULL;
  if (result == P_OK && p4_allocate_arrays(s) && p4_fill_tables(s) == P_OK) return s;
  op_destroy(s);
  return NULL;
}

static void op_set_drop_port(pipeline_t *s, uint32_t port) { s->drop_port = port; }

static void op_set_log(pipeline_t *s, pipeline_log_t log, void *context) {
  s->log = log;
  s->log_context = context;
}

static void op_start(pipeline_t *s, phv_t *p, const uint8_t *frame, uint32_t bytes, const packet_info_t *info) {
  (void)s;
  memset(p, 0, sizeof *p);
  p->payload = frame;
  p->payload_bytes = bytes;
  p->counted_bytes = info->packet_length;
  p4_start_ingress(p, info);
}

static int op_parse(pipeline_t *s, phv_t *p) {
  p4_parse(s, p, p->payload, p->payload_bytes);
  p4_verify_checksums(p);
  return P_OK;
}

static int op_ingress(pipeline_t *s, phv_t *p, intrinsic_t *out) {
  p4_control_ingress(s, p);
  p4_export(p, out);
  return P_OK;
}

static int op_egress(pipeline_t *s, phv_t *p, const packet_info_t *info, intrinsic_t *out) {
  p->exited = 0;
  p->counted_bytes = info->packet_length;
  p4_start_egress(s, p, info);
  p4_control_egress(s, p);
  p4_export(p, out);
  return P_OK;
}

static int op_deparse(pipeline_t *s, phv_t *p, uint8_t *out, uint32_t capacity) {
  p4_update_checksums(p);
  return p4_write(s, p, out, capacity);
}

static void op_copy_phv(phv_t *to, const phv_t *from) { *to = *from; }

static int op_copy_fields(pipeline_t *s, phv_t *to, const phv_t *from, uint32_t list) {
  (void)s;
  p4_reset_metadata(to);
  p4_copy_fields(to, from, list);
  return P_OK;
}

static int op_save_fields(pipeline_t *s, const phv_t *p, uint32_t list, uint8_t *out, uint32_t capacity) {
  (void)s;
  return p4_save_fields(p, list, out, capacity);
}

static int op_load_fields(pipeline_t *s, phv_t *p, uint32_t list, const uint8_t *from, uint32_t bytes) {
  (void)s;
  return p4_load_fields(p, list, from, bytes);
}

static int op_digest(pipeline_t *s, const phv_t *p, uint32_t list, uint8_t *out, uint32_t capacity) {
  (void)s;
  return p4_digest(p, list, out, capacity);
}

#include "pipeline_tables.h"

// ---- arrays ----

static int op_counter_read(pipeline_t *s, uint32_t array, uint32_t index, uint64_t *packets, uint64_t *bytes) {
  counter_cell_t *cell = NULL;
  int result = p4_counter(s, array, index, &cell);
  if (result != P_OK) return result;
  *packets = cell->packets;
  *bytes = cell->bytes;
  return P_OK;
}

static int op_counter_write(pipeline_t *s, uint32_t array, uint32_t index, uint64_t packets, uint64_t bytes) {
  counter_cell_t *cell = NULL;
  int result = p4_counter(s, array, index, &cell);
  if (result == P_OK) *cell = (counter_cell_t){.packets = packets, .bytes = bytes};
  return result;
}

static int op_register_read(pipeline_t *s, uint32_t array, uint32_t index, uint8_t *out, uint32_t capacity) {
  const int bytes = p4_register(s, array, index, NULL, false);
  if (bytes < 0) return bytes;
  if ((uint32_t)bytes > capacity) return P_BAD_ARGUMENT;
  return p4_register(s, array, index, out, false);
}

static int op_register_write(pipeline_t *s, uint32_t array, uint32_t index, const uint8_t *from, uint32_t bytes) {
  int size = p4_register(s, array, index, NULL, true);
  if (size < 0) return size;
  if ((uint32_t)size != bytes) return P_BAD_ARGUMENT;
  uint8_t data[MAX_REGISTER_BYTES];
  memcpy(data, from, bytes);
  size = p4_register(s, array, index, data, true);
  return size < 0 ? size : P_OK;
}

static int op_value_set_write(pipeline_t *s, uint32_t set, const uint8_t *members, uint32_t bytes, uint32_t count) {
  uint32_t size = 0, most = 0;
  value_set_t *found = p4_value_set(s, set, &size, &most);
  if (found == NULL || bytes != 2 * (uint64_t)size * count) return P_BAD_ARGUMENT;
  if (most != 0 && count > most) return P_FULL;
  return value_set_replace(found, members, size, count);
}

const pipeline_ops_t *p4_pipeline(void) {
  static const pipeline_ops_t ops = {
      .abi_version = PIPELINE_ABI_VERSION,
      .phv_bytes = (uint32_t)((sizeof(phv_t) + 63) / 64 * 64),
      .drop_port = DROP_PORT,
      .program_name = PROGRAM_NAME,
      .create = op_create,
      .destroy = op_destroy,
      .set_drop_port = op_set_drop_port,
      .set_log = op_set_log,
      .start = op_start,
      .parse = op_parse,
      .ingress = op_ingress,
      .egress = op_egress,
      .deparse = op_deparse,
      .copy_phv = op_copy_phv,
      .copy_fields = op_copy_fields,
      .save_fields = op_save_fields,
      .load_fields = op_load_fields,
      .digest = op_digest,
      .table_insert = op_table_insert,
      .table_modify = op_table_modify,
      .table_delete = op_table_delete,
      .table_find = op_table_find,
      .table_set_default = op_table_set_default,
      .table_size = op_table_size,
      .table_clear = op_table_clear,
      .direct_counter = op_direct_counter,
      .direct_counter_write = op_direct_counter_write,
      .direct_meter = op_direct_meter,
      .direct_meter_write = op_direct_meter_write,
      .table_idle = op_table_idle,
      .table_expired = op_table_expired,
      .table_match = op_table_match,
      .table_layout = op_table_layout,
      .table_dump = op_table_dump,
      .table_open = op_table_open,
      .profile_add_member = op_profile_add_member,
      .profile_modify_member = op_profile_modify_member,
      .profile_delete_member = op_profile_delete_member,
      .profile_set_group = op_profile_set_group,
      .profile_delete_group = op_profile_delete_group,
      .meter_read = op_meter_read,
      .meter_write = op_meter_write,
      .counter_read = op_counter_read,
      .counter_write = op_counter_write,
      .register_read = op_register_read,
      .register_write = op_register_write,
      .value_set_write = op_value_set_write,
  };
  return &ops;
}

#endif
