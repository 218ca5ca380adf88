# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a run: what reached the servers, times, the load model and what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .rig import TableRun


@dataclass(frozen=True, kw_only=True)
class LoadShares:
    """What is left of the servers' writes, by the model and by their counters.

    Without hot rows, each update of a key is a write at its server. A share h of them goes through
    the switch, whose sums have c pushes each, so 1 - h + h / c of all writes are left. The model
    takes it that each push of a sum has the same keys. With others, more writes are left.
    """

    hot: float
    """h: the share of all updates that went through the switch."""
    contributors: float | None
    """c: pushes in a sum of the switch; None without any."""
    writes: float
    """Writes at the servers for each update."""

    @property
    def predicted(self) -> float:
        """The model's share of writes."""
        return 1 - self.hot + (self.hot / self.contributors if self.contributors else 0.0)

    @classmethod
    def of(cls, run: TableRun) -> Self:
        """Return the shares of a run."""
        updates = sum(worker.pushed_keys for worker in run.workers)
        hot = updates - run.servers.pushed_keys
        sums = run.servers.hot_sums
        return cls(
            hot=hot / updates,
            contributors=run.servers.hot_pushes / sums if sums else None,
            writes=run.servers.writes / updates,
        )


def share_of_hottest(batches: Iterable[NDArray[np.int64]], size: int) -> float:
    """Return which share of the keys of all mini-batches the `size` most frequent keys have."""
    _, counts = np.unique(np.concatenate(list(batches)), return_counts=True)
    return float(np.sort(counts)[::-1][:size].sum() / counts.sum())


def figures_of(run: TableRun) -> dict[str, float | None]:
    """Return the figures of a run by their names, units included."""
    updates = sum(worker.pushed_keys for worker in run.workers)
    pulled = sum(worker.pulled_keys for worker in run.workers)
    shares = LoadShares.of(run)
    push_ms = 1e3 * np.concatenate([worker.push_s for worker in run.workers])
    pull_ms = 1e3 * np.concatenate([worker.pull_s for worker in run.workers])
    hottest_ms = 1e3 * np.concatenate([worker.hottest_pull_s for worker in run.workers])
    slowest_s = max(worker.seconds for worker in run.workers)
    return {
        "updates": updates,
        "pushes at servers": run.servers.pushes,
        "pushed keys at servers": run.servers.pushed_keys / updates,
        "pulls at servers": run.servers.pulls,
        "pulled keys at servers": run.servers.pulled_keys / pulled,
        "server us/update": 1e6 * run.servers.processor_s / updates,
        "worker us/update": 1e6 * sum(worker.processor_s for worker in run.workers) / updates,
        "push p50 ms": float(np.percentile(push_ms, 50)),
        "push p99 ms": float(np.percentile(push_ms, 99)),
        "pull p50 ms": float(np.percentile(pull_ms, 50)),
        "pull p99 ms": float(np.percentile(pull_ms, 99)),
        "hottest pull p50 ms": float(np.percentile(hottest_ms, 50)) if hottest_ms.size else None,
        "hottest pull p99 ms": float(np.percentile(hottest_ms, 99)) if hottest_ms.size else None,
        "samples/s": sum(worker.samples for worker in run.workers) / slowest_s,
        "h": shares.hot,
        "c": shares.contributors,
        "1 - h + h/c": shares.predicted,
        "writes": shares.writes,
    }
