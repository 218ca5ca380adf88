# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The members and groups of one action profile; every change can be undone."""

from dataclasses import dataclass

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Profile
from ..service.dataplane import ProfileGroup, ProfileMember
from ..service.status import RequestError
from ..writes.journal import Backend

_LAST_ID = 0xFFFF_FFFE


@dataclass(slots=True)
class StoredMember:
    """A member; `users` counts the table entries and groups that refer to it."""

    action: int
    params: bytes
    users: int = 0


@dataclass(slots=True)
class StoredGroup:
    """A group; `users` counts the table entries that refer to it."""

    message: p4r.ActionProfileGroup
    users: int = 0

    @property
    def weights(self) -> list[tuple[int, int]]:
        """Member ids and weights."""
        return [(item.member_id, item.weight) for item in self.message.members]


class ProfileContents:
    """What one profile holds. While it holds one-shot sets, the server chooses all ids."""

    def __init__(self, profile: Profile, backend: Backend) -> None:
        self._profile = profile
        self._backend = backend
        self.members: dict[int, StoredMember] = {}
        self.groups: dict[int, StoredGroup] = {}
        self.one_shots = 0
        self._next_id = 1

    def refuse(self, code: int, reason: str) -> RequestError:
        """Return a refusal that names the profile."""
        return RequestError(code, f"{self._profile.label}: {reason}")

    def free_id(self) -> int:
        """Return an id that neither a member nor a group has."""
        while self._next_id in self.members or self._next_id in self.groups:
            self._next_id = self._next_id % _LAST_ID + 1
        number = self._next_id
        self._next_id = number % _LAST_ID + 1
        return number

    def count_user(self, choice: ProfileMember | ProfileGroup, step: int) -> None:
        """Add 1 or -1 to the number of table entries that refer to a member or group."""
        self._count_user(choice, step)
        self._backend.journal.note(lambda: self._count_user(choice, -step))

    def count_one_shot(self, step: int) -> None:
        """Add 1 or -1 to the number of one-shot sets."""
        self._count_one_shot(step)
        self._backend.journal.note(lambda: self._count_one_shot(-step))

    def add_member(self, number: int, stored: StoredMember) -> None:
        """Add a member; raises RESOURCE_EXHAUSTED if the profile is full."""
        size = self._profile.size
        if size and len(self.members) >= size:
            raise self.refuse(rpc_code.RESOURCE_EXHAUSTED, f"is full: it has {size} members")
        self._add_member(number, stored)
        self._backend.journal.note(lambda: self._delete_member(number))

    def modify_member(self, number: int, action: int, params: bytes) -> None:
        """Change the action of a member."""
        stored = self.members[number]
        old_action, old_params = stored.action, stored.params
        self._modify_member(number, action, params)
        self._backend.journal.note(lambda: self._modify_member(number, old_action, old_params))

    def delete_member(self, number: int) -> None:
        """Remove a member; raises FAILED_PRECONDITION while something refers to it."""
        stored = self.members[number]
        if stored.users:
            raise self.refuse(
                rpc_code.FAILED_PRECONDITION,
                f"member {number}: {stored.users} groups or entries refer to it",
            )
        self._delete_member(number)
        self._backend.journal.note(lambda: self._add_member(number, stored))

    def set_group(self, message: p4r.ActionProfileGroup) -> None:
        """Create or replace a group, which the caller has checked."""
        number = message.group_id
        old = self.groups.get(number)
        self._set_group(number, StoredGroup(message, 0 if old is None else old.users))
        self._backend.journal.note(
            lambda: self._delete_group(number) if old is None else self._set_group(number, old)
        )

    def delete_group(self, number: int) -> None:
        """Remove a group; raises FAILED_PRECONDITION while an entry refers to it."""
        stored = self.groups[number]
        if stored.users:
            raise self.refuse(
                rpc_code.FAILED_PRECONDITION, f"group {number}: {stored.users} entries refer to it"
            )
        self._delete_group(number)
        self._backend.journal.note(lambda: self._set_group(number, stored))

    def _count_user(self, choice: ProfileMember | ProfileGroup, step: int) -> None:
        held = self.members if isinstance(choice, ProfileMember) else self.groups
        held[choice.id].users += step

    def _count_one_shot(self, step: int) -> None:
        self.one_shots += step

    def _add_member(self, number: int, stored: StoredMember) -> None:
        self._backend.dataplane.profiles.add_member(
            self._profile.position, number, stored.action, stored.params
        )
        self.members[number] = stored

    def _modify_member(self, number: int, action: int, params: bytes) -> None:
        self._backend.dataplane.profiles.modify_member(
            self._profile.position, number, action, params
        )
        stored = self.members[number]
        stored.action, stored.params = action, params

    def _delete_member(self, number: int) -> None:
        self._backend.dataplane.profiles.delete_member(self._profile.position, number)
        del self.members[number]

    def _set_group(self, number: int, stored: StoredGroup) -> None:
        self._backend.dataplane.profiles.set_group(self._profile.position, number, stored.weights)
        self._count_members(number, -1)
        self.groups[number] = stored
        self._count_members(number, 1)

    def _delete_group(self, number: int) -> None:
        self._backend.dataplane.profiles.delete_group(self._profile.position, number)
        self._count_members(number, -1)
        del self.groups[number]

    def _count_members(self, group: int, step: int) -> None:
        stored = self.groups.get(group)
        for member, _ in () if stored is None else stored.weights:
            self.members[member].users += step
