# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on action profiles and selectors: their members and groups."""

from __future__ import annotations

from collections.abc import Sequence

from .native import NativeSwitch
from .pipeline import GroupMember
from .table_entries import Match, seam_entry


class ActionProfiles:
    """The action profiles of a switch; positions, atomicity and errors as in Tables."""

    def __init__(self, native: NativeSwitch) -> None:
        self._native = native

    def add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Add a member; `profile` counts the JSON's action_profiles, ingress first."""
        entry = seam_entry(Match(b""), action, params)
        self._native.control(
            f"member {member} of profile {profile}",
            "switch_profile_add_member",
            profile,
            member,
            entry,
        )

    def modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Give a member another action; entries that refer to it follow at once."""
        entry = seam_entry(Match(b""), action, params)
        self._native.control(
            f"member {member} of profile {profile}",
            "switch_profile_modify_member",
            profile,
            member,
            entry,
        )

    def delete_member(self, profile: int, member: int) -> None:
        """Remove a member; InUseError while an entry or group refers to it."""
        self._native.control(
            f"member {member} of profile {profile}", "switch_profile_delete_member", profile, member
        )

    def set_group(self, profile: int, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Create or replace a group of (member, weight) pairs; weights are at least 1."""
        array = (GroupMember * max(len(members), 1))(*members)
        self._native.control(
            f"group {group} of profile {profile}",
            "switch_profile_set_group",
            profile,
            group,
            array,
            len(members),
        )

    def delete_group(self, profile: int, group: int) -> None:
        """Remove a group; InUseError while an entry refers to it."""
        self._native.control(
            f"group {group} of profile {profile}", "switch_profile_delete_group", profile, group
        )
