# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills: something fails while a job sums; the outcome and the time are stated before it does.

Writes docs/drills.md after a run of all drills. Ends with status 1 if a drill did not reach its
outcome, or not in its time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.drills.catalogue import DRILLS  # noqa: E402
from benchmarks.drills.controllers import PairRig  # noqa: E402
from benchmarks.drills.drill import Drill, DrillFabric  # noqa: E402
from benchmarks.drills.hot import HotRig  # noqa: E402
from benchmarks.drills.perform import PROBLEMS, Performance, describe, perform  # noqa: E402
from benchmarks.drills.report import DrillRow, markdown  # noqa: E402
from benchmarks.drills.scene import Rig  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
)
from benchmarks.support.results import write_json  # noqa: E402
from postgres_server import missing_part  # noqa: E402
from switchfold.bmv2_topos.processes.daemons import Target  # noqa: E402

PAGE = ROOT / "docs" / "drills.md"


def run_drills(target: Target, drills: Sequence[Drill]) -> list[DrillRow]:
    """Perform drills on one kind of switch, fabric by fabric."""
    rows: list[DrillRow] = []
    for fabric in DrillFabric:
        here = [drill for drill in drills if drill.fabric is fabric and target not in drill.not_on]
        if not here:
            continue
        with tempfile.TemporaryDirectory(prefix="drills") as folder:
            if fabric is DrillFabric.SERVERS:
                rows += run_hot_drills(target, here, Path(folder))
                continue
            if fabric in (DrillFabric.CONTROLLERS, DrillFabric.CONTROLLERS_OF_TREES):
                rows += run_leader_drills(target, here, Path(folder))
                continue
            with Rig(fabric, target, Path(folder)) as rig:
                act = partial(perform, rig)
                rows += [run_drill(target, drill, act) for drill in here]
    return rows


def run_hot_drills(target: Target, drills: Sequence[Drill], folder: Path) -> list[DrillRow]:
    """Perform the drills of parameter servers; none has held unless each push counted once."""
    with HotRig(target, folder) as rig:
        rows = [run_drill(target, drill, rig.perform) for drill in drills]
        try:
            rig.check()
        except PROBLEMS as exc:
            print(f"  NOT REACHED: {exc}")
            rows = [replace(row, performance=None, problem=str(exc)) for row in rows]
    return rows


def run_leader_drills(target: Target, drills: Sequence[Drill], folder: Path) -> list[DrillRow]:
    """Perform the drills of two controllers, which have a softswitch, where PostgreSQL is found."""
    if target != "softswitch":
        return []
    if (missing := missing_part()) is not None:
        print(f"drills of two controllers are left out: {missing}")
        return []
    has_trees = drills[0].fabric is DrillFabric.CONTROLLERS_OF_TREES
    with PairRig(folder, has_trees=has_trees) as rig:
        return [run_drill(target, drill, rig.perform) for drill in drills]


def run_drill(target: Target, drill: Drill, act: Callable[[Drill], Performance]) -> DrillRow:
    """State the outcome, perform one drill, and print what was measured."""
    print(f"\n{target}, {drill.fabric}: {drill.name}: {drill.fails}")
    print(f"  stated: {drill.outcome}, within {drill.time_s:g} s {drill.why}".rstrip(), flush=True)
    performance, problem = None, ""
    try:
        performance = act(drill)
    except Exception as exc:
        problem = f"{type(exc).__name__}: {exc}"
    print(f"  {describe(drill, performance, problem)}", flush=True)
    return DrillRow(target=target, drill=drill, performance=performance, problem=problem)


def _targets(words: str) -> list[Target]:
    """Return the switches to test; `bmv2` is left out, and that is said, where it is not found."""
    chosen = cast("list[Target]", words.split(","))
    if "bmv2" in chosen and shutil.which("simple_switch_grpc") is None:
        print("BMv2 is left out: simple_switch_grpc is not on the PATH")
        chosen.remove("bmv2")
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", default="softswitch,bmv2", help="default %(default)s")
    parser.add_argument("--only", default="", help="names of drills, separated by ';'")
    parser.add_argument("--list", action="store_true", help="list the drills, and end")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    only = [name.strip() for name in options.only.split(";") if name.strip()]
    if unknown := set(only) - {drill.name for drill in DRILLS}:
        parser.error(f"no drill {', '.join(sorted(unknown))}; see --list")
    drills = [drill for drill in DRILLS if not only or drill.name in only]
    if options.list:
        for drill in drills:
            print(f"{drill.name}: {drill.fails} ({drill.fabric})")
        return 0
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    rows: list[DrillRow] = []
    for target in _targets(options.targets):
        rows += run_drills(target, drills)
        shown = [row.as_json() for row in rows]
        write_json(options.out / "drills.json", {"machine": machine, "rows": shown})
        if not only:
            PAGE.write_text(markdown(rows, machine), encoding="utf-8")
    held = sum(row.has_held for row in rows)
    print(f"\n{held} of {len(rows)} drills held")
    return 0 if held == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
