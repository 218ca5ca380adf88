// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "action_profile.h"

#include <stdlib.h>
#include <string.h>

#define NO_SLOT UINT32_MAX
#define CHOICES_MAX (UINT32_C(1) << 20)

static uint32_t hash_of(uint32_t id) { return id * UINT32_C(0x9e3779b1); } // one to one

int profile_create(action_profile_t *profile) {
  memset(profile, 0, sizeof *profile);
  bool has_members = index_create(&profile->by_member), has_groups = index_create(&profile->by_group);
  return has_members && has_groups ? P_OK : P_FULL;
}

void profile_destroy(action_profile_t *profile) {
  for (uint32_t i = 0; i < profile->members_used; i++) {
    free(profile->members[i].handles);
    free(profile->members[i].data);
  }
  for (uint32_t i = 0; i < profile->groups_used; i++) {
    free(profile->groups[i].members);
    free(profile->groups[i].choices);
  }
  free(profile->members);
  free(profile->groups);
  free(profile->owners);
  index_destroy(&profile->by_member);
  index_destroy(&profile->by_group);
}

// Make room for one more element, all zeros.
static bool make_room(void **array, uint32_t *room, uint32_t used, size_t size) {
  if (used < *room) return true;
  uint32_t wanted = *room == 0 ? 8 : *room * 2;
  uint8_t *grown = realloc(*array, wanted * size);
  if (grown == NULL) return false;
  memset(grown + *room * size, 0, (wanted - *room) * size);
  *array = grown;
  *room = wanted;
  return true;
}

// ---- handles ----

static bool add_handle(action_profile_t *profile, uint32_t slot) {
  profile_member_t *member = &profile->members[slot];
  uint32_t handle = profile->lowest_handle;
  while (handle < profile->owners_room && profile->owners[handle] != 0) handle++;
  if (!make_room((void **)&profile->owners, &profile->owners_room, handle, sizeof *profile->owners)) return false;
  uint32_t *handles = realloc(member->handles, (member->num_handles + 1) * sizeof *handles);
  if (handles == NULL) return false;
  member->handles = handles;
  handles[member->num_handles++] = handle;
  profile->owners[handle] = slot + 1;
  profile->lowest_handle = handle + 1;
  return true;
}

static void drop_handle(action_profile_t *profile, profile_member_t *member) {
  uint32_t handle = member->handles[--member->num_handles];
  profile->owners[handle] = 0;
  if (handle < profile->lowest_handle) profile->lowest_handle = handle;
}

// Free the handles beyond the member's greatest weight.
static void drop_spare_handles(action_profile_t *profile, uint32_t slot) {
  profile_member_t *member = &profile->members[slot];
  uint32_t needed = 1;
  for (uint32_t i = 0; i < profile->groups_used && needed < member->num_handles; i++) {
    const profile_group_t *group = &profile->groups[i];
    for (uint32_t k = 0; k < group->count; k++)
      if (group->members[k].member == member->id && group->members[k].weight > needed)
        needed = group->members[k].weight;
  }
  while (member->num_handles > needed) drop_handle(profile, member);
}

// ---- members ----

static uint32_t find_member(const action_profile_t *profile, uint32_t id) {
  return index_get(&profile->by_member, hash_of(id));
}

static bool set_action(profile_member_t *member, uint32_t action, const uint64_t *data, uint32_t bytes) {
  uint64_t *held = calloc(1, bytes == 0 ? 8 : bytes);
  if (held == NULL) return false;
  if (bytes != 0) memcpy(held, data, bytes);
  free(member->data);
  member->data = held;
  member->action = action;
  return true;
}

static void clear_member(action_profile_t *profile, profile_member_t *member) {
  while (member->num_handles > 0) drop_handle(profile, member);
  free(member->handles);
  free(member->data);
  *member = (profile_member_t){0};
}

int profile_add(action_profile_t *profile, uint32_t id, uint32_t action, const uint64_t *data, uint32_t bytes) {
  if (find_member(profile, id) != INDEX_NONE) return P_EXISTS;
  uint32_t slot = profile->members_used;
  if (profile->by_member.count < profile->members_used)
    for (slot = 0; profile->members[slot].num_handles != 0;) slot++;
  if (!make_room((void **)&profile->members, &profile->members_room, slot, sizeof *profile->members)) return P_FULL;
  if (slot == profile->members_used) profile->members_used++;
  profile_member_t *member = &profile->members[slot];
  member->id = id;
  if (set_action(member, action, data, bytes) && add_handle(profile, slot) &&
      index_add(&profile->by_member, hash_of(id), slot))
    return P_OK;
  clear_member(profile, member);
  return P_FULL;
}

int profile_modify(action_profile_t *profile, uint32_t id, uint32_t action, const uint64_t *data, uint32_t bytes) {
  uint32_t slot = find_member(profile, id);
  if (slot == INDEX_NONE) return P_NOT_FOUND;
  return set_action(&profile->members[slot], action, data, bytes) ? P_OK : P_FULL;
}

int profile_delete(action_profile_t *profile, uint32_t id) {
  uint32_t slot = find_member(profile, id);
  if (slot == INDEX_NONE) return P_NOT_FOUND;
  if (profile->members[slot].uses != 0) return P_IN_USE;
  index_remove(&profile->by_member, hash_of(id), slot);
  clear_member(profile, &profile->members[slot]);
  return P_OK;
}

// ---- groups ----

typedef struct {
  uint32_t handle, slot;
} choice_t;

static int compare_choices(const void *left, const void *right) {
  uint32_t a = ((const choice_t *)left)->handle, b = ((const choice_t *)right)->handle;
  return a < b ? -1 : a > b;
}

static int compare_members(const void *left, const void *right) {
  uint32_t a = ((const group_member_t *)left)->member, b = ((const group_member_t *)right)->member;
  return a < b ? -1 : a > b;
}

// Members by rising id, as a new array; P_OK, P_NOT_FOUND, P_BAD_ARGUMENT or P_FULL.
static int sort_members(const action_profile_t *profile, const group_member_t *given, uint32_t count,
                        group_member_t **out, uint32_t *num_choices) {
  uint64_t total = 0;
  group_member_t *members = malloc((count + 1) * sizeof *members);
  if (members == NULL) return P_FULL;
  if (count != 0) memcpy(members, given, count * sizeof *members);
  qsort(members, count, sizeof *members, compare_members);
  int result = P_OK;
  for (uint32_t i = 0; i < count && result == P_OK; i++) {
    total += members[i].weight;
    if (members[i].weight == 0 || total > CHOICES_MAX) result = P_BAD_ARGUMENT;
    else if (i > 0 && members[i].member == members[i - 1].member) result = P_BAD_ARGUMENT;
    else if (find_member(profile, members[i].member) == INDEX_NONE) result = P_NOT_FOUND;
  }
  if (result != P_OK) {
    free(members);
    return result;
  }
  *out = members;
  *num_choices = (uint32_t)total;
  return P_OK;
}

// The members' slots by rising handle, as a new array; adds the handles that the weights need. NULL: no memory.
static uint32_t *list_choices(action_profile_t *profile, const group_member_t *members, uint32_t count,
                              uint32_t num_choices) {
  choice_t *found = malloc((num_choices + 1) * sizeof *found);
  uint32_t *choices = malloc((num_choices + 1) * sizeof *choices);
  uint32_t filled = 0;
  bool has_memory = found != NULL && choices != NULL;
  for (uint32_t i = 0; i < count && has_memory; i++) {
    uint32_t slot = find_member(profile, members[i].member);
    while (has_memory && profile->members[slot].num_handles < members[i].weight) has_memory = add_handle(profile, slot);
    for (uint32_t k = 0; k < members[i].weight && has_memory; k++)
      found[filled++] = (choice_t){.handle = profile->members[slot].handles[k], .slot = slot};
  }
  if (has_memory) {
    qsort(found, filled, sizeof *found, compare_choices);
    for (uint32_t i = 0; i < filled; i++) choices[i] = found[i].slot;
  } else {
    free(choices);
    choices = NULL;
  }
  free(found);
  return choices;
}

static void use_members(action_profile_t *profile, const group_member_t *members, uint32_t count, int change) {
  for (uint32_t i = 0; i < count; i++)
    profile->members[find_member(profile, members[i].member)].uses += (uint32_t)change;
}

static void drop_spares(action_profile_t *profile, const group_member_t *members, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) drop_spare_handles(profile, find_member(profile, members[i].member));
}

static uint32_t open_group(action_profile_t *profile, uint32_t id) {
  uint32_t slot = profile->groups_used;
  if (profile->by_group.count < profile->groups_used)
    for (slot = 0; profile->groups[slot].members != NULL;) slot++;
  if (!make_room((void **)&profile->groups, &profile->groups_room, slot, sizeof *profile->groups)) return NO_SLOT;
  if (!index_add(&profile->by_group, hash_of(id), slot)) return NO_SLOT;
  if (slot == profile->groups_used) profile->groups_used++;
  profile->groups[slot] = (profile_group_t){.id = id};
  return slot;
}

int profile_set_group(action_profile_t *profile, uint32_t id, const group_member_t *given, uint32_t count) {
  group_member_t *members = NULL;
  uint32_t num_choices = 0;
  int result = sort_members(profile, given, count, &members, &num_choices);
  if (result != P_OK) return result;
  uint32_t *choices = list_choices(profile, members, count, num_choices);
  uint32_t slot = choices != NULL ? index_get(&profile->by_group, hash_of(id)) : NO_SLOT;
  if (choices != NULL && slot == INDEX_NONE) slot = open_group(profile, id);
  if (slot == NO_SLOT) {
    drop_spares(profile, members, count);
    free(choices);
    free(members);
    return P_FULL;
  }
  profile_group_t *group = &profile->groups[slot];
  profile_group_t before = *group;
  use_members(profile, members, count, 1);
  group->members = members;
  group->count = count;
  group->choices = choices;
  group->num_choices = num_choices;
  use_members(profile, before.members, before.count, -1);
  drop_spares(profile, before.members, before.count);
  free(before.members);
  free(before.choices);
  return P_OK;
}

int profile_delete_group(action_profile_t *profile, uint32_t id) {
  uint32_t slot = index_get(&profile->by_group, hash_of(id));
  if (slot == INDEX_NONE) return P_NOT_FOUND;
  profile_group_t before = profile->groups[slot];
  if (before.uses != 0) return P_IN_USE;
  index_remove(&profile->by_group, hash_of(id), slot);
  profile->groups[slot] = (profile_group_t){0};
  use_members(profile, before.members, before.count, -1);
  drop_spares(profile, before.members, before.count);
  free(before.members);
  free(before.choices);
  return P_OK;
}

// ---- what entries refer to ----

int profile_resolve(const action_profile_t *profile, uint32_t kind, uint32_t id, indirect_t *out) {
  if (kind != INDIRECT_MEMBER && kind != INDIRECT_GROUP) return P_BAD_ARGUMENT;
  const table_index_t *index = kind == INDIRECT_MEMBER ? &profile->by_member : &profile->by_group;
  uint32_t slot = index_get(index, hash_of(id));
  if (slot == INDEX_NONE) return P_NOT_FOUND;
  *out = (indirect_t){.kind = kind, .slot = slot};
  return P_OK;
}

void profile_use(action_profile_t *profile, const indirect_t *via, int change) {
  if (via->kind == INDIRECT_MEMBER) profile->members[via->slot].uses += (uint32_t)change;
  if (via->kind == INDIRECT_GROUP) profile->groups[via->slot].uses += (uint32_t)change;
}

uint32_t profile_id(const action_profile_t *profile, const indirect_t *via) {
  return via->kind == INDIRECT_MEMBER ? profile->members[via->slot].id : profile->groups[via->slot].id;
}
