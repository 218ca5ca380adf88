# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills: a part fails while a job sums, and the outcome is the stated one.

These are drills of `make drills`, which measures their times; here they only have to end well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from benchmarks.drills.catalogue import DRILLS
from benchmarks.drills.drill import Drill, DrillFabric
from benchmarks.drills.perform import perform
from benchmarks.drills.random_drill import RandomDrill
from benchmarks.drills.scene import Rig
from switchfold.bmv2_topos import state

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
IN_CI = (
    "link down",
    "link down, among hosts",
    "link losing 20 %",
    "switch restarted",
    "switch frozen",
    "switch gone, no other route",
    "tables wiped",
    "controller killed during a view change",
    "controller and worker killed",
    "leaf gone",
    "uplink dead downwards",
)
"""The others are for `make drills`, or have tests of their own with fewer processes."""
NO_ROUTE_S = "30"
"""A busy machine starts a switch within this time; the usual 8 s are for `make drills`."""
NUM_EVENTS = int(os.environ.get("SWITCHFOLD_DRILLS", "8"))
"""Steps of the random drill."""
SEED = int(os.environ.get("SWITCHFOLD_SEED", "1"))


def chosen() -> list[object]:
    """Return the drills of IN_CI, one fabric after the other."""
    by_name = {drill.name: drill for drill in DRILLS}
    drills = sorted(
        (by_name[name] for name in IN_CI), key=lambda d: list(DrillFabric).index(d.fabric)
    )
    return [pytest.param(drill, id=re.sub(r"\W+", "-", drill.name).strip("-")) for drill in drills]


class Rigs:
    """One testbed at a time, which serves all drills of its fabric."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rig: Rig | None = None
        self._stack = ExitStack()

    def of(self, fabric: DrillFabric) -> Rig:
        if self._rig is None or self._rig.fabric is not fabric:
            self._stack.close()
            self._rig = None
            rig = Rig(fabric, "softswitch", self._folder, "--no-route", NO_ROUTE_S)
            self._rig = self._stack.enter_context(rig)
        return self._rig

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def rigs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rigs]:
    folder = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: folder / "records")
        with closing(Rigs(folder)) as rigs:
            yield rigs


@pytest.mark.parametrize("drill", chosen())
def test_drill_has_the_stated_outcome(rigs: Rigs, drill: Drill) -> None:
    perform(rigs.of(drill.fabric), drill)


@pytest.mark.timeout(300 + 30 * NUM_EVENTS)
def test_random_drill_ends_in_exact_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SWITCHFOLD_DRILLS=200 makes it long, SWITCHFOLD_SEED=2 another one."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    with (
        Rig(DrillFabric.ONE_SWITCH, "softswitch", tmp_path, "--no-route", "600") as rig,
        rig.job(DRILLS[0]) as scene,
    ):
        drill = RandomDrill(scene, SEED, print)
        for _ in range(NUM_EVENTS):
            drill.step()
