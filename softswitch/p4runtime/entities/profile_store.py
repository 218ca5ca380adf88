# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes and reads of action profiles (section 9.2): members, groups and one-shot action sets."""

from collections.abc import Iterator, Sequence

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Profile, Schema
from ..service.dataplane import ProfileGroup, ProfileMember
from ..writes.journal import Backend
from .profile_contents import ProfileContents, StoredMember
from .table_entry import Choice, OneShot, decode_call, encode_call

INVALID = rpc_code.INVALID_ARGUMENT
MAX_WEIGHT = 0x7FFF_FFFF
MAX_GROUP_WEIGHT = 1 << 20
"""Largest sum of the weights of one group that the data plane can hold."""


class ProfileStore:
    """Members and groups of one loaded program. The caller serialises calls."""

    def __init__(self, schema: Schema, backend: Backend) -> None:
        self._schema = schema
        self._contents = {
            profile.id: ProfileContents(profile, backend) for profile in schema.profiles.values()
        }

    def write_member(self, update_type: int, entry: p4r.ActionProfileMember) -> None:
        """Carry out one update of a member."""
        profile, held = self._manual(entry.action_profile_id)
        number = entry.member_id
        _check_id(held, update_type, "member", number, is_there=number in held.members)
        if update_type == p4r.Update.DELETE:
            held.delete_member(number)
            return
        if not entry.HasField("action"):
            raise held.refuse(INVALID, f"member {number}: action: is missing")
        action, params = decode_call(profile, entry.action)
        if update_type == p4r.Update.INSERT:
            held.add_member(number, StoredMember(action, params))
        else:
            held.modify_member(number, action, params)

    def write_group(self, update_type: int, entry: p4r.ActionProfileGroup) -> None:
        """Carry out one update of a group."""
        profile, held = self._manual(entry.action_profile_id)
        if not profile.with_selector:
            raise held.refuse(INVALID, "has no selector, and so no groups")
        number = entry.group_id
        _check_id(held, update_type, "group", number, is_there=number in held.groups)
        if update_type == p4r.Update.DELETE:
            held.delete_group(number)
            return
        _check_group(profile, held, entry)
        kept = p4r.ActionProfileGroup()
        kept.CopyFrom(entry)
        held.set_group(kept)

    def read_members(self, query: p4r.ActionProfileMember) -> Iterator[p4r.Entity]:
        """Return the selected members; id 0 selects all."""
        for profile in self._schema.select_profiles(query.action_profile_id):
            held = self._contents[profile.id]
            if held.one_shots:
                continue
            for number, stored in held.members.items():
                if query.member_id not in {0, number}:
                    continue
                member = p4r.ActionProfileMember(action_profile_id=profile.id, member_id=number)
                member.action.CopyFrom(self._encode(profile, stored.action, stored.params))
                yield p4r.Entity(action_profile_member=member)

    def read_groups(self, query: p4r.ActionProfileGroup) -> Iterator[p4r.Entity]:
        """Return the selected groups; id 0 selects all."""
        for profile in self._schema.select_profiles(query.action_profile_id):
            held = self._contents[profile.id]
            for number, stored in () if held.one_shots else held.groups.items():
                if query.group_id in {0, number}:
                    yield p4r.Entity(action_profile_group=stored.message)

    def resolve(self, profile: Profile, action: p4r.TableAction) -> Choice:
        """Return what an entry of an indirect table refers to; one-shot sets are made here."""
        kind = action.WhichOneof("type")
        held = self._contents[profile.id]
        if kind == "action_profile_action_set" and profile.with_selector:
            return self._make_one_shot(profile, held, action.action_profile_action_set)
        if kind == "action_profile_member_id":
            number = action.action_profile_member_id
            choice, is_there = ProfileMember(number), number in held.members
        elif kind == "action_profile_group_id" and profile.with_selector:
            number = action.action_profile_group_id
            choice, is_there = ProfileGroup(number), number in held.groups
        else:
            raise held.refuse(INVALID, f"action: entries cannot have {kind or 'an empty one'}")
        _check_manual(held)
        if not is_there:
            raise held.refuse(rpc_code.NOT_FOUND, f"{kind} {number}: does not exist")
        return choice

    def retain(self, profile: Profile, choice: Choice) -> None:
        """Count an entry that refers to a member or group."""
        if not isinstance(choice, OneShot):
            self._contents[profile.id].count_user(choice, 1)

    def release(self, profile: Profile, choice: Choice) -> None:
        """Stop counting an entry; a one-shot set is deleted with its entry."""
        held = self._contents[profile.id]
        if not isinstance(choice, OneShot):
            held.count_user(choice, -1)
            return
        held.delete_group(choice.group)
        for member in choice.members:
            held.delete_member(member)
        held.count_one_shot(-1)

    def _manual(self, profile_id: int) -> tuple[Profile, ProfileContents]:
        profile = self._schema.profile(profile_id)
        held = self._contents[profile.id]
        _check_manual(held)
        return profile, held

    def _encode(self, profile: Profile, action: int, params: bytes) -> p4r.Action:
        by_position = {item.position: item for item in profile.actions.values()}
        return encode_call(self._schema, by_position[action], params)

    def _make_one_shot(
        self, profile: Profile, held: ProfileContents, given: p4r.ActionProfileActionSet
    ) -> OneShot:
        if not held.one_shots and (held.members or held.groups):
            raise held.refuse(INVALID, "one-shot action sets and members cannot be mixed")
        if given.action_selection_mode == p4r.ActionProfileActionSet.RANDOM:
            raise held.refuse(
                rpc_code.UNIMPLEMENTED,
                "action_selection_mode RANDOM is not supported; a hash selects actions",
            )
        items = given.action_profile_actions
        calls = [decode_call(profile, item.action) for item in items]
        weights = [item.weight for item in items]
        _check_watches(held, items)
        _check_size(profile, held, weights, profile.max_group_size, INVALID)
        kept = p4r.ActionProfileActionSet()
        kept.CopyFrom(given)
        group = p4r.ActionProfileGroup()
        for item, (action, params) in zip(kept.action_profile_actions, calls, strict=True):
            item.action.CopyFrom(self._encode(profile, action, params))
            number = held.free_id()
            held.add_member(number, StoredMember(action, params))
            group.members.add(member_id=number, weight=item.weight)
        group.group_id = held.free_id()
        held.set_group(group)
        held.count_one_shot(1)
        return OneShot(kept, group.group_id, tuple(item.member_id for item in group.members))


def _check_manual(held: ProfileContents) -> None:
    if held.one_shots:
        raise held.refuse(INVALID, "one-shot action sets and members cannot be mixed")


def _check_id(
    held: ProfileContents, update_type: int, kind: str, number: int, *, is_there: bool
) -> None:
    if number == 0:
        raise held.refuse(INVALID, f"{kind}_id: must not be 0")
    if update_type == p4r.Update.INSERT and is_there:
        raise held.refuse(rpc_code.ALREADY_EXISTS, f"{kind} {number}: exists; use MODIFY")
    if update_type != p4r.Update.INSERT and not is_there:
        raise held.refuse(rpc_code.NOT_FOUND, f"{kind} {number}: does not exist")


def _check_group(profile: Profile, held: ProfileContents, entry: p4r.ActionProfileGroup) -> None:
    what = f"group {entry.group_id}"
    old = held.groups.get(entry.group_id)
    if old is not None and old.message.max_size != entry.max_size:
        raise held.refuse(INVALID, f"{what}: max_size cannot be changed")
    limit = profile.max_group_size
    if entry.max_size < 0 or (limit and not 0 < entry.max_size <= limit):
        allowed = f"1 to {limit}" if limit else "0 or more"
        raise held.refuse(INVALID, f"{what}: max_size {entry.max_size}: {allowed}")
    if len({item.member_id for item in entry.members}) != len(entry.members):
        raise held.refuse(INVALID, f"{what}: members: one is given twice; use its weight instead")
    _check_watches(held, entry.members)
    for item in entry.members:
        if item.member_id not in held.members:
            raise held.refuse(rpc_code.NOT_FOUND, f"{what}: no member {item.member_id}")
    weights = [item.weight for item in entry.members]
    _check_size(profile, held, weights, entry.max_size, rpc_code.RESOURCE_EXHAUSTED)


def _check_watches(
    held: ProfileContents,
    items: Sequence[p4r.ActionProfileGroup.Member] | Sequence[p4r.ActionProfileAction],
) -> None:
    for item in items:
        kind = item.WhichOneof("watch_kind")
        if kind is not None and getattr(item, kind):
            raise held.refuse(
                rpc_code.UNIMPLEMENTED, f"{kind}: members do not follow the state of ports"
            )


def _check_size(
    profile: Profile, held: ProfileContents, weights: list[int], limit: int, code: int
) -> None:
    largest = profile.max_member_weight or MAX_WEIGHT
    for weight in weights:
        if not 0 < weight <= largest:
            raise held.refuse(INVALID, f"weight {weight}: 1 to {largest}")
    if sum(weights) > MAX_GROUP_WEIGHT:
        raise held.refuse(
            rpc_code.RESOURCE_EXHAUSTED,
            f"sum of weights {sum(weights)}: at most {MAX_GROUP_WEIGHT}",
        )
    size = len(weights) if profile.counts_members else sum(weights)
    if limit and size > limit:
        what = "number of members" if profile.counts_members else "sum of weights"
        raise held.refuse(code, f"{what} {size}: at most {limit}")
