# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Follows how far the models of a server and its replica are apart, and the bound on that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from replica_scene import WAIT_S, ReplicaScene, update_of
from switchfold.hostlib.parameter_server.rows import Sgd
from time_bound import wait_until

RATE: Final = 0.1
"""The learning rate."""
UPDATES_APART: Final = 3
"""Div_max, in updates that the replica lacks."""


def distances(momentum: float, pushes: int) -> dict[str, Any]:
    """Train, and return Div_max and, of each commit and each receipt of the replica, the distances.

    A row has the versions of both models, the norm of their difference, and the bound on it. Ends
    the process if the true distance exceeds its bound, or the bound exceeds Div_max.
    """
    div_max = UPDATES_APART * RATE * float(np.linalg.norm(update_of(0))) / (1 - momentum)
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"SWITCHFOLD_INSECURE": "1"}),  # all is in this process
        ReplicaScene(
            Path(folder),
            optimiser=Sgd(learning_rate=RATE, momentum=momentum),
            div_max=div_max,
            replica_mbit=2,
        ) as scene,
    ):
        scene.await_replica()
        # Each push waits while four of its worker have no outcome.
        outcomes = [scene.workers[seed % 2].push(update_of(seed)) for seed in range(pushes)]
        for outcome in outcomes:
            outcome.result(WAIT_S)
        scene.await_drained()
        wait_until(
            lambda: scene.events("replicated")[-1]["replica_version"] == pushes,
            "the end is not logged",
        )
        zeros = np.zeros_like(update_of(0))
        rows: list[dict[str, float]] = []
        for event in scene.events("replicated"):
            theirs = scene.models["server"].get(event["version"], zeros).astype(np.float64)
            ours = scene.models["replica"].get(event["replica_version"], zeros)
            true, bound = float(np.linalg.norm(theirs - ours)), event["distance"]
            if true > bound * (1 + 1e-4) or bound > div_max:
                raise SystemExit(f"distance {true}, bound {bound}, Div_max {div_max}")
            versions = {name: event[name] for name in ("version", "replica_version")}
            rows.append({**versions, "true": true, "bound": bound})
    if rows[-1]["version"] != pushes or rows[-1]["true"]:
        raise SystemExit(f"{pushes} updates were pushed, and in the end there is {rows[-1]}")
    return {"momentum": momentum, "div_max": div_max, "rows": rows}


def greatest(found: Mapping[str, Any], key: str) -> float:
    """Return the greatest value of a run."""
    return max(row[key] for row in found["rows"])


def greatest_ratio(found: Mapping[str, Any]) -> float:
    """Return the greatest part of a bound that was true."""
    return max(row["true"] / row["bound"] for row in found["rows"] if row["bound"])


def draw_distances(runs: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write true distance, bound and Div_max after each commit, a panel for each momentum."""
    from benchmarks.support.plot import untyped  # noqa: PLC0415 - takes time to load

    figure, panels = untyped.subplots(
        len(runs), 1, figsize=(8, 3 * len(runs)), layout="constrained", sharex=True, squeeze=False
    )
    for axes, found in zip(panels[:, 0], runs.values(), strict=True):
        commits = after_commits(found["rows"])
        versions = [row["version"] for row in commits]
        axes.axhline(found["div_max"], color="black", linestyle="--", linewidth=1, label="Div_max")
        axes.plot(
            versions, [row["bound"] for row in commits], color="#e6550d", lw=0.9, label="bound"
        )
        axes.plot(
            versions,
            [row["true"] for row in commits],
            color="#3182bd",
            lw=0.9,
            label="true distance",
        )
        axes.set_title(f"momentum {found['momentum']:g}", fontsize=10)
        axes.set_ylabel("distance of the models")
        axes.set_ylim(0, 1.1 * found["div_max"])
        axes.grid(alpha=0.3)
    panels[-1, 0].set_xlabel("updates that the server has applied")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    untyped.close(figure)


def after_commits(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return the first row of each version: that of its commit, not those of later receipts."""
    first: dict[float, dict[str, float]] = {}
    for row in rows:
        first.setdefault(row["version"], row)
    return list(first.values())
