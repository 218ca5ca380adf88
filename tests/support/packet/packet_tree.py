# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switches of a tree: the table entries that make them, and the frames between them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from packet_frames import DONT_FRAGMENT, ETHERTYPE_IPV4, Datagram, ethernet, ipv4, udp
from packet_target import Entry, Target
from switchfold.hostlib.slots.wire import UDP_PORT, WIRE_VERSION, Operation, datagram_dtype

ECN_CAPABLE = 2


@dataclass(frozen=True, kw_only=True)
class Station:
    """A sender and receiver of Switchfold packets: a worker or a switch."""

    mac: int
    address: int
    udp_port: int = UDP_PORT


@dataclass(frozen=True, kw_only=True)
class Child:
    """One child, or a server, as its switch knows it."""

    child_id: int
    port: int
    station: Station
    contributor_mask: int
    max_contributors: int = 1
    """0: a server."""


@dataclass(frozen=True, kw_only=True)
class HotRow:
    """A hot row as table `hot_row` places it."""

    row: int
    slot: int
    value_copy: int
    epoch: int = 1
    exponent: int = 77


@dataclass(frozen=True, kw_only=True)
class Parent:
    """The parent as its child knows it."""

    port: int
    station: Station
    child_id: int
    child_bitmap: int = 0


@dataclass(frozen=True, kw_only=True)
class Node:
    """One switch of a tree."""

    job_id: int
    generation: int
    values_per_packet: int
    station: Station
    children: tuple[Child, ...]
    parent: Parent | None = None
    slot_base: int = 8
    slot_count: int = 4
    quorum: int = 0
    """0: all workers."""
    num_workers: int = 0
    """Of the whole tree; 0: of all children."""
    allow_partial: bool = False
    level: int = 0
    """Switches below, on the longest path down to a worker."""
    servers: tuple[Child, ...] = ()
    """Of hot rows: child ids that no child has."""
    hot_rows: tuple[HotRow, ...] = ()
    keepers: tuple[int, ...] = ()
    """Child ids of the servers and the switches below that get the values of hot rows."""

    @property
    def groups(self) -> dict[int, list[tuple[int, int]]]:
        """The replicas (port, instance) of the multicast groups."""
        stations = {child.child_id: child for child in (*self.children, *self.servers)}

        def replicas(child_ids: Iterable[int]) -> list[tuple[int, int]]:
            return [(stations[child_id].port, child_id + 1) for child_id in child_ids]

        return {
            self.job_id: replicas(child.child_id for child in self.children),
            self.server_group: replicas(server.child_id for server in self.servers),
            self.copies_group: replicas(self.keepers),
        }

    @property
    def server_group(self) -> int:
        """The group to which sums of hot rows go; 0: none."""
        return 10000 + self.job_id if self.servers else 0

    @property
    def copies_group(self) -> int:
        """The group to which values of hot rows go; 0: none."""
        return 20000 + self.job_id if self.keepers else 0

    def place(self, row: HotRow) -> Entry:
        """Return the entry that makes a row hot."""
        return Entry(
            table="hot_row",
            match={"job_id": self.job_id, "row": row.row},
            action="place_row",
            params={
                "slot": row.slot,
                "value_copy": row.value_copy,
                "epoch": row.epoch,
                "exponent": row.exponent,
                "server_group_id": self.server_group,
                "copies_group_id": self.copies_group,
            },
        )

    def admission(self) -> Entry:
        """Return the entry of table `job`."""
        children_bitmap = sum(1 << child.child_id for child in self.children)
        num_workers = self.num_workers or sum(child.max_contributors for child in self.children)
        params = {
            "generation": self.generation,
            "slot_base": self.slot_base,
            "slot_count": self.slot_count,
            "children_bitmap": children_bitmap,
            "multicast_group_id": self.job_id,
            "allow_partial": int(self.allow_partial),
            "level": self.level,
            "max_priority": 0,
        }
        if self.parent is None:
            params |= {"quorum": self.quorum or num_workers, "num_workers": num_workers}
        else:
            params |= {
                "parent_port": self.parent.port,
                "parent_address": self.parent.station.address,
                "child_id": self.parent.child_id,
                "child_bitmap": self.parent.child_bitmap,
            }
        action = "admit_root" if self.parent is None else "admit_inner"
        return Entry(table="job", match={"job_id": self.job_id}, action=action, params=params)

    def entries(self) -> list[Entry]:
        """Return the entries that make a switch this one."""
        entries = [self.admission()]
        for child in (*self.children, *self.servers):
            entries.append(self._admit(child))
            entries.append(self._address(child.child_id + 1, child.station))
        entries += [self.place(row) for row in self.hot_rows]
        if self.parent is not None:
            entries.append(self._address(0, self.parent.station))
        return entries

    def _admit(self, child: Child) -> Entry:
        return Entry(
            table="worker",
            match={
                "job_id": self.job_id,
                "worker_id": child.child_id,
                "ingress_port": child.port,
                "source_address": child.station.address,
            },
            action="admit_worker" if child.max_contributors else "admit_server",
            params={
                "worker_bit": 1 << child.child_id,
                "contributor_mask": child.contributor_mask,
                "max_contributors": child.max_contributors,
            }
            if child.max_contributors
            else {},
        )

    def _address(self, replica_id: int, station: Station) -> Entry:
        return Entry(
            table="worker_address",
            match={"job_id": self.job_id, "replica_id": replica_id},
            action="set_worker_address",
            params={"mac": station.mac, "address": station.address, "udp_port": station.udp_port},
        )

    @contextmanager
    def installed(self, target: Target) -> Generator[None]:
        """Let a target be this switch; its slots keep what they hold."""
        entries = self.entries()
        target.insert(*entries)
        groups = {group: replicas for group, replicas in self.groups.items() if replicas}
        for group, replicas in groups.items():
            target.set_multicast_group(group, replicas)
        try:
            yield
        finally:
            for group in groups:
                target.set_multicast_group(group, [])
            target.delete(*entries)

    def child(self, child_id: int) -> Child:
        """Return a child or a server."""
        return next(
            child for child in (*self.children, *self.servers) if child.child_id == child_id
        )

    def packet(self, child_id: int, values: Any = 0, **fields: int) -> Datagram:
        """Return a child's AGGREGATE_ADD of chunk 0 to slot 0 in round 1, changed by the fields."""
        datagram = np.zeros((), datagram_dtype(self.values_per_packet))
        defaults = {
            "version": WIRE_VERSION,
            "operation": Operation.AGGREGATE_ADD,
            "job_id": self.job_id,
            "worker_id": child_id,
            "generation": self.generation,
            "round": 1,
            "range_end": self.values_per_packet,
            "worker_bitmap": self.child(child_id).contributor_mask,
            "num_contributors": self.child(child_id).max_contributors,
        }
        for name, value in (defaults | fields).items():
            datagram["header"][name] = value
        datagram["values"] = values
        return datagram

    def from_child(
        self, child_id: int, datagram: Datagram, *, tos: int = 0, port: int | None = None
    ) -> tuple[int, bytes]:
        """Return (port, frame) in which a child's packet reaches this switch."""
        child = self.child(child_id)
        frame = make_frame(child.station, self.station, datagram, tos=tos)
        return (child.port if port is None else port, frame)

    def from_parent(
        self, datagram: Datagram, *, tos: int = ECN_CAPABLE, sender: Station | None = None
    ) -> bytes:
        """Return the frame in which the parent's packet reaches this switch."""
        assert self.parent is not None
        return make_frame(sender or self.parent.station, self.station, datagram, tos=tos)

    def to_parent(self, datagram: Datagram) -> list[tuple[int, bytes]]:
        """Return what goes up, as (port, frame)."""
        assert self.parent is not None
        frame = make_frame(self.station, self.parent.station, datagram, tos=ECN_CAPABLE)
        return [(self.parent.port, frame)]

    def to_child(
        self, child_id: int, datagram: Datagram, *, tos: int = 0
    ) -> list[tuple[int, bytes]]:
        """Return what goes to one child, as (port, frame)."""
        child = self.child(child_id)
        return [(child.port, make_frame(self.station, child.station, datagram, tos=tos))]

    def to_children(self, datagram: Datagram, *, tos: int = 0) -> list[tuple[int, bytes]]:
        """Return the frames of a multicast, as (port, frame)."""
        return [
            sent
            for child in self.children
            for sent in self.to_child(child.child_id, datagram, tos=tos)
        ]


def make_frame(
    sender: Station, receiver: Station, datagram: Datagram, *, tos: int = 0, ttl: int = 64
) -> bytes:
    """Return a Switchfold frame as hosts and switches send it: not to be fragmented."""
    segment = udp(
        sender.address,
        receiver.address,
        sender.udp_port,
        receiver.udp_port,
        datagram.tobytes(),
    )
    packet = ipv4(
        sender.address,
        receiver.address,
        segment,
        ttl=ttl,
        tos=tos,
        identification=0,
        fragment=DONT_FRAGMENT,
    )
    return ethernet(receiver.mac, sender.mac, ETHERTYPE_IPV4) + packet


def worker(number: int) -> Station:
    """Return a worker's station."""
    return Station(
        mac=0x0200_0000_0001 + number, address=0x0A00_0001 + number, udp_port=40001 + number
    )


def switch(number: int) -> Station:
    """Return a switch's station."""
    return Station(mac=0x0200_0000_FF00 + number, address=0x0A00_FF00 + number)
