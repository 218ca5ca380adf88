# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker knows of its job in one view, and of the addresses at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ..errors import ConfigurationError
from ..slots.wire import (
    MAX_PRIORITY,
    MAX_WORKERS,
    UDP_PORT,
    VALUES_PER_PACKET_NARROW,
    VALUES_PER_PACKET_WIDE,
)
from ..straggler import WAIT_FOR_ALL, StragglerPolicy

UNKNOWN_MAC = "00:00:00:00:00:00"
"""Stands for the MAC address if the kernel builds the frames and this process need not know it."""
MIN_SLOTS = 2
"""One slot for exponents and one for values."""
MAX_JOB_WORKERS = 0xFFFF
"""Contributors are counted in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One end of the data path: IPv4 address, MAC address and UDP port."""

    address: str
    """Dotted IPv4 address."""
    udp_port: int = UDP_PORT
    mac: str = UNKNOWN_MAC
    """Needed by transports that build frames themselves."""


@dataclass(frozen=True, kw_only=True)
class TreeView:
    """One aggregation tree of a view."""

    tree_id: int
    """In the header's `job_id` field, 16 bit."""
    slot_count: int
    """Slots of this tree; the same on all of its switches."""
    members: int = 0
    """Bitmap of the workers at and below this worker's switch; 0: it is not known."""
    level: int = 0
    """Longest path from this worker's switch down to a switch without others below."""
    root: Endpoint | None = None
    """The tree's only switch, where it has one of its own; None: the tree is sent to by the view's
    `switch`."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A worker that takes part in a view."""

    worker_id: int
    address: str = ""
    """Dotted IPv4 address on the data path."""
    peer_address: str = ""
    """Where its peer server listens: host name or address."""
    peer_port: int = 0
    """TCP port of its peer server; 0: it has none."""


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A worker's view of one view of its job; refuses impossible numbers.

    A job passes through views, each with a generation of its own. Worker ids are the job's; the
    members of a view are some of them.
    """

    job: int
    """Number of the job at its controller."""
    generation: int
    worker_id: int
    members: tuple[Member, ...]
    trees: tuple[TreeView, ...]
    """The same, in the same order, on all workers; none: the hosts sum."""
    child_id: int
    """This worker's id at its switch: the header's `worker_id`."""
    worker_bitmap: int
    """This worker as a contributor, in headers."""
    values_per_packet: int
    switch: Endpoint
    """Where contributions go and results come from, unless the trees have roots of their own."""
    straggler: StragglerPolicy = WAIT_FOR_ALL
    neighbours: tuple[int, ...] | None = None
    """Members at this worker's switch; None: all."""
    max_priority: int = 0
    """Highest priority of this job's packets that all switches of its trees let through."""
    is_on_host: bool = False
    """Whether its switch is one process on a host, and no switch of the network."""

    def __post_init__(self) -> None:
        """Check the ranges that the wire format and the protocol set."""
        ids = self.member_ids
        if self.worker_id not in ids or len(set(ids)) != len(ids):
            raise ConfigurationError(
                f"job {self.job}: worker {self.worker_id} is to run in a view of workers"
                f" {ids}; it must be one of them, and each must be there once"
            )
        has_child = 0 <= self.child_id < MAX_WORKERS and 0 < self.worker_bitmap < 1 << MAX_WORKERS
        if self.trees and not has_child:
            raise ConfigurationError(
                f"job {self.job}: child id {self.child_id} with bitmap {self.worker_bitmap:#x};"
                f" a switch has children 0 to {MAX_WORKERS - 1}, each with a bit"
            )
        tree_ids = [tree.tree_id for tree in self.trees]
        if len(set(tree_ids)) != len(tree_ids) or any(not 0 <= i <= 0xFFFF for i in tree_ids):
            raise ConfigurationError(
                f"job {self.job}: tree ids {tree_ids}; they must differ and fit in 16 bits"
            )
        if self.is_transposed and any(tree.root is None for tree in self.trees):
            raise ConfigurationError(
                f"job {self.job}: some of its trees have a root of their own and some have none;"
                " the controller and this library are of different releases"
            )
        is_short = any(tree.slot_count < 1 for tree in self.trees)
        if self.trees and (is_short or self.slot_count < MIN_SLOTS):
            raise ConfigurationError(
                f"job {self.job}: {self.slot_count} slots in {len(self.trees)} trees; a job needs"
                f" at least {MIN_SLOTS}, and one in each tree, ask the controller for more slots"
            )
        if self.values_per_packet not in (VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE):
            raise ConfigurationError(
                f"job {self.job}: {self.values_per_packet} values per packet; this library"
                f" speaks {VALUES_PER_PACKET_NARROW} and {VALUES_PER_PACKET_WIDE}"
            )
        if not 0 <= self.max_priority <= MAX_PRIORITY:
            raise ConfigurationError(
                f"job {self.job}: max_priority is {self.max_priority}; it must be 0 to"
                f" {MAX_PRIORITY}, as a port of a switch has at most {MAX_PRIORITY + 1} queues"
            )

    @classmethod
    def on_one_switch(  # noqa: PLR0913 - a view's fields
        cls,
        *,
        job: int,
        generation: int,
        worker_id: int,
        num_workers: int,
        slot_count: int,
        values_per_packet: int,
        switch: Endpoint,
        straggler: StragglerPolicy = WAIT_FOR_ALL,
        max_priority: int = 0,
        is_on_host: bool = False,
    ) -> Self:
        """Return the view of worker 0 .. num_workers - 1 with one tree of one switch.

        The tree's id is the job's number; child ids are worker ids.
        """
        check_worker(worker_id, num_workers)
        if num_workers > MAX_WORKERS:
            raise ConfigurationError(
                f"num_workers is {num_workers}; one switch has {MAX_WORKERS} children, use a tree"
            )
        return cls(
            job=job,
            generation=generation,
            worker_id=worker_id,
            members=tuple(Member(worker_id=i) for i in range(num_workers)),
            trees=(TreeView(tree_id=job, slot_count=slot_count, members=(1 << num_workers) - 1),),
            child_id=worker_id,
            worker_bitmap=1 << worker_id,
            values_per_packet=values_per_packet,
            switch=switch,
            straggler=straggler,
            max_priority=max_priority,
            is_on_host=is_on_host,
        )

    @property
    def num_workers(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def member_ids(self) -> list[int]:
        """Worker ids of the members, in the view's order."""
        return [member.worker_id for member in self.members]

    @property
    def slot_count(self) -> int:
        """Slots of all trees together."""
        return sum(tree.slot_count for tree in self.trees)

    @property
    def is_transposed(self) -> bool:
        """Whether each tree has a switch of its own, which all members send to."""
        return any(tree.root is not None for tree in self.trees)

    def switch_of(self, tree_id: int) -> Endpoint:
        """Return where this worker sends a tree's contributions to."""
        roots = (tree.root for tree in self.trees if tree.tree_id == tree_id)
        return next(roots, None) or self.switch

    @property
    def is_on_switch(self) -> bool:
        """Whether switches aggregate; else the members do it among themselves."""
        return bool(self.trees)

    @property
    def may_be_stale(self) -> bool:
        """Whether workers may do without results, and keep old values in their place."""
        tolerance = self.straggler.tolerance
        return self.is_on_host and tolerance is not None and tolerance.stale > 0

    @property
    def can_multicast(self) -> bool:
        """Whether one switch has all members at its ports, and can copy what one of them sends."""
        is_at_one_switch = all(self.is_neighbour(i) for i in self.member_ids)
        return len(self.trees) == 1 and is_at_one_switch and self.has_worker_bitmaps

    @property
    def has_worker_bitmaps(self) -> bool:
        """Whether bit i of a bitmap is worker i; in larger views it is a child of some switch."""
        return all(i < MAX_WORKERS for i in self.member_ids)

    @property
    def control_priority(self) -> int:
        """Priority of packets that others wait for: the highest one, which no tensor has."""
        return self.max_priority

    def tensor_priority(self, wanted: int) -> int:
        """Return the priority of a tensor's values: `wanted`, but below control packets."""
        return min(wanted, max(0, self.max_priority - 1))

    def is_neighbour(self, worker_id: int) -> bool:
        """Whether a member sends to the same switch as this worker."""
        return self.neighbours is None or worker_id in self.neighbours

    def missing_workers(self, bitmap: int) -> list[int]:
        """Return the members whose bit is clear in `bitmap`; none where bits are no workers."""
        if not self.has_worker_bitmaps:
            return []
        return [i for i in self.member_ids if not bitmap >> i & 1]

    def present_workers(self, bitmap: int) -> list[int]:
        """Return the members whose bit is set in `bitmap`; none where bits are no workers."""
        if not self.has_worker_bitmaps:
            return []
        return [i for i in self.member_ids if bitmap >> i & 1]


def check_worker(worker_id: int, num_workers: int) -> None:
    """Raise ConfigurationError unless 0 <= worker_id < num_workers <= MAX_JOB_WORKERS."""
    if not 1 <= num_workers <= MAX_JOB_WORKERS:
        raise ConfigurationError(
            f"num_workers is {num_workers}; one job holds 1 to {MAX_JOB_WORKERS} workers"
        )
    if not 0 <= worker_id < num_workers:
        raise ConfigurationError(
            f"worker_id is {worker_id}; with {num_workers} workers it must be"
            f" 0 to {num_workers - 1}"
        )
