# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What happened in one run, and whether the model is what it must be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.fabric.contenders import CONTENDERS
from benchmarks.fabric.link_use import LinkSample
from benchmarks.fabric.settings import Cell
from benchmarks.fabric.tasks import FabricTask, FabricWorkload

Floats = NDArray[np.float32]
RELATIVE_ERROR: Final = 1e-5
"""Of sums of float32 in another order, of the largest value."""


class FabricRunError(Exception):
    """A run is wrong: the message says in what. Nothing of it counts."""


@dataclass(frozen=True, kw_only=True)
class SentUpdates:
    """What the workers of a run say that they sent, and the model at its end."""

    by_version: Mapping[int, Sequence[Floats]]
    """Updates that were applied; in step, each has one of each worker."""
    model: Floats
    replica: Floats | None = None
    """Of the tail of a chain."""

    def models(self, first: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield each version and its model, in the order of versions; the array is reused."""
        model = first.copy()
        for version in sorted(self.by_version):
            for update in self.by_version[version]:
                model += update
            yield version, model


@dataclass(kw_only=True)
class FabricRun:
    """One run of one contender."""

    contender: str
    cell: Cell
    learning_rate: float
    began_s: float
    """On the clock of all times."""
    rows: list[list[dict[str, Any]]]
    """Iterations by worker: the fields of IterationRow."""
    commits: list[dict[str, Any]]
    """The server's, in their order: time_s and the fields of CommittedUpdate. Or there is none."""
    num_copied: int = 0
    """Commits of the server's replica."""
    reads: Sequence[tuple[float, int]] = ()
    """When the server has read a model, and for which worker."""
    link_samples: Sequence[LinkSample] = ()
    """Of the server's link."""
    server_counters: Mapping[str, int]
    worker_counters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of all workers together."""
    processor_s: Mapping[str, float]
    """By kind of process, and `busy` and `total` of all cores."""
    job: str
    sent: SentUpdates | None = field(default=None, repr=False)
    target_s: float | None = None
    """When the first good enough model was there, since the run began; None: never."""
    reached_version: int | None = None

    @property
    def commit_times(self) -> dict[int, float]:
        """When each version was there, since the run began."""
        if self.commits:
            last = {each["version"]: each["time_s"] - self.began_s for each in self.commits}
            return {number: last[number * self.per_version] for number in self.versions}
        times: dict[int, float] = {}
        for row in itertools.chain.from_iterable(self.rows):
            time_s = row["done_s"] - self.began_s
            times[row["version"]] = max(times.get(row["version"], 0.0), time_s)
        return times

    @property
    def per_version(self) -> int:
        """How many updates each version of the model has more than the one before."""
        return len(self.rows) if CONTENDERS[self.contender].is_stepwise else 1

    @property
    def versions(self) -> list[int]:
        """Versions of the model that workers know of, in their order."""
        return sorted({row["version"] for row in self.applied})

    @property
    def applied(self) -> list[dict[str, Any]]:
        """Iterations whose updates were applied."""
        return [row for row in itertools.chain.from_iterable(self.rows) if row["version"]]

    def verify(self, sent: SentUpdates, first: Floats) -> None:
        """Raise FabricRunError unless the model is the sum of what was applied, each once."""
        where = f"{self.contender}, {self.cell.name}, seed {self.cell.seed}"
        versions = sorted(sent.by_version)
        if versions != list(range(1, len(versions) + 1)):
            raise FabricRunError(f"{where}: versions of updates have gaps: {versions[:20]} ...")
        if any(len(updates) != self.per_version for updates in sent.by_version.values()):
            raise FabricRunError(f"{where}: a version has not {self.per_version} updates")
        count = len(versions) * self.per_version
        if self.commits and [each["version"] for each in self.commits] != [*range(1, count + 1)]:
            raise FabricRunError(
                f"{where}: the server has applied {len(self.commits)} updates, and workers know of"
                f" {count}"
            )
        model = first
        for _, model in sent.models(first):  # noqa: B007 - the last one counts
            pass
        limit = RELATIVE_ERROR * max(1.0, float(np.abs(model).max()))
        worst = float(np.abs(model - sent.model).max())
        if not worst <= limit:
            raise FabricRunError(
                f"{where}: the model differs from the sum of its {len(versions)} updates by {worst}"
            )
        if sent.replica is not None:
            self._verify_replica(sent.model, sent.replica, where)
        self.sent = sent

    def _verify_replica(self, model: Floats, replica: Floats, where: str) -> None:
        """Raise FabricRunError unless the replica has applied the same in the same order."""
        if self.num_copied != len(self.commits):
            raise FabricRunError(
                f"{where}: the replica has applied {self.num_copied} updates, and the server"
                f" {len(self.commits)}"
            )
        if not np.array_equal(model, replica):
            worst = float(np.abs(model - replica).max())
            raise FabricRunError(f"{where}: the replica's model differs by {worst}")

    def find_target(self, workload: FabricWorkload, judge: FabricTask, target: float) -> None:
        """Find the first version that is good enough, and when it was there; forget the updates."""
        assert self.sent is not None, "it is verified"
        times = self.commit_times
        for version, model in self.sent.models(judge.start()):
            if workload.reaches(judge.score(model), target):
                self.target_s, self.reached_version = times[version], version
                break
        self.sent = None
