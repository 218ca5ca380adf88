# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Admission: finds slots on switches for a view's trees, or tells why there are none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ...hostlib.slots import wire
from ..errors import NoRoomError
from ..jobs.job import Job, JobNumber, Tree, TreeNode, View

FEWEST_SLOTS = 2
"""Fewest slots of a tree by default: a host needs one for exponents and one for values."""


def free_ranges(leased: Iterable[range], num_slots: int) -> list[range]:
    """Return the gaps between used slot ranges of one switch, by base."""
    gaps: list[range] = []
    position = 0
    for lease in sorted(leased, key=lambda lease: lease.start):
        if lease.start > position:
            gaps.append(range(position, lease.start))
        position = max(position, lease.stop)
    if position < num_slots:
        gaps.append(range(position, num_slots))
    return gaps


def split_slots(shares: Sequence[float], total: int) -> list[int]:
    """Split slots among trees by their shares, in whole slots, at least one for each tree."""
    scale = (total - len(shares)) / sum(shares)
    exact = [share * scale for share in shares]
    counts = [int(part) for part in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for index in by_remainder[: total - len(shares) - sum(counts)]:
        counts[index] += 1
    return [count + 1 for count in counts]


class SlotAllocator:
    """The slots that the views of all jobs hold on every switch."""

    def __init__(self, views: Iterable[View], num_slots: int = wire.NUM_SLOTS) -> None:
        self.num_slots = num_slots
        self._ranges: dict[str, list[tuple[range, JobNumber]]] = {}
        for view in views:
            self.take(view.job_number, view.trees)

    def copy(self) -> SlotAllocator:
        """Return an independent allocator with the same slots in use."""
        memory = SlotAllocator((), self.num_slots)
        for switch, leases in self._ranges.items():
            memory._ranges[switch] = list(leases)
        return memory

    def take(self, job_number: JobNumber, trees: Iterable[Tree]) -> None:
        """Mark the slots of trees that have been placed as used."""
        for tree in trees:
            for node in tree.nodes:
                lease = range(node.slot_base, node.slot_base + tree.slot_count)
                self._ranges.setdefault(node.switch, []).append((lease, job_number))

    def free(self, switch: str) -> list[range]:
        """Return the free ranges of a switch, by base."""
        return free_ranges((lease for lease, _ in self._ranges.get(switch, [])), self.num_slots)

    def holders(self, switch: str) -> dict[JobNumber, int]:
        """Return how many slots of a switch each job holds."""
        held: dict[JobNumber, int] = {}
        for lease, job_number in self._ranges.get(switch, []):
            held[job_number] = held.get(job_number, 0) + len(lease)
        return held

    def place(self, shape: Sequence[Tree], slot_count: int) -> tuple[Tree, ...] | None:
        """Place the trees with `slot_count` slots in all, first fit by switch; None: no room."""
        if slot_count < len(shape):
            return None
        taken: dict[str, list[range]] = {}
        trees: list[Tree] = []
        counts = split_slots([tree.share for tree in shape], slot_count)
        for tree, count in zip(shape, counts, strict=True):
            nodes: list[TreeNode] = []
            for node in tree.nodes:
                leases = [lease for lease, _ in self._ranges.get(node.switch, [])]
                gaps = free_ranges(leases + taken.get(node.switch, []), self.num_slots)
                base = next((gap.start for gap in gaps if len(gap) >= count), None)
                if base is None:
                    return None
                taken.setdefault(node.switch, []).append(range(base, base + count))
                nodes.append(dataclasses.replace(node, slot_base=base))
            trees.append(dataclasses.replace(tree, slot_count=count, nodes=tuple(nodes)))
        return tuple(trees)

    def most_slots(self, shape: Sequence[Tree], wanted: int) -> int:
        """Return how many of the wanted slots the trees could get in all, 0 for none."""
        fits, fails = 0, wanted + 1
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if self.place(shape, middle) is None:
                fails = middle
            else:
                fits = middle
        return fits


def no_room_error(
    job: Job,
    shape: Sequence[Tree],
    wanted: int,
    memory: SlotAllocator,
    names: Mapping[JobNumber, str],
) -> NoRoomError:
    """Return a refusal that names the free slots of each switch, their holders, and what fits."""
    if wanted > memory.num_slots * len(shape):
        return NoRoomError(
            f"job {job.name!r} wants {wanted} slots, but a switch has only {memory.num_slots}; ask "
            f"for at most {memory.num_slots}"
        )
    most = memory.most_slots(shape, wanted)
    advice = f"{most} slots would fit" if most else "no slot is free"
    switches = dict.fromkeys(node.switch for tree in shape for node in tree.nodes)
    details = "; ".join(_describe(switch, memory, names) for switch in switches)
    return NoRoomError(
        f"job {job.name!r} wants {wanted} slots: {advice}. {details}. Ask for fewer slots, let it "
        "run between the hosts (path 'auto'), or wait for a job to end"
    )


def _describe(switch: str, memory: SlotAllocator, names: Mapping[JobNumber, str]) -> str:
    gaps = memory.free(switch)
    free = sum(len(gap) for gap in gaps)
    largest = max((len(gap) for gap in gaps), default=0)
    in_one_piece = "" if largest == free else f", {largest} in one piece"
    holders = ", ".join(
        f"{names.get(number, f'job number {number}')} ({count})"
        for number, count in memory.holders(switch).items()
    )
    return (
        f"switch {switch}: {free} of {memory.num_slots} free{in_one_piece}, "
        f"held by {holders or 'no job'}"
    )
