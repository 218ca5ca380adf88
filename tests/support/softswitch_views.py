# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A softswitch in this process whose views come and go while it runs."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from dataclasses import dataclass

from fake_switch import SWITCH, worker_endpoint
from softswitch_job import SoftswitchJob
from switchfold import p4src
from switchfold.hostlib.control.view import JobView, Member, TreeView
from switchfold.hostlib.slots.wire import NUM_SLOTS, UDP_PORT
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from switchfold.softswitch.switch.impairments import Impairments
from switchfold.softswitch.switch.table_entries import Match

Entry = tuple[str, list[int], str, list[int]]


@dataclass(frozen=True, kw_only=True)
class _View:
    members: tuple[int, ...]
    trees: dict[int, int]
    straggler: StragglerPolicy
    entries: tuple[tuple[int, Match], ...]
    groups: tuple[int, ...]


class SoftswitchViews(SoftswitchJob):
    """Installs views side by side, each tree with slots of its own."""

    def __init__(
        self,
        variant: p4src.Variant,
        num_workers: int,
        *,
        slot_count: int = 16,
        straggler: StragglerPolicy = WAIT_FOR_ALL,
        impairments: Callable[[int], Impairments] | None = None,
    ) -> None:
        self.views: dict[int, _View] = {}
        self.generation = 0
        self._straggler = straggler
        self._next_slot = 0
        self._next_group = itertools.count(1)
        super().__init__(variant, num_workers, slot_count=slot_count, impairments=impairments)

    def _install(self) -> None:
        members = tuple(range(self.num_workers))
        self.install(1000, members, {7: self.slot_count}, self._straggler)

    def install(
        self,
        generation: int,
        members: tuple[int, ...],
        trees: dict[int, int],
        straggler: StragglerPolicy = WAIT_FOR_ALL,
    ) -> None:
        entries: list[tuple[int, Match]] = []
        groups: list[int] = []
        for tree_id, slot_count in trees.items():
            if self._next_slot + slot_count > NUM_SLOTS:
                self._next_slot = 0
            group = next(self._next_group)
            self.switch.replication.set_multicast_group(group, [(i + 1, i + 1) for i in members])
            groups.append(group)
            quorum = straggler.quorum or len(members)
            children = sum(1 << i for i in members)
            job = [generation, self._next_slot, slot_count, children, quorum, len(members), group]
            job += [int(straggler.allow_partial), 0, 0]
            self._next_slot += slot_count
            entries.append(self._insert("job", [tree_id], "admit_root", job))
            for i in members:
                end = worker_endpoint(i)
                address = int.from_bytes(socket.inet_aton(end.address), "big")
                mac = int(end.mac.replace(":", ""), 16)
                worker = [1 << i, 1 << i, 1]
                key = [tree_id, i, i + 1, address]
                entries.append(self._insert("worker", key, "admit_worker", worker))
                to = [mac, address, UDP_PORT]
                key = [tree_id, i + 1]
                entries.append(self._insert("worker_address", key, "set_worker_address", to))
        self.views[generation] = _View(
            members=members,
            trees=trees,
            straggler=straggler,
            entries=tuple(entries),
            groups=tuple(groups),
        )
        self.generation = generation

    def remove(self, generation: int) -> None:
        view = self.views.pop(generation, None)
        if view is not None:
            for position, match in view.entries:
                self.switch.tables.delete(position, match)
            for group in view.groups:
                self.switch.replication.delete_multicast_group(group)

    def view(self, worker_id: int) -> JobView:
        view = self.views[self.generation]
        return JobView(
            job=1,
            generation=self.generation,
            worker_id=worker_id,
            members=tuple(Member(worker_id=i) for i in view.members),
            trees=tuple(TreeView(tree_id=i, slot_count=n) for i, n in view.trees.items()),
            child_id=worker_id,
            worker_bitmap=1 << worker_id,
            values_per_packet=self.values_per_packet,
            switch=SWITCH,
            straggler=view.straggler,
        )
