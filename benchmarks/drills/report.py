# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The page docs/drills.md: what was stated for each drill, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.drills.drill import Drill, DrillFabric
from benchmarks.drills.perform import Performance, stated_time
from benchmarks.support.machine import machine_line

HEAD: Final = """\
# Drills

`make drills` writes this page. Each drill lets something fail while a job of four workers sums
without a break. Tensor t of worker w holds (w + 1)(t + 1), so every worker knows each sum, and
checks it to the bit. The drill prints its outcome and its time before it acts. The outcome is
reached when all named members have been steady for 1 s: exact sums of these members and nobody
else, and no pause above 0.5 s. A drill that is late, or whose outcome is another one, makes the
run fail.

    make drills                                         # all, on every switch that is found
    python benchmarks/drills/drills.py --list           # names
    python benchmarks/drills/drills.py --targets softswitch --only "link down"

"measured" is the time from the failure until the members were steady; "pause" is the longest time
without a finished tensor at any of them. Drills of parameter servers end when each worker has the
receipts of nine more pushes, since the first eight may be of before; "+" is what nine took just
before the failure, the longest of three times. On BMv2, workers push only twice a second, which is
half of what it can forward, with at most two pushes under way; three receipts count there.
[Operations](operations.md#drills) explains what the workers and the controller do. Tests run some
of these drills without their times (`tests/integration/test_failure_drills.py`), and a random
drill.
"""


@dataclass(frozen=True, kw_only=True)
class DrillRow:
    """One drill on one switch."""

    target: str
    drill: Drill
    performance: Performance | None
    """None if the outcome was not reached."""
    problem: str = ""

    @property
    def has_held(self) -> bool:
        """Whether the stated outcome was reached in the stated time."""
        return self.performance is not None and self.performance.is_in_time(self.drill)

    @property
    def verdict(self) -> str:
        """The row's last word."""
        if self.performance is None:
            return "not reached"
        return "held" if self.has_held else "missed"

    def as_json(self) -> dict[str, Any]:
        """Return the row for a file."""
        done = self.performance
        return {
            "target": self.target,
            "drill": self.drill.name,
            "fabric": self.drill.fabric,
            "stated_outcome": str(self.drill.outcome),
            "stated_s": self.drill.time_s,
            "calm_s": None if done is None else done.calm_s,
            "verdict": self.verdict,
            "measured_s": None if done is None else done.measured_s,
            "longest_pause_s": None if done is None else done.longest_pause_s,
            "reason_of_last_view": None if done is None else done.reason,
            "problem": self.problem,
        }


def markdown(rows: Sequence[DrillRow], machine: Mapping[str, Any]) -> str:
    """Return the page."""
    parts = [HEAD, f"Machine: {machine_line(dict(machine))}.\n"]
    for target in dict.fromkeys(row.target for row in rows):
        of_target = [row for row in rows if row.target == target]
        held = sum(row.has_held for row in of_target)
        parts.append(f"## {target}\n\n{held} of {len(of_target)} drills held.\n")
        left_out = {row.drill.name: row.drill.not_on.get(target) for row in rows}
        parts += [f"Left out: {name}. {why}.\n" for name, why in left_out.items() if why]
        for fabric in DrillFabric:
            if lines := [_line(row) for row in of_target if row.drill.fabric is fabric]:
                head = "| drill | what fails | stated outcome | stated | measured | pause | |"
                table = "\n".join([head, "|---|---|---|---|---|---|---|", *lines])
                parts.append(f"### On {target}: {fabric}\n\n{table}\n")
    parts.append("## Times other than 2 s\n")
    parts.append("| drills | time | because |\n|---|---|---|\n" + "\n".join(_reasons(rows)) + "\n")
    return "\n".join(parts)


def _line(row: DrillRow) -> str:
    drill, done = row.drill, row.performance
    measured = "" if done is None else f"{done.measured_s:.2f} s"
    pause = "" if done is None or not done.longest_pause_s else f"{done.longest_pause_s:.2f} s"
    verdict = row.verdict if row.has_held else f"**{row.verdict}** {_cell(row.problem)}".strip()
    cells = (drill.name, drill.fails, str(drill.outcome), stated_time(drill, done))
    return f"| {' | '.join((*map(_cell, cells), measured, pause, verdict))} |"


def _reasons(rows: Sequence[DrillRow]) -> list[str]:
    names: dict[tuple[float, str], list[str]] = {}
    for drill in {row.drill.name: row.drill for row in rows if row.drill.why}.values():
        names.setdefault((drill.time_s, drill.why), []).append(drill.name)
    return [
        f"| {_cell('; '.join(each))} | {s:g} s | {_cell(w)} |" for (s, w), each in names.items()
    ]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
