# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The interface of a switch that packet tests use, whichever switch it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from packet_frames import Job, describe
from switchfold.hostlib.slots.wire import Outcome

PORTS = (1, 2, 3, 4)
SENTINEL_NETWORK = 0xC612_0000
"""198.18.0.port: addresses that a target may route to each port for its own use."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A table entry by P4Info's short names; an LPM field is a pair (value, prefix length)."""

    table: str
    match: dict[str, int | tuple[int, int]]
    action: str
    params: dict[str, int] = field(default_factory=dict[str, int])


class Target(Protocol):
    """A switch that runs one variant's program and holds ports 1 to 4 and the CPU port."""

    values_per_packet: int
    is_fast: bool
    """Whether a test may send hundreds of thousands of frames."""

    def exchange(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send a frame into a port; return all that leaves in answer as (port, frame), sorted.

        What goes to the controller is at port CPU_PORT and starts with the packet_in header.
        """
        ...

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send a frame out of a port from the controller; return all that leaves."""
        ...

    def insert(self, *entries: Entry) -> None:
        """Insert table entries, by one request."""
        ...

    def delete(self, *entries: Entry) -> None:
        """Delete table entries, by one request."""
        ...

    def set_multicast_group(self, group_id: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set a group's replicas (egress port, instance); none deletes the group."""
        ...

    def counters(self, name: str) -> list[int]:
        """Return the packets of an indirect counter by index, without the target's own frames."""
        ...

    def direct_counter(self, entry: Entry) -> int:
        """Return the packets that an entry counted."""
        ...

    def close(self) -> None:
        """Release everything that the target holds."""
        ...


def job_entries(job: Job) -> list[Entry]:
    """Return the entries with which a controller admits a job."""
    entries = [
        Entry(
            table="job",
            match={"job_id": job.job_id},
            action="admit_root",
            params={
                "generation": job.generation,
                "slot_base": job.slot_base,
                "slot_count": job.slot_count,
                "children_bitmap": (1 << job.num_workers) - 1,
                "quorum": job.num_workers,
                "num_workers": job.num_workers,
                "multicast_group_id": job.multicast_group_id,
                "allow_partial": int(job.allow_partial),
                "level": 0,
                "max_priority": job.max_priority,
            },
        )
    ]
    for worker_id in range(job.num_workers):
        entries.append(
            Entry(
                table="worker",
                match={
                    "job_id": job.job_id,
                    "worker_id": worker_id,
                    "ingress_port": job.port(worker_id),
                    "source_address": job.address(worker_id),
                },
                action="admit_worker",
                params={
                    "worker_bit": 1 << worker_id,
                    "contributor_mask": 1 << worker_id,
                    "max_contributors": 1,
                },
            )
        )
        entries.append(worker_address_entry(job, worker_id))
    entries += [outcome_entry(job, outcome) for outcome in Outcome if outcome != Outcome.NONE]
    return entries


def worker_address_entry(job: Job, worker_id: int) -> Entry:
    """Return the entry that addresses a worker's replica."""
    return Entry(
        table="worker_address",
        match={"job_id": job.job_id, "replica_id": worker_id + 1},
        action="set_worker_address",
        params={
            "mac": job.mac(worker_id),
            "address": job.address(worker_id),
            "udp_port": job.udp_port(worker_id),
        },
    )


def outcome_entry(job: Job, outcome: Outcome) -> Entry:
    """Return the entry that counts one outcome of a job."""
    return Entry(
        table="outcome",
        match={"job_id": job.job_id, "outcome": outcome},
        action="count_outcome",
    )


def check_exchange(
    target: Target,
    port: int,
    frame: bytes,
    outcome: Outcome,
    expected: Sequence[tuple[int, bytes]] = (),
) -> None:
    """Send a Switchfold frame; compare what leaves, and that exactly this outcome was counted."""
    before = target.counters("outcomes")
    received = target.exchange(port, frame)
    after = target.counters("outcomes")
    counted = {
        Outcome(index): after[index] - before[index]
        for index in range(len(Outcome))
        if after[index] != before[index]
    }
    shown = "\n".join(f"  received {where}: {describe(what)}" for where, what in received)
    assert counted == {outcome: 1}, f"counted {counted}, expected {outcome!r}\n{shown}"
    check_frames(received, expected)


def check_frames(
    received: Sequence[tuple[int, bytes]], expected: Sequence[tuple[int, bytes]]
) -> None:
    """Compare frames in any order; show both sides if they differ."""
    shown = "\n".join(
        [f"  expected {port}: {describe(frame)}" for port, frame in expected]
        + [f"  received {port}: {describe(frame)}" for port, frame in received]
    )
    assert sorted(received) == sorted(expected), f"frames differ\n{shown}"
