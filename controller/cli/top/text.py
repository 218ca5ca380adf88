# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of `switchfold top`, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ...api.operator_api import activity_pb2, fabric_pb2, operator_pb2
from ...fabric.trees.tree_text import amount, seconds
from ..activity.window import ActivityWindow, LinkFigures
from ..output import message_dict

LINKS_SHOWN: Final = 12
"""Directions of links in the table; JSON has all."""
JOB_COLUMNS: Final = (
    *("job", "state", "workers", "path", "slots", "rounds/s", "idle", "last worker"),
)
TREE_COLUMNS: Final = ("job", "tree", "root", "slots", "waiting", "rounds/s", "hold")
SLOTS_SHOWN: Final = 8
"""Slots that wait, in the table; JSON has all."""
SLOT_COLUMNS: Final = ("job", "tree", "switch", "slot", "waits for", "stuck")
LINK_COLUMNS: Final = ("from", "to", "state", "rate", "now", "use")
SWITCH_COLUMNS: Final = ("switch", "state", "slots", "used")
_NONE: Final = "-"


@dataclass(frozen=True, kw_only=True)
class TopScreen:
    """What one refresh shows."""

    jobs: list[operator_pb2.Job]
    switches: list[operator_pb2.Switch]
    links: list[fabric_pb2.Link]
    """Between switches."""
    windows: Mapping[str, ActivityWindow]
    """Of running jobs, by name."""

    def job_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield a row for each live job."""
        for job in self.jobs:
            window = self.windows.get(job.name)
            here = len(job.workers) - len(job.missing_workers) * (job.state == "running")
            yield (
                job.name,
                job.state,
                f"{here}/{job.num_workers}",
                job.path or _NONE,
                job.slot_count,
                *_job_figures(window),
            )

    def tree_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield a row for each tree of the running jobs."""
        for name, window in self.windows.items():
            for tree in window.trees():
                yield (
                    name,
                    tree.tree_id,
                    tree.root,
                    tree.slot_count,
                    _NONE if tree.error else f"{tree.open_slots:.4g}",
                    f"{tree.rounds_per_s:.4g}",
                    _NONE if tree.hold_s is None else seconds(tree.hold_s),
                )

    def slot_rows(self) -> list[tuple[object, ...]]:
        """Return slots that waited at the newest look, those that wait for one worker first."""
        found = [
            (name, tree.tree_id, node.switch, each)
            for name, window in self.windows.items()
            for tree in window.last.trees
            for node in tree.nodes
            for each in node.open_rounds
        ]
        found.sort(key=lambda slot: len(slot[3].missing_workers) + len(slot[3].missing_switches))
        return [
            (name, tree_id, switch, each.slot_index, _awaited(each), "yes" * each.is_stuck or _NONE)
            for name, tree_id, switch, each in found[:SLOTS_SHOWN]
        ]

    def link_rows(self) -> list[tuple[object, ...]]:
        """Return the busiest directions of links that jobs use, and links out of use."""
        out = [link for link in self.links if link.state != "up"]
        rows: list[tuple[object, ...]] = [
            (*_ends(link), link.state, amount(link.rate_bits_per_s, "bit/s"), _NONE, _NONE)
            for link in out
        ]
        for link in self.used_links()[:LINKS_SHOWN]:
            rate = link.rate_bits_per_s
            rows.append(
                (
                    link.sender,
                    link.receiver,
                    "up",
                    _NONE if rate is None else amount(rate, "bit/s"),
                    amount(link.bits_per_s, "bit/s"),
                    _NONE if link.use is None else f"{100 * link.use:.0f} %",
                )
            )
        return rows

    def switch_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield a row for each switch."""
        for switch in self.switches:
            yield switch.name, switch.state, switch.num_slots, switch.used_slots

    def used_links(self) -> list[LinkFigures]:
        """Return each direction that trees use once, the busiest first."""
        found: dict[tuple[str, str], LinkFigures] = {}
        for window in self.windows.values():
            for link in window.links():
                found.setdefault((link.sender, link.receiver), link)
        return sorted(found.values(), key=lambda link: (-(link.use or 0.0), -link.bits_per_s))

    def errors(self) -> list[str]:
        """Return what could not be read, each once."""
        found = [error for window in self.windows.values() for error in window.errors]
        return list(dict.fromkeys(found))

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "jobs": [message_dict(job) for job in self.jobs],
            "switches": [message_dict(switch) for switch in self.switches],
            "links": [message_dict(link) for link in self.links],
            "activity": [_activity(name, window) for name, window in self.windows.items()],
            "errors": self.errors(),
        }


def _job_figures(window: ActivityWindow | None) -> tuple[str, str, str]:
    """Return rounds per second, idle share and last worker."""
    if window is None or not window.last.trees:
        return _NONE, _NONE, _NONE
    rounds_per_s = sum(tree.rounds_per_s for tree in window.trees())
    return f"{rounds_per_s:.4g}", f"{100 * window.idle_share:.0f} %", last_worker(window)


def last_worker(window: ActivityWindow) -> str:
    """Return for whom rounds waited most, and in which share of the looks that found any."""
    workers = window.workers()
    most = max(workers, key=lambda worker: worker.last_share, default=None)
    if most is None or not most.last_share:
        return _NONE
    return f"{most.worker_id} ({100 * most.last_share:.0f} %)"


def _activity(name: str, window: ActivityWindow) -> dict[str, Any]:
    return {
        "job": name,
        "generation": window.last.generation,
        "seconds": window.seconds,
        "looks": len(window),
        "idle_share": window.idle_share,
        "trees": [asdict(tree) for tree in window.trees()],
        "links": [asdict(link) for link in window.links()],
        "workers": [asdict(worker) for worker in window.workers()],
        "waiting_now": list(_waiting(window)),
    }


def _waiting(window: ActivityWindow) -> Iterator[dict[str, Any]]:
    """Yield the rounds that waited at the newest look, and for whom."""
    for tree in window.last.trees:
        for node in tree.nodes:
            for each in node.open_rounds:
                yield {"tree_id": tree.tree_id, "switch": node.switch, **message_dict(each)}


def _awaited(waiting: activity_pb2.OpenRound) -> str:
    """Return the workers and switches whose contributions a round has not."""
    workers = [f"worker {number}" for number in waiting.missing_workers]
    return ", ".join((*workers, *waiting.missing_switches))


def _ends(link: fabric_pb2.Link) -> Iterable[str]:
    one, _, other = link.key.partition("-")
    return one.partition(":")[0], other.partition(":")[0]
