# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that send and get no answer: whether the path is broken or another worker is slow.

One worker that waits for another has no progress either. But a worker that reports has sent its own
part: when all of them report, nobody is waited for, and the path is broken. A worker whose switch
does not even answer probes, while it answers others, is cut off. Workers that have submitted
different tensors wait for each other: a switch adds up only what has the same id and range, and no
packet says so. But each worker that waits reports its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from .job import Generation, TreeId, WorkerId

WINDOW_S: Final = 5.0
"""Reports that are older do not count."""
STILL_S: Final = 3.0
"""A job without a report for this long has progress."""
SETTLED_S: Final = 1.5
"""A worker that has not reported by then will not: workers report each second."""
AVOID_S: Final = 20.0
"""When a path breaks again within this time of its repair, it is left."""
SILENT_S: Final = 0.9
"""A switch that has answered none of a worker's probes, 20 a second, for so long is cut off."""
_MOST_TEXTS: Final = 4
_MOST_WORKERS: Final = 16


@dataclass(frozen=True)
class _Report:
    generation: Generation
    since_s: float
    at_s: float
    missing: frozenset[WorkerId]
    silent_s: float
    heard_s: float
    """Since when the worker has reported that its switch answers; infinite if it does not."""
    silent_tree: TreeId
    submitted: Sequence[pb.Submitted]
    submitted_bytes: bytes

    def is_of(self, generation: Generation, now_s: float) -> bool:
        return generation == self.generation and now_s - self.at_s <= WINDOW_S


class Stalls:
    """The reports of one job."""

    def __init__(self) -> None:
        self._reports: dict[WorkerId, _Report] = {}
        self._repaired_s = float("-inf")
        self._since_s = float("-inf")
        self._heard_s = float("-inf")

    def report(  # noqa: PLR0913 - a report's fields
        self,
        worker_id: WorkerId,
        generation: Generation,
        now_s: float,
        missing: Collection[WorkerId] = (),
        silent_s: float = 0.0,
        *,
        silent_tree: TreeId = 0,
        submitted: Sequence[pb.Submitted] = (),
    ) -> None:
        """Note a worker's report.

        It says who may be missing, how long the switch has been silent that it asks about a tree,
        and its last tensors.
        """
        before = self._reports.get(worker_id)
        is_more = before is not None and before.is_of(generation, now_s)
        since_s = before.since_s if before is not None and is_more else now_s
        was_heard_s = before.heard_s if before is not None and is_more else now_s
        heard_s = float("inf") if silent_s else min(was_heard_s, now_s)
        self._reports[worker_id] = _Report(
            generation,
            since_s,
            now_s,
            frozenset(missing),
            silent_s,
            heard_s,
            silent_tree,
            tuple(submitted),
            b"".join(each.SerializeToString(deterministic=True) for each in submitted),
        )
        if now_s - self._heard_s > WINDOW_S:
            self._since_s = now_s
        self._heard_s = now_s

    def lasting_s(self, now_s: float) -> float:
        """Return how long reports have come without a longer pause, over all views."""
        return now_s - self._since_s

    def is_lasting(self, now_s: float) -> bool:
        """Return whether a worker has reported of late: each does once a second."""
        return now_s - self._heard_s <= STILL_S

    def calm(self) -> None:
        """Note that the cause is gone: the duration starts again with the next report."""
        self._heard_s = float("-inf")

    def missing(
        self, workers: set[WorkerId], generation: Generation, now_s: float
    ) -> set[WorkerId]:
        """Return who is missed by all that have reported of late, when those are all the others.

        A switch knows only what has reached it: a worker whose part waits in another switch is
        missed there. But it waits too, and reports.
        """
        fresh = self._fresh(workers, generation, now_s)
        others = workers - fresh.keys()
        is_known = bool(fresh) and all(
            others <= report.missing and now_s - report.since_s >= SETTLED_S
            for report in fresh.values()
        )
        return others if is_known else set()

    def mismatch(self, workers: set[WorkerId], generation: Generation, now_s: float) -> str:
        """Return in which tensor workers differ, once all that wait have reported; else ""."""
        fresh = self._fresh(workers, generation, now_s)
        is_settled = len(fresh) == len(workers) or all(
            now_s - report.since_s >= SETTLED_S for report in fresh.values()
        )
        if not is_settled:
            return ""
        # Most workers have reported the same tensors, and there may be many workers.
        distinct = {report.submitted_bytes: report.submitted for report in fresh.values()}
        if not mismatch(dict(enumerate(distinct.values()))):
            return ""
        return mismatch({worker: report.submitted for worker, report in fresh.items()})

    def cut_off(
        self, workers: set[WorkerId], generation: Generation, now_s: float
    ) -> tuple[set[WorkerId], set[WorkerId], set[WorkerId]]:
        """Return whose switch answers them nothing, whose does, and of whom it is not known yet.

        A worker that has not reported is in none of these. Of one that has reported since before a
        silent switch answered others, it is not known: the switch may answer it as well now.
        """
        fresh = self._fresh(workers, generation, now_s)
        heard = {worker for worker, report in fresh.items() if not report.silent_s}
        heard_s = min((fresh[worker].heard_s for worker in heard), default=float("-inf"))
        cut = {
            worker
            for worker, report in fresh.items()
            if report.silent_s >= SILENT_S and report.at_s - heard_s >= SILENT_S
        }
        return cut, heard, fresh.keys() - cut - heard

    def silent_s(self, workers: set[WorkerId]) -> float:
        """Return for how long, by their last reports, the switch has answered none of these."""
        reports = [self._reports[worker] for worker in workers if worker in self._reports]
        return min((report.silent_s for report in reports), default=0.0)

    def silent_tree(self, worker_id: WorkerId) -> TreeId:
        """Return the tree that a worker has asked about in vain, by its last report; 0: none."""
        report = self._reports.get(worker_id)
        return report.silent_tree if report is not None else 0

    def unreached(
        self, workers: set[WorkerId], generation: Generation, now_s: float
    ) -> set[WorkerId]:
        """Return the workers whom all others report as lost, at least two of them.

        In host allreduce a worker names the members that it has lost.
        """
        fresh = self._fresh(workers, generation, now_s)
        return {
            worker
            for worker in workers
            if len(workers) > 2
            and all(
                other in fresh and worker in fresh[other].missing for other in workers - {worker}
            )
        }

    def is_everybody(self, workers: set[WorkerId], generation: Generation, now_s: float) -> bool:
        """Return whether no worker has progress in this view, all at the same time."""
        return self._still_in(workers, now_s) == {generation}

    def are_apart(self, workers: set[WorkerId], now_s: float) -> bool:
        """Return whether no worker has progress, all at the same time, but not all in one view.

        Some wait in the view that a change has begun, for others that end tensors in the one before
        and wait there, such as for a member that was cut off in between.
        """
        return len(self._still_in(workers, now_s)) > 1

    def have_all_lost(self, workers: set[WorkerId], generation: Generation, now_s: float) -> bool:
        """Return whether all workers have reported this view of late, and each misses another."""
        fresh = self._fresh(workers, generation, now_s)
        return len(fresh) == len(workers) and all(report.missing for report in fresh.values())

    def repair(self, now_s: float) -> bool:
        """Forget all reports; return whether the last repair was too recent to have helped."""
        is_again = now_s - self._repaired_s <= AVOID_S
        self._repaired_s = now_s
        self._reports.clear()
        return is_again

    def _still_in(self, workers: set[WorkerId], now_s: float) -> set[Generation]:
        """Return the views in which workers wait, if all of them do; else none."""
        reports = [self._reports[worker] for worker in workers if worker in self._reports]
        are_still = all(now_s - report.at_s <= STILL_S for report in reports)
        is_everybody = are_still and len(reports) == len(workers)
        return {report.generation for report in reports} if is_everybody else set()

    def _fresh(
        self, workers: set[WorkerId], generation: Generation, now_s: float
    ) -> dict[WorkerId, _Report]:
        return {
            worker: report
            for worker, report in self._reports.items()
            if worker in workers and report.is_of(generation, now_s)
        }


def mismatch(reports: Mapping[WorkerId, Sequence[pb.Submitted]]) -> str:
    """Return in what the first tensor that a worker waits for differs; empty if in nothing.

    `reports`: the last tensors of each worker.
    """
    by_number: dict[int, dict[WorkerId, pb.Submitted]] = {}
    for worker_id in sorted(reports):
        for tensor in reports[worker_id]:
            by_number.setdefault(tensor.number, {})[worker_id] = tensor
    for number in sorted(by_number):
        tensors = by_number[number]
        if any(tensor.is_awaited for tensor in tensors.values()):
            found = [text for name in _FIELDS if (text := _difference(name, tensors))]
            if found:
                return (
                    f"the workers submitted different tensors: tensor {number + 1} has"
                    f" {'; '.join(found)}. All workers must submit the same sequence of tensors,"
                    " with the same options"
                )
    return ""


def _difference(name: str, tensors: Mapping[WorkerId, pb.Submitted]) -> str:
    """Return which workers have which value of a field; empty if it is the same on all."""
    workers_by_text: dict[str, list[WorkerId]] = {}
    for worker_id, tensor in tensors.items():
        workers_by_text.setdefault(_FIELDS[name](tensor), []).append(worker_id)
    if len(workers_by_text) == 1:
        return ""
    texts = [f"{text} on {_workers(workers)}" for text, workers in workers_by_text.items()]
    more = len(texts) - _MOST_TEXTS
    if more > 0:
        texts[_MOST_TEXTS:] = [f"{more} more on others"]
    return f"{name} {', '.join(texts)}"


def _workers(workers: Sequence[WorkerId]) -> str:
    more = len(workers) - _MOST_WORKERS
    names = ", ".join(map(str, workers[:_MOST_WORKERS]))
    rest = f" and {more} more" if more > 0 else ""
    return f"worker{'s' * (len(workers) > 1)} {names}{rest}"


def _tolerance_text(tensor: pb.Submitted) -> str:
    if not tensor.HasField("tolerance"):
        return "of the job"
    tolerance = tensor.tolerance
    text = f"loss {tolerance.loss!r} with worker_floor {tolerance.worker_floor!r}"
    return text + f" and stale {tolerance.stale!r}" * (tolerance.stale > 0)


_FIELDS: Final[Mapping[str, Callable[[pb.Submitted], str]]] = {
    "elements": lambda tensor: str(tensor.num_elements),
    "dtype": lambda tensor: tensor.dtype,
    "operation": lambda tensor: tensor.operation,
    "label": lambda tensor: repr(tensor.label),
    "tolerance": _tolerance_text,
}
"""By name: the text of what must be the same on all workers."""
