# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs, children and hot rows as the plain reference of the slot protocol knows them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ReferenceChild:
    """A worker or a switch below, as table `worker` names it, or a server: without a bit."""

    port: int
    address: int
    bit: int
    contributor_mask: int
    max_contributors: int = 1


def worker_children(worker_ports: dict[int, tuple[int, int]]) -> dict[int, ReferenceChild]:
    """Return the children of a tree of one switch: worker id -> (port, address), worker = child."""
    return {
        worker_id: ReferenceChild(
            port=port, address=address, bit=1 << worker_id, contributor_mask=1 << worker_id
        )
        for worker_id, (port, address) in worker_ports.items()
    }


@dataclass(frozen=True, kw_only=True)
class ReferenceRow:
    """A hot row, as table `hot_row` places it."""

    slot: int
    """Of the pushes; a number of the switch, not of the job."""
    value_copy: int
    """The slot copy of the values: twice the slot's number, plus the parity."""
    epoch: int
    exponent: int = 0
    has_copies: bool = True
    """Whether values go on: to the server, as its receipt, and to switches below."""


@dataclass(frozen=True, kw_only=True)
class ReferenceParent:
    """The switch above, and this switch as its child."""

    port: int
    address: int
    child_id: int
    child_bitmap: int = 0
    """What contributions name in place of the workers in them; 0: the workers."""


@dataclass(frozen=True, kw_only=True)
class ReferenceJob:
    """The controller's table entries of a job on one switch."""

    job_id: int
    generation: int
    slot_base: int
    slot_count: int
    children: dict[int, ReferenceChild]
    """By child id."""
    parent: ReferenceParent | None = None
    """None: this switch is the root."""
    num_workers: int = 0
    """Of the root: in the whole tree."""
    quorum: int = 0
    """Of the root: how many workers are enough."""
    allow_partial: bool = False
    level: int = 0
    """Switches below, on the longest path down to a worker."""
    hot_rows: dict[int, ReferenceRow] = field(default_factory=dict[int, ReferenceRow])
    """By the row's number."""

    @property
    def children_bitmap(self) -> int:
        """All children's bits."""
        return sum(child.bit for child in self.children.values())
