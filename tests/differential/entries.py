# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random control-plane state from P4Info: entries of every kind, profiles, groups, sessions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from differential.program_layout import ProgramLayout

GROUPS = (1, 2, 3)
PORTS = (1, 2, 3, 4, 5)
ENTRIES_MAX = 8
SMALL = (0, 1, 2)
"""Values with which one table's result often matches another table's key."""
_MatchType = p4i.MatchField
Seen = dict[tuple[str, str], list[int]]


def canonical(value: int) -> bytes:
    """Return the shortest big-endian bytes of a number, at least one."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class EntryGenerator:
    """Updates for one program; match values come from the frames that will be sent."""

    def __init__(self, layout: ProgramLayout, p4info: Path, rng: random.Random, seen: Seen) -> None:
        self._info = text_format.Parse(p4info.read_text(encoding="utf-8"), p4i.P4Info())
        self._actions = {item.preamble.id: item for item in self._info.actions}
        self._layout = layout
        self._targets = layout.key_targets()
        self._constants = layout.constants
        self._has_clones = layout.has_primitive("clone_")
        self._rng = rng
        self._seen = seen
        self._priorities = iter(rng.sample(range(1, 100_000), 10_000))
        self._members: dict[int, list[int]] = {}
        self._groups: dict[int, list[int]] = {}

    def state(self) -> Iterator[p4r.Update]:
        """Yield groups, sessions, profiles, then entries of all tables."""
        yield from self._replication()
        for profile in self._info.action_profiles:
            yield from self._profile(profile)
        for table in self._info.tables:
            if not table.is_const_table:
                yield from self._table(table)

    def change(self, earlier: list[p4r.Update]) -> p4r.Update | None:
        """Modify or delete an earlier entry; None if there is none."""
        held = [
            item
            for item in earlier
            if item.type == p4r.Update.INSERT and item.entity.HasField("table_entry")
        ]
        if not held:
            return None
        update = p4r.Update()
        update.CopyFrom(self._rng.choice(held))
        if self._rng.random() < 0.5:
            update.type = p4r.Update.DELETE
            update.entity.table_entry.ClearField("action")
            return update
        update.type = p4r.Update.MODIFY
        tables = {item.preamble.id: item for item in self._info.tables}
        self._act(update.entity.table_entry, tables[update.entity.table_entry.table_id])
        return update

    def _replication(self) -> Iterator[p4r.Update]:
        rng = self._rng
        for group in GROUPS:
            update = p4r.Update(type=p4r.Update.INSERT)
            entry = update.entity.packet_replication_engine_entry.multicast_group_entry
            entry.multicast_group_id = group
            _replicate(entry.replicas, rng, rng.randint(0, 4))
            yield update
        for session in GROUPS if self._has_clones else ():
            update = p4r.Update(type=p4r.Update.INSERT)
            clone = update.entity.packet_replication_engine_entry.clone_session_entry
            clone.session_id = session
            _replicate(clone.replicas, rng, rng.randint(1, 2))
            yield update

    def _profile(self, profile: p4i.ActionProfile) -> Iterator[p4r.Update]:
        rng, profile_id = self._rng, profile.preamble.id
        # If tables share a profile, simple_switch_grpc takes members' actions from the first table.
        table = next(t for t in self._info.tables if t.preamble.id == profile.table_ids[0])
        members = self._members.setdefault(profile_id, [])
        if self._is_translated(table):
            return
        for member in range(1, rng.randint(2, 6)):
            update = p4r.Update(type=p4r.Update.INSERT)
            entry = update.entity.action_profile_member
            entry.action_profile_id, entry.member_id = profile_id, member
            self._fill_action(entry.action, table)
            members.append(member)
            yield update
        if not profile.with_selector:
            return
        groups = self._groups.setdefault(profile_id, [])
        for group_id in range(1, rng.randint(2, 4)):
            update = p4r.Update(type=p4r.Update.INSERT)
            group = update.entity.action_profile_group
            group.action_profile_id, group.group_id = profile_id, group_id
            group.max_size = len(members)
            for member in rng.sample(members, rng.randint(1, len(members))):
                group.members.add(member_id=member, weight=1)
            groups.append(group_id)
            yield update

    def _table(self, table: p4i.Table) -> Iterator[p4r.Update]:
        rng = self._rng
        has_const_default = table.const_default_action_id or table.implementation_id
        has_members = not table.implementation_id or self._members.get(table.implementation_id)
        if self._is_translated(table) or not has_members:
            return
        has_choice = not has_const_default and self._usable(table, is_default=True)
        if has_choice and rng.random() < 0.5:
            update = p4r.Update(type=p4r.Update.MODIFY)
            entry = update.entity.table_entry
            entry.table_id, entry.is_default_action = table.preamble.id, True
            self._act(entry, table, is_default=True)
            yield update
        if not table.match_fields or not self._usable(table):
            return
        for _ in range(rng.randint(1, max(1, min(ENTRIES_MAX, table.size)))):
            yield self._entry(table)

    def _entry(self, table: p4i.Table) -> p4r.Update:
        update = p4r.Update(type=p4r.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id = table.preamble.id
        targets = self._targets[table.preamble.name]
        for field, target in zip(table.match_fields, targets, strict=True):
            self._match(entry, field, target)
        kinds = {field.match_type for field in table.match_fields}
        if kinds & {_MatchType.TERNARY, _MatchType.RANGE, _MatchType.OPTIONAL}:
            entry.priority = next(self._priorities)
        self._act(entry, table)
        return update

    def _match(self, entry: p4r.TableEntry, field: p4i.MatchField, target: tuple[str, str]) -> None:
        rng, width = self._rng, field.bitwidth
        ones = (1 << width) - 1
        value = self._value(width, target)
        match field.match_type:
            case _MatchType.EXACT:
                entry.match.add(field_id=field.id).exact.value = canonical(value)
            case _MatchType.LPM:
                # BMv2 counts the spare bits of a first byte as part of the prefix.
                longest = width if width % 8 == 0 else 0
                length = rng.choice((0, longest, rng.randint(0, longest)))
                if length:
                    lpm = entry.match.add(field_id=field.id).lpm
                    lpm.value = canonical(value >> (width - length) << (width - length))
                    lpm.prefix_len = length
            case _MatchType.TERNARY:
                mask = rng.choice((0, ones, rng.getrandbits(width), ones ^ rng.getrandbits(width)))
                if mask:
                    ternary = entry.match.add(field_id=field.id).ternary
                    ternary.value, ternary.mask = canonical(value & mask), canonical(mask)
            case _MatchType.RANGE:
                low = max(0, value - rng.choice((0, 1, rng.getrandbits(width))))
                high = min(ones, value + rng.choice((0, 1, rng.getrandbits(width))))
                if (low, high) != (0, ones):
                    part = entry.match.add(field_id=field.id).range
                    part.low, part.high = canonical(low), canonical(high)
            case _:
                if rng.random() < 0.7:
                    entry.match.add(field_id=field.id).optional.value = canonical(value)

    def _act(self, entry: p4r.TableEntry, table: p4i.Table, *, is_default: bool = False) -> None:
        profile = table.implementation_id
        entry.action.Clear()
        if not profile:
            self._fill_action(entry.action.action, table, is_default=is_default)
        elif self._groups.get(profile) and self._rng.random() < 0.6:
            entry.action.action_profile_group_id = self._rng.choice(self._groups[profile])
        else:
            entry.action.action_profile_member_id = self._rng.choice(self._members[profile])

    def _fill_action(
        self, action: p4r.Action, table: p4i.Table, *, is_default: bool = False
    ) -> None:
        action.action_id = self._rng.choice(self._usable(table, is_default=is_default))
        action.ClearField("params")
        for parameter in self._actions[action.action_id].params:
            value = self._parameter(parameter.name, parameter.bitwidth)
            action.params.add(param_id=parameter.id, value=canonical(value))

    def _usable(self, table: p4i.Table, *, is_default: bool = False) -> list[int]:
        excluded = p4i.ActionRef.TABLE_ONLY if is_default else p4i.ActionRef.DEFAULT_ONLY
        return [item.id for item in table.action_refs if item.scope != excluded]

    def _is_translated(self, table: p4i.Table) -> bool:
        """Return whether controllers write some number with another width than the switch has.

        simple_switch_grpc does not translate: it uses such numbers unchanged.
        """
        widths = self._layout.key_widths(table.preamble.name)
        stated = [field.bitwidth for field in table.match_fields]
        actions = [self._actions[item.id] for item in table.action_refs]
        for action in actions:
            widths += self._layout.parameter_widths(action.preamble.name)
            stated += [parameter.bitwidth for parameter in action.params]
        return stated != widths

    def _parameter(self, name: str, width: int) -> int:
        words = name.lower()
        if "port" in words or width == 9:
            chosen = self._rng.choice((*PORTS, *PORTS, 511, 255))
        elif any(word in words for word in ("group", "mcast", "mgid", "session")):
            chosen = self._rng.choice((*GROUPS, *GROUPS, 4))
        else:
            chosen = self._value(width, ("", ""))
        return chosen & ((1 << width) - 1)

    def _value(self, width: int, target: tuple[str, str]) -> int:
        rng = self._rng
        draw = rng.random()
        if "port" in target[1] and width == 9:
            return rng.choice(PORTS)
        seen = self._seen.get(target)
        if seen and draw < 0.8:
            chosen = rng.choice(seen)
        elif draw < 0.6:
            chosen = rng.choice(SMALL)
        elif draw < 0.9 and self._constants:
            chosen = rng.choice(self._constants)
        else:
            chosen = rng.getrandbits(width)
        return chosen & ((1 << width) - 1)


def _replicate(replicas: list[p4r.Replica], rng: random.Random, count: int) -> None:
    drawn = {(rng.choice(PORTS), rng.randrange(4)) for _ in range(count)}
    for port, instance in sorted(drawn):
        replicas.add(egress_port=port, instance=instance)  # pyright: ignore
