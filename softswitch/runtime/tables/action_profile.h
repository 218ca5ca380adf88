// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Action profiles: members (an action with its parameters) and groups of members, shared by tables. A member gets the
// lowest free handle, and one more for each further unit of its weight. A group chooses from its members in the order of
// handles. simple_switch_grpc numbers members in this manner, too, so that a hash chooses the same member in both.
#ifndef SOFTSWITCH_ACTION_PROFILE_H
#define SOFTSWITCH_ACTION_PROFILE_H

#include <stdint.h>

#include "pipeline.h"
#include "table_index.h"

// What a table entry holds instead of an action; all zeros: nothing.
typedef struct {
  uint32_t kind; // INDIRECT_MEMBER or INDIRECT_GROUP
  uint32_t slot; // in the profile's members or groups
} indirect_t;

typedef struct {
  uint32_t id;
  uint32_t action; // position in the program's actions
  uint32_t uses; // entries and groups that refer to it
  uint32_t num_handles; // 0: free
  uint32_t *handles; // its own, then one for each further unit of its greatest weight
  uint64_t *data; // decoded parameters
} profile_member_t;

typedef struct {
  uint32_t id;
  uint32_t uses;
  uint32_t count; // of different members
  uint32_t num_choices; // sum of weights
  group_member_t *members; // rising member ids; NULL: free
  uint32_t *choices; // members' slots by rising handle
} profile_group_t;

typedef struct {
  profile_member_t *members;
  profile_group_t *groups;
  uint32_t *owners; // member slot + 1 of each handle; 0: free
  uint32_t members_used, members_room, groups_used, groups_room, owners_room, lowest_handle;
  table_index_t by_member, by_group; // slots by hash of the id
} action_profile_t;

int profile_create(action_profile_t *); // P_OK or P_FULL (no memory); destroy in both cases
void profile_destroy(action_profile_t *);

// P_OK, P_EXISTS, P_NOT_FOUND, P_IN_USE, P_BAD_ARGUMENT (weight 0, member twice), P_FULL (no memory).
int profile_add(action_profile_t *, uint32_t id, uint32_t action, const uint64_t *data, uint32_t bytes);
int profile_modify(action_profile_t *, uint32_t id, uint32_t action, const uint64_t *data, uint32_t bytes);
int profile_delete(action_profile_t *, uint32_t id);
int profile_set_group(action_profile_t *, uint32_t id, const group_member_t *, uint32_t count); // creates or replaces
int profile_delete_group(action_profile_t *, uint32_t id);

// Find the member or group that an entry refers to: P_OK, P_NOT_FOUND or P_BAD_ARGUMENT.
int profile_resolve(const action_profile_t *, uint32_t kind, uint32_t id, indirect_t *out);
// The id of the member or group that an entry refers to.
uint32_t profile_id(const action_profile_t *, const indirect_t *);
void profile_use(action_profile_t *, const indirect_t *, int change);

// The member to run, or NULL for an empty group.
static inline const profile_member_t *profile_choose(const action_profile_t *profile, const indirect_t *via,
                                                     uint32_t hash) {
  if (via->kind == INDIRECT_MEMBER) return &profile->members[via->slot];
  const profile_group_t *group = &profile->groups[via->slot];
  if (group->num_choices == 0) return NULL;
  return &profile->members[group->choices[hash % group->num_choices]];
}

#endif
