// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of the seam for tables, action profiles and meters. Included by pipeline_ops.h.
#ifndef SOFTSWITCH_PIPELINE_TABLES_H
#define SOFTSWITCH_PIPELINE_TABLES_H

static bool is_const_table(const pipeline_t *s, uint32_t table) {
  return p4_has_const_entries(table) && !s->tables[table].is_open;
}

static int check_entry(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  if (table >= NUM_TABLES || entry == NULL) return P_BAD_ARGUMENT;
  return is_const_table(s, table) ? P_UNSUPPORTED : P_OK;
}

static int op_table_insert(pipeline_t *s, uint32_t table, const table_entry_t *entry, uint64_t *handle) {
  int result = check_entry(s, table, entry);
  return result == P_OK ? p4_add_entry(s, table, entry, handle) : result;
}

static int op_table_modify(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  int result = check_entry(s, table, entry);
  return result == P_OK ? p4_change_entry(s, table, entry) : result;
}

static int op_table_delete(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  int result = check_entry(s, table, entry);
  return result == P_OK ? p4_remove_entry(s, table, entry) : result;
}

static int op_table_find(pipeline_t *s, uint32_t table, const table_entry_t *entry, uint64_t *handle) {
  uint32_t found = TABLE_NONE;
  if (table >= NUM_TABLES || entry == NULL) return P_BAD_ARGUMENT;
  int result = table_locate(&s->tables[table], entry, &found);
  if (result == P_OK && handle != NULL) *handle = found;
  return result;
}

static int op_table_set_default(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  if (table >= NUM_TABLES || entry == NULL) return P_BAD_ARGUMENT;
  if (p4_has_const_default(table)) return P_UNSUPPORTED;
  uint32_t only = p4_const_default_action(table);
  if (only != TABLE_NONE && entry->action_id != only) return P_UNSUPPORTED;
  return p4_set_default(s, table, entry);
}

static uint32_t op_table_size(pipeline_t *s, uint32_t table) { return table < NUM_TABLES ? s->tables[table].count : 0; }

static int op_table_clear(pipeline_t *s, uint32_t table) {
  if (table >= NUM_TABLES) return P_BAD_ARGUMENT;
  return is_const_table(s, table) ? P_UNSUPPORTED : p4_clear_entries(s, table);
}

// An extra of an entry: P_OK, P_BAD_ARGUMENT, P_UNSUPPORTED (the table has none), P_NOT_FOUND.
static int entry_cell(pipeline_t *s, uint32_t table, uint64_t handle, uint32_t extra, void **cell) {
  if (table >= NUM_TABLES) return P_BAD_ARGUMENT;
  const table_t *held = &s->tables[table];
  const table_shape_t *shape = held->shape;
  if (!(shape->extras & extra)) return P_UNSUPPORTED;
  if (handle == UINT64_MAX) {
    if (extra == ENTRY_METERED) *cell = &s->defaults[table].meter;
    else *cell = &s->defaults[table].counter;
    return extra == ENTRY_TIMED ? P_UNSUPPORTED : P_OK;
  }
  if (handle >= held->used || table_node(held, (uint32_t)handle)->action == TABLE_NONE) return P_NOT_FOUND;
  uint32_t offset = extra == ENTRY_COUNTED ? shape->counter_offset : extra == ENTRY_TIMED ? shape->idle_offset : shape->meter_offset;
  *cell = entry_extra(s, table, (uint32_t)handle, offset);
  return P_OK;
}

static int op_direct_counter(pipeline_t *s, uint32_t table, uint64_t handle, uint64_t *packets, uint64_t *bytes) {
  void *cell = NULL;
  int result = entry_cell(s, table, handle, ENTRY_COUNTED, &cell);
  if (result != P_OK) return result;
  *packets = ((counter_cell_t *)cell)->packets;
  *bytes = ((counter_cell_t *)cell)->bytes;
  return P_OK;
}

static int op_direct_counter_write(pipeline_t *s, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes) {
  void *cell = NULL;
  int result = entry_cell(s, table, handle, ENTRY_COUNTED, &cell);
  if (result == P_OK) *(counter_cell_t *)cell = (counter_cell_t){.packets = packets, .bytes = bytes};
  return result;
}

static int op_direct_meter(pipeline_t *s, uint32_t table, uint64_t handle, meter_rates_t *out) {
  void *cell = NULL;
  int result = entry_cell(s, table, handle, ENTRY_METERED, &cell);
  if (result == P_OK) *out = ((meter_cell_t *)cell)->rates;
  return result;
}

static int op_direct_meter_write(pipeline_t *s, uint32_t table, uint64_t handle, const meter_rates_t *rates) {
  void *cell = NULL;
  int result = entry_cell(s, table, handle, ENTRY_METERED, &cell);
  return result == P_OK ? meter_set(cell, rates) : result;
}

static int op_table_idle(pipeline_t *s, uint32_t table, uint64_t handle, uint64_t now_us, uint64_t *idle_us) {
  void *cell = NULL;
  int result = entry_cell(s, table, handle, ENTRY_TIMED, &cell);
  if (result != P_OK) return result;
  uint64_t last = ((idle_cell_t *)cell)->last_us;
  *idle_us = now_us > last ? now_us - last : 0;
  return P_OK;
}

static uint64_t whole_us(uint64_t ns) { return ns / 1000 + (ns % 1000 != 0); }

static int op_table_expired(pipeline_t *s, uint32_t table, uint64_t now_us, uint32_t *from, uint32_t entries,
                            uint64_t *handles) {
  if (table >= NUM_TABLES) return P_BAD_ARGUMENT;
  const table_t *held = &s->tables[table];
  if (!(held->shape->extras & ENTRY_TIMED)) return P_UNSUPPORTED;
  int count = 0;
  uint32_t at = *from;
  for (uint32_t seen = 0; at < held->used && seen < entries; at++, seen++) {
    if (table_node(held, at)->action == TABLE_NONE) continue;
    idle_cell_t *idle = entry_extra(s, table, at, held->shape->idle_offset);
    if (idle->timeout_ns == 0 || idle->reported_us == idle->last_us + 1) continue;
    if (now_us < idle->last_us || now_us - idle->last_us < whole_us(idle->timeout_ns)) continue;
    idle->reported_us = idle->last_us + 1;
    handles[count++] = at;
  }
  *from = at < held->used ? at : 0;
  return count;
}

static int op_table_match(pipeline_t *s, uint32_t table, uint64_t handle, uint8_t *key, uint8_t *mask,
                          int32_t *prefix_len, int32_t *priority) {
  if (table >= NUM_TABLES) return P_BAD_ARGUMENT;
  const table_t *held = &s->tables[table];
  if (handle >= held->used || table_node(held, (uint32_t)handle)->action == TABLE_NONE) return P_NOT_FOUND;
  const table_node_t *node = table_node(held, (uint32_t)handle);
  match_encode(held->shape, node, key, mask, prefix_len);
  *priority = held->shape->kind == MATCH_TERNARY || held->shape->kind == MATCH_RANGE ? node->rank : 0;
  if (held->shape->kind == MATCH_EXACT) *prefix_len = -1;
  return (int)held->shape->key_bytes;
}

static int op_table_open(pipeline_t *s, uint32_t table) {
  if (table >= NUM_TABLES) return P_BAD_ARGUMENT;
  s->tables[table].is_open = true;
  return P_OK;
}

// ---- records of entries ----

static int op_table_layout(pipeline_t *s, uint32_t table, table_layout_t *out) {
  if (table >= NUM_TABLES) return P_BAD_ARGUMENT;
  const table_shape_t *shape = s->tables[table].shape;
  *out = (table_layout_t){.key_bytes = shape->key_bytes, .params_bytes = shape->params_bytes};
  out->record_bytes = (uint32_t)sizeof(table_record_t) + 2 * shape->key_bytes + shape->params_bytes;
  if (shape->extras & ENTRY_COUNTED) out->extras |= EXTRA_COUNTS, out->record_bytes += 16;
  if (shape->extras & ENTRY_TIMED) out->extras |= EXTRA_IDLE, out->record_bytes += 16;
  return P_OK;
}

static uint8_t *dump_numbers(uint8_t *out, uint64_t first, uint64_t second) {
  memcpy(out, &first, 8);
  memcpy(out + 8, &second, 8);
  return out + 16;
}

static void dump_entry(pipeline_t *s, uint32_t table, uint32_t entry, uint64_t now_us, uint8_t *out) {
  const table_t *held = &s->tables[table];
  const table_shape_t *shape = held->shape;
  const table_node_t *node = table_node(held, entry);
  const action_profile_t *profile = entry_profile(s, table);
  table_record_t record = {.handle = entry, .action_id = node->action};
  uint8_t *at = out + sizeof record;
  if (shape->extras & ENTRY_COUNTED) {
    const counter_cell_t *cell = table_node_at(node, shape->counter_offset);
    at = dump_numbers(at, cell->packets, cell->bytes);
  }
  if (shape->extras & ENTRY_TIMED) {
    const idle_cell_t *cell = table_node_at(node, shape->idle_offset);
    at = dump_numbers(at, cell->timeout_ns, now_us > cell->last_us ? now_us - cell->last_us : 0);
  }
  match_encode(shape, node, at, at + shape->key_bytes, &record.prefix_len);
  at += 2 * shape->key_bytes;
  if (shape->kind == MATCH_EXACT) record.prefix_len = -1;
  else if (shape->kind != MATCH_LPM) record.priority = node->rank;
  const void *data = table_node_at(node, shape->data_offset);
  memset(at, 0, shape->params_bytes);
  if (profile == NULL) {
    record.params_bytes = p4_encode(node->action, data, at);
  } else {
    record.indirect_id = profile_id(profile, data);
    record.indirect_kind = ((const indirect_t *)data)->kind;
  }
  memcpy(out, &record, sizeof record);
}

static int op_table_dump(pipeline_t *s, uint32_t table, uint64_t now_us, uint32_t *from, uint32_t records,
                         uint8_t *out) {
  table_layout_t layout;
  int result = op_table_layout(s, table, &layout);
  if (result != P_OK) return result;
  const table_t *held = &s->tables[table];
  int count = 0;
  uint32_t at = *from;
  for (; at < held->used && (uint32_t)count < records; at++) {
    if (!table_is_taken(held, at)) continue;
    dump_entry(s, table, at, now_us, out + (size_t)count++ * layout.record_bytes);
  }
  *from = at < held->used ? at : 0;
  return count;
}

// ---- action profiles ----

static int profile_decode(uint32_t profile, const table_entry_t *entry, uint64_t *data) {
  if (profile >= NUM_PROFILES || entry == NULL) return P_BAD_ARGUMENT;
  if (!p4_is_action_of_profile(profile, entry->action_id)) return P_BAD_ARGUMENT;
  return p4_decode(entry->action_id, entry->params, entry->params_bytes, data);
}

static int op_profile_add_member(pipeline_t *s, uint32_t profile, uint32_t member, const table_entry_t *entry) {
  uint64_t data[MAX_DATA_WORDS] = {0};
  int bytes = profile_decode(profile, entry, data);
  return bytes < 0 ? bytes : profile_add(&s->profiles[profile], member, entry->action_id, data, (uint32_t)bytes);
}

static int op_profile_modify_member(pipeline_t *s, uint32_t profile, uint32_t member, const table_entry_t *entry) {
  uint64_t data[MAX_DATA_WORDS] = {0};
  int bytes = profile_decode(profile, entry, data);
  return bytes < 0 ? bytes : profile_modify(&s->profiles[profile], member, entry->action_id, data, (uint32_t)bytes);
}

static int op_profile_delete_member(pipeline_t *s, uint32_t profile, uint32_t member) {
  return profile < NUM_PROFILES ? profile_delete(&s->profiles[profile], member) : P_BAD_ARGUMENT;
}

static int op_profile_set_group(pipeline_t *s, uint32_t profile, uint32_t group, const group_member_t *members,
                                uint32_t count) {
  if (profile >= NUM_PROFILES) return P_BAD_ARGUMENT;
  if (!p4_has_selector(profile)) return P_UNSUPPORTED;
  return profile_set_group(&s->profiles[profile], group, members, count);
}

static int op_profile_delete_group(pipeline_t *s, uint32_t profile, uint32_t group) {
  return profile < NUM_PROFILES ? profile_delete_group(&s->profiles[profile], group) : P_BAD_ARGUMENT;
}

// ---- meters ----

static int op_meter_read(pipeline_t *s, uint32_t array, uint32_t index, meter_rates_t *out) {
  meter_cell_t *cell = NULL;
  int result = p4_meter(s, array, index, &cell);
  if (result == P_OK) *out = cell->rates;
  return result;
}

static int op_meter_write(pipeline_t *s, uint32_t array, uint32_t index, const meter_rates_t *rates) {
  meter_cell_t *cell = NULL;
  int result = p4_meter(s, array, index, &cell);
  return result == P_OK ? meter_set(cell, rates) : result;
}

#endif
