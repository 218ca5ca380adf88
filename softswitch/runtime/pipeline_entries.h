// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Table entries and default entries: from the seam to tables, action profiles and extras. Generated code includes it after
// the declarations of its tables.
#ifndef SOFTSWITCH_PIPELINE_ENTRIES_H
#define SOFTSWITCH_PIPELINE_ENTRIES_H

static action_profile_t *entry_profile(pipeline_t *s, uint32_t table) {
  uint32_t profile = p4_profile_of(table);
  return profile == TABLE_NONE ? NULL : &s->profiles[profile];
}

// Decode what an entry holds: parameters, or an indirect_t. Returns its bytes, or a P_ code.
static int entry_decode(pipeline_t *s, uint32_t table, const table_entry_t *entry, uint32_t *action, uint64_t *data) {
  action_profile_t *profile = entry_profile(s, table);
  if (profile != NULL) {
    indirect_t via = {0};
    int result = profile_resolve(profile, entry->indirect_kind, entry->indirect_id, &via);
    if (result != P_OK) return result;
    memcpy(data, &via, sizeof via);
    *action = 0;
    return (int)sizeof via;
  }
  if (entry->indirect_kind != INDIRECT_NONE || !p4_is_action_of(table, entry->action_id)) return P_BAD_ARGUMENT;
  *action = entry->action_id;
  return p4_decode(entry->action_id, entry->params, entry->params_bytes, data);
}

static void entry_use(pipeline_t *s, uint32_t table, const void *data, int change) {
  action_profile_t *profile = entry_profile(s, table);
  if (profile != NULL) profile_use(profile, data, change);
}

static void *entry_extra(pipeline_t *s, uint32_t table, uint32_t entry, uint32_t offset) {
  return table_node_at(table_node(&s->tables[table], entry), offset);
}

static void entry_start_idle(pipeline_t *s, uint32_t table, uint32_t entry, const table_entry_t *from) {
  const table_shape_t *shape = s->tables[table].shape;
  if (!(shape->extras & ENTRY_TIMED)) return;
  idle_cell_t *idle = entry_extra(s, table, entry, shape->idle_offset);
  *idle = (idle_cell_t){.last_us = from->now_us, .timeout_ns = from->idle_timeout_ns};
}

static int p4_add_entry(pipeline_t *s, uint32_t table, const table_entry_t *entry, uint64_t *handle) {
  uint64_t data[MAX_DATA_WORDS] = {0};
  uint32_t action = 0;
  uint64_t added = 0;
  int bytes = entry_decode(s, table, entry, &action, data);
  if (bytes < 0) return bytes;
  int result = table_add(&s->tables[table], entry, action, data, (uint32_t)bytes, &added);
  if (result != P_OK) return result;
  entry_use(s, table, data, 1);
  entry_start_idle(s, table, (uint32_t)added, entry);
  if (handle != NULL) *handle = added;
  return P_OK;
}

static int p4_change_entry(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  uint64_t data[MAX_DATA_WORDS] = {0};
  uint32_t action = 0, found = TABLE_NONE;
  int bytes = entry_decode(s, table, entry, &action, data);
  if (bytes < 0) return bytes;
  int result = table_locate(&s->tables[table], entry, &found);
  if (result != P_OK) return result;
  entry_use(s, table, entry_extra(s, table, found, s->tables[table].shape->data_offset), -1);
  entry_use(s, table, data, 1);
  entry_start_idle(s, table, found, entry);
  return table_change(&s->tables[table], found, action, data, (uint32_t)bytes);
}

static int p4_remove_entry(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  uint32_t found = TABLE_NONE;
  int result = table_locate(&s->tables[table], entry, &found);
  if (result != P_OK) return result;
  entry_use(s, table, entry_extra(s, table, found, s->tables[table].shape->data_offset), -1);
  return table_remove(&s->tables[table], found);
}

static int p4_clear_entries(pipeline_t *s, uint32_t table) {
  table_t before;
  int result = table_clear_entries(&s->tables[table], &before);
  if (result != P_OK) return result;
  uint32_t used = entry_profile(s, table) == NULL ? 0 : before.used;
  for (uint32_t i = 0; i < used; i++) {
    const table_node_t *node = table_node(&before, i);
    if (node->action != TABLE_NONE) entry_use(s, table, table_node_at(node, before.shape->data_offset), -1);
  }
  table_destroy(&before);
  return P_OK;
}

static int p4_set_default(pipeline_t *s, uint32_t table, const table_entry_t *entry) {
  uint64_t data[MAX_DATA_WORDS] = {0};
  uint32_t action = TABLE_NONE;
  default_entry_t *held = &s->defaults[table];
  bool is_taken_away = entry_profile(s, table) != NULL && entry->indirect_kind == INDIRECT_NONE;
  if (!is_taken_away) {
    int bytes = entry_decode(s, table, entry, &action, data);
    if (bytes < 0) return bytes;
  }
  entry_use(s, table, held->data, -1);
  entry_use(s, table, data, 1);
  held->action = action;
  memcpy(held->data, data, sizeof data);
  return P_OK;
}

#endif
