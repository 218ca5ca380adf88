// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Control operations: each is atomic between two batches of packets.
#include <string.h>

#include "switch_state.h"

// Entries that switch_table_insert_many inserts at a time, while packets wait.
enum { INSERTS_PER_STEP = 64 };

// One pipeline operation under the lock, or S_NO_PROGRAM.
#define WITH_PIPELINE(sw, expression)                                              \
  switch_lock(sw);                                                                 \
  const pipeline_ops_t *ops = (sw)->engine.ops;                                    \
  pipeline_t *pipeline = (sw)->engine.pipeline;                                    \
  int result = ops ? (expression) : S_NO_PROGRAM;                                  \
  switch_unlock(sw);                                                               \
  return result

// The time on the clock of the packets' ingress time stamps.
static uint64_t now_us(const softswitch_t *sw) { return (switch_now_ns() - sw->engine.started_ns) / 1000; }

int switch_table_insert(softswitch_t *sw, uint32_t table, const table_entry_t *entry, uint64_t *handle_out) {
  table_entry_t timed = *entry;
  timed.now_us = now_us(sw);
  WITH_PIPELINE(sw, ops->table_insert(pipeline, table, &timed, handle_out));
}

int switch_table_modify(softswitch_t *sw, uint32_t table, const table_entry_t *entry) {
  table_entry_t timed = *entry;
  timed.now_us = now_us(sw);
  WITH_PIPELINE(sw, ops->table_modify(pipeline, table, &timed));
}

int switch_table_delete(softswitch_t *sw, uint32_t table, const table_entry_t *entry) {
  WITH_PIPELINE(sw, ops->table_delete(pipeline, table, entry));
}

int switch_table_find(softswitch_t *sw, uint32_t table, const table_entry_t *entry, uint64_t *handle_out) {
  WITH_PIPELINE(sw, ops->table_find(pipeline, table, entry, handle_out));
}

int switch_table_set_default(softswitch_t *sw, uint32_t table, const table_entry_t *entry) {
  WITH_PIPELINE(sw, ops->table_set_default(pipeline, table, entry));
}

int switch_table_size(softswitch_t *sw, uint32_t table, uint32_t *out) {
  WITH_PIPELINE(sw, (*out = ops->table_size(pipeline, table), P_OK));
}

int switch_table_clear(softswitch_t *sw, uint32_t table) { WITH_PIPELINE(sw, ops->table_clear(pipeline, table)); }

static int find_handle(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table, const table_entry_t *match,
                       uint64_t *handle) {
  *handle = UINT64_MAX;
  return match ? ops->table_find(pipeline, table, match, handle) : P_OK;
}

static int direct_read(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table, const table_entry_t *match,
                       uint64_t *packets, uint64_t *bytes) {
  uint64_t handle;
  int result = find_handle(ops, pipeline, table, match, &handle);
  return result < 0 ? result : ops->direct_counter(pipeline, table, handle, packets, bytes);
}

static int direct_write(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table, const table_entry_t *match,
                        uint64_t packets, uint64_t bytes) {
  uint64_t handle;
  int result = find_handle(ops, pipeline, table, match, &handle);
  return result < 0 ? result : ops->direct_counter_write(pipeline, table, handle, packets, bytes);
}

int switch_direct_counter_read(softswitch_t *sw, uint32_t table, const table_entry_t *match, uint64_t *packets,
                               uint64_t *bytes) {
  WITH_PIPELINE(sw, direct_read(ops, pipeline, table, match, packets, bytes));
}

int switch_direct_counter_write(softswitch_t *sw, uint32_t table, const table_entry_t *match, uint64_t packets,
                                uint64_t bytes) {
  WITH_PIPELINE(sw, direct_write(ops, pipeline, table, match, packets, bytes));
}

static int direct_meter_read(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table, const table_entry_t *match,
                             meter_rates_t *out) {
  uint64_t handle;
  int result = find_handle(ops, pipeline, table, match, &handle);
  return result < 0 ? result : ops->direct_meter(pipeline, table, handle, out);
}

static int direct_meter_write(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table,
                              const table_entry_t *match, const meter_rates_t *rates) {
  uint64_t handle;
  int result = find_handle(ops, pipeline, table, match, &handle);
  return result < 0 ? result : ops->direct_meter_write(pipeline, table, handle, rates);
}

static int idle_read(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table, const table_entry_t *match,
                     uint64_t now, uint64_t *idle_us) {
  uint64_t handle;
  int result = ops->table_find(pipeline, table, match, &handle);
  return result < 0 ? result : ops->table_idle(pipeline, table, handle, now, idle_us);
}

int switch_direct_meter_read(softswitch_t *sw, uint32_t table, const table_entry_t *match, meter_rates_t *out) {
  WITH_PIPELINE(sw, direct_meter_read(ops, pipeline, table, match, out));
}

int switch_direct_meter_write(softswitch_t *sw, uint32_t table, const table_entry_t *match,
                              const meter_rates_t *rates) {
  WITH_PIPELINE(sw, direct_meter_write(ops, pipeline, table, match, rates));
}

int switch_meter_read(softswitch_t *sw, uint32_t array, uint32_t index, meter_rates_t *out) {
  WITH_PIPELINE(sw, ops->meter_read(pipeline, array, index, out));
}

int switch_meter_write(softswitch_t *sw, uint32_t array, uint32_t index, const meter_rates_t *rates) {
  WITH_PIPELINE(sw, ops->meter_write(pipeline, array, index, rates));
}

int switch_table_idle(softswitch_t *sw, uint32_t table, const table_entry_t *match, uint64_t *idle_us) {
  uint64_t now = now_us(sw);
  WITH_PIPELINE(sw, idle_read(ops, pipeline, table, match, now, idle_us));
}

static int expired_read(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t *table, uint64_t now, uint32_t *from,
                        uint32_t entries, uint64_t *handles) {
  int result = ops->table_expired(pipeline, *table, now, from, entries, handles);
  while (result == P_UNSUPPORTED) {
    *from = 0;
    result = ops->table_expired(pipeline, ++*table, now, from, entries, handles);
  }
  return result;
}

int switch_table_expired(softswitch_t *sw, uint32_t *table, uint32_t *from, uint32_t entries, uint64_t *handles) {
  uint64_t now = now_us(sw);
  WITH_PIPELINE(sw, expired_read(ops, pipeline, table, now, from, entries, handles));
}

int switch_table_match(softswitch_t *sw, uint32_t table, uint64_t handle, uint8_t *key, uint8_t *mask,
                       int32_t *prefix_len, int32_t *priority) {
  WITH_PIPELINE(sw, ops->table_match(pipeline, table, handle, key, mask, prefix_len, priority));
}

int switch_table_layout(softswitch_t *sw, uint32_t table, table_layout_t *out) {
  WITH_PIPELINE(sw, ops->table_layout(pipeline, table, out));
}

int switch_table_dump(softswitch_t *sw, uint32_t table, uint32_t *from, uint32_t records, uint8_t *out) {
  uint64_t now = now_us(sw);
  WITH_PIPELINE(sw, ops->table_dump(pipeline, table, now, from, records, out));
}

static int dump_one(const pipeline_ops_t *ops, pipeline_t *pipeline, uint32_t table, uint64_t now,
                    const table_entry_t *match, uint8_t *out) {
  uint64_t handle;
  int result = ops->table_find(pipeline, table, match, &handle);
  uint32_t from = (uint32_t)handle;
  return result < 0 ? result : ops->table_dump(pipeline, table, now, &from, 1, out);
}

int switch_table_get(softswitch_t *sw, uint32_t table, const table_entry_t *match, uint8_t *out) {
  uint64_t now = now_us(sw);
  WITH_PIPELINE(sw, dump_one(ops, pipeline, table, now, match, out));
}

int switch_table_open(softswitch_t *sw, uint32_t table) { WITH_PIPELINE(sw, ops->table_open(pipeline, table)); }

int switch_table_insert_many(softswitch_t *sw, uint32_t table, uint32_t key_bytes, const uint8_t *entries,
                             uint32_t count, int stop_at_failure, int32_t *results) {
  uint32_t done = 0;
  bool is_stopped = false;
  while (done < count && !is_stopped) {
    uint32_t end = count - done < INSERTS_PER_STEP ? count : done + INSERTS_PER_STEP;
    switch_lock(sw);
    const pipeline_ops_t *ops = sw->engine.ops;
    table_entry_t entry = {.now_us = now_us(sw), .key_bytes = key_bytes};
    table_layout_t layout;
    int fit = ops ? ops->table_layout(sw->engine.pipeline, table, &layout) : S_NO_PROGRAM;
    if (fit == P_OK && layout.key_bytes != key_bytes) fit = P_BAD_ARGUMENT;
    for (; done < end && !is_stopped; done++) {
      memcpy(&entry.action_id, entries, 4);
      memcpy(&entry.params_bytes, entries + 4, 4);
      entry.key = entry.mask = entries + 8;
      entry.params = entry.key + key_bytes;
      entries = entry.params + entry.params_bytes;
      results[done] = fit == P_OK ? ops->table_insert(sw->engine.pipeline, table, &entry, NULL) : fit;
      is_stopped = results[done] != P_OK && stop_at_failure;
    }
    switch_unlock(sw);
  }
  return (int)done;
}

int switch_profile_add_member(softswitch_t *sw, uint32_t profile, uint32_t member, const table_entry_t *action) {
  WITH_PIPELINE(sw, ops->profile_add_member(pipeline, profile, member, action));
}

int switch_profile_modify_member(softswitch_t *sw, uint32_t profile, uint32_t member, const table_entry_t *action) {
  WITH_PIPELINE(sw, ops->profile_modify_member(pipeline, profile, member, action));
}

int switch_profile_delete_member(softswitch_t *sw, uint32_t profile, uint32_t member) {
  WITH_PIPELINE(sw, ops->profile_delete_member(pipeline, profile, member));
}

int switch_profile_set_group(softswitch_t *sw, uint32_t profile, uint32_t group, const group_member_t *members,
                             uint32_t count) {
  WITH_PIPELINE(sw, ops->profile_set_group(pipeline, profile, group, members, count));
}

int switch_profile_delete_group(softswitch_t *sw, uint32_t profile, uint32_t group) {
  WITH_PIPELINE(sw, ops->profile_delete_group(pipeline, profile, group));
}

int switch_counter_read(softswitch_t *sw, uint32_t array, uint32_t index, uint64_t *packets, uint64_t *bytes) {
  WITH_PIPELINE(sw, ops->counter_read(pipeline, array, index, packets, bytes));
}

int switch_counter_write(softswitch_t *sw, uint32_t array, uint32_t index, uint64_t packets, uint64_t bytes) {
  WITH_PIPELINE(sw, ops->counter_write(pipeline, array, index, packets, bytes));
}

int switch_register_read(softswitch_t *sw, uint32_t array, uint32_t index, uint8_t *out, uint32_t capacity) {
  WITH_PIPELINE(sw, ops->register_read(pipeline, array, index, out, capacity));
}

int switch_register_write(softswitch_t *sw, uint32_t array, uint32_t index, const uint8_t *value, uint32_t bytes) {
  WITH_PIPELINE(sw, ops->register_write(pipeline, array, index, value, bytes));
}

int switch_value_set_write(softswitch_t *sw, uint32_t set, const uint8_t *members, uint32_t bytes, uint32_t count) {
  WITH_PIPELINE(sw, ops->value_set_write(pipeline, set, members, bytes, count));
}

int switch_set_multicast_group(softswitch_t *sw, uint32_t group, const replica_t *replicas, uint32_t count) {
  switch_lock(sw);
  int result = replication_set_group(&sw->engine, group, replicas, count);
  switch_unlock(sw);
  return result;
}

int switch_delete_multicast_group(softswitch_t *sw, uint32_t group) {
  switch_lock(sw);
  int result = replication_delete_group(&sw->engine, group);
  switch_unlock(sw);
  return result;
}

int switch_set_clone_session(softswitch_t *sw, uint32_t session, const replica_t *replicas, uint32_t count,
                             uint32_t packet_length_bytes) {
  switch_lock(sw);
  int result = replication_set_session(&sw->engine, session, replicas, count, packet_length_bytes);
  switch_unlock(sw);
  return result;
}

int switch_delete_clone_session(softswitch_t *sw, uint32_t session) {
  switch_lock(sw);
  int result = replication_delete_session(&sw->engine, session);
  switch_unlock(sw);
  return result;
}

// ---- reports: the rings have locks of their own, so that readers do not wait for the data plane ----

static reports_t *ring_of(softswitch_t *sw, report_kind_t kind) {
  return kind == REPORT_DIGEST ? &sw->engine.digests : &sw->engine.messages;
}

static void apply_log(softswitch_t *sw, report_kind_t kind, bool is_on) {
  if (kind == REPORT_MESSAGE) replication_set_log(&sw->engine, is_on);
}

int switch_open_reports(softswitch_t *sw, report_kind_t kind, uint32_t capacity) {
  switch_lock(sw);
  int result = reports_open(ring_of(sw, kind), capacity);
  if (result == 0) apply_log(sw, kind, true);
  switch_unlock(sw);
  return result;
}

int switch_close_reports(softswitch_t *sw, report_kind_t kind) {
  switch_lock(sw);
  apply_log(sw, kind, false);
  reports_close(ring_of(sw, kind));
  switch_unlock(sw);
  return 0;
}

int switch_wait_report(softswitch_t *sw, report_kind_t kind, int64_t timeout_ns) {
  return reports_wait(ring_of(sw, kind), timeout_ns);
}

int switch_take_report(softswitch_t *sw, report_kind_t kind, uint32_t *id, uint8_t *out, uint32_t capacity) {
  return reports_take(ring_of(sw, kind), id, out, capacity, 0);
}

uint64_t switch_lost_reports(softswitch_t *sw, report_kind_t kind) { return reports_lost(ring_of(sw, kind)); }
