# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a case on both switches and finds the first step at which they differ.

The comparison covers whether each update is accepted (BMv2's codes are not canonical), the frames
of each packet in order for each port (BMv2 leaves the order between ports open), and at the end all
counters, including direct ones. Registers show only in the packets that they change, because BMv2
has no registers in P4Runtime. Rules leave out:

- the order of frames at a port if the program multicasts: P4Runtime leaves the order of replicas
  open, and BMv2 has no fixed order;
- the bytes of frames if the program reads times, queue depths or random numbers: only the number
  and length of frames are compared (ProgramLayout.is_unspecified);
- steps that end BMv2's process or never end in it, such as a packet that recirculates for ever:
  both switches start again without them, and the report counts them;
- packets of a program without registers and meters, if BMv2 answers them as softswitch does when
  they come first on a fresh process: such a program reads fields of invalid headers, where BMv2
  shows what earlier packets left. They are removed and counted, too. Programs that the campaign has
  made comparable clear these fields, except varbit ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from differential.bmv2_switch import Bmv2Switch, SwitchEndedError
from differential.case import Case, Packet, Step
from differential.program_layout import ProgramLayout
from differential.softswitch_switch import Softswitch

LEFTOVERS_MAX = 3
"""Packets that may be removed before the case stops there."""
ENDINGS_MAX = 4
"""Steps that may end BMv2 before the case stops there."""


@dataclass(frozen=True)
class Difference:
    """A step, by its position in the case, and both results; after the last step, the counters."""

    at: int
    step: Step | None
    softswitch: object
    bmv2: object

    def __str__(self) -> str:
        what = "counters at the end" if self.step is None else _show(self.step)
        return (
            f"step {self.at}: {what}\n  softswitch: {_show(self.softswitch)}\n"
            f"  bmv2:       {_show(self.bmv2)}"
        )


@dataclass(frozen=True)
class Result:
    """What a run showed; its `case` is without the steps that ended BMv2."""

    case: Case
    difference: Difference | None
    endings: tuple[Step, ...]
    leftovers: int
    """Packets that showed what earlier packets had left in invalid headers."""
    frames: int
    """Frames that left the switch; they show that the case does not only drop packets."""


def run_case(case: Case) -> Result:
    """Run a case on fresh switches."""
    layout = ProgramLayout(case.json)
    leftovers = 0
    endings: tuple[Step, ...] = ()
    while True:
        case, ended, bmv2 = _without_endings(case)
        endings += ended
        soft = _run_softswitch(case)
        at = _first_difference(case, soft, bmv2, layout)
        step = case.steps[at] if at is not None and at < len(case.steps) else None
        if at is None or not isinstance(step, Packet) or layout.has_state:
            break
        if not _is_leftover(case, at, layout):
            break
        leftovers += 1
        rest = case.steps[at + 1 :] if leftovers < LEFTOVERS_MAX else ()
        case = case.with_steps([*case.steps[:at], *rest])
    frames = sum(len(item) for item in soft[:-1] if isinstance(item, list))
    difference = None if at is None else Difference(at, step, soft[at], bmv2[at])
    return Result(case, difference, endings, leftovers, frames)


def _without_endings(case: Case) -> tuple[Case, tuple[Step, ...], list[object]]:
    """Run on BMv2; leave out steps that end it."""
    endings: list[Step] = []
    bmv2 = _run_bmv2(case)
    while isinstance(bmv2, int):
        endings += case.steps[bmv2 : bmv2 + 1]
        keep = case.steps[:bmv2]
        if len(endings) < ENDINGS_MAX:
            keep += case.steps[bmv2 + 1 :]
        case = case.with_steps(keep)
        bmv2 = _run_bmv2(case)
    return case, tuple(endings), bmv2


def _run_softswitch(case: Case) -> list[object]:
    with closing(Softswitch(case.json, case.p4info)) as switch:
        seen: list[object] = [switch.take(step) for step in case.steps]
        return [*seen, switch.counters()]


def _first_difference(
    case: Case, soft: list[object], bmv2: list[object], layout: ProgramLayout
) -> int | None:
    for at, (left, right) in enumerate(zip(soft, bmv2, strict=True)):
        step = case.steps[at] if at < len(case.steps) else None
        if _comparable(step, left, layout) != _comparable(step, right, layout):
            return at
    return None


def _is_leftover(case: Case, at: int, layout: ProgramLayout) -> bool:
    """Return whether both switches agree on the packet if no other packet came before it."""
    writes = [step for step in case.steps[:at] if not isinstance(step, Packet)]
    alone = case.with_steps([*writes, case.steps[at]])
    bmv2 = _run_bmv2(alone)
    if isinstance(bmv2, int):
        return False
    soft = _run_softswitch(alone)
    return _first_difference(alone, soft, bmv2, layout) is None


def _run_bmv2(case: Case) -> list[object] | int:
    """Return the results of all steps and the counters, or the step that ended the process.

    If the process ends while the counters are read, that is the last step.
    """
    seen: list[object] = []
    with closing(Bmv2Switch(case.json, case.p4info)) as switch:
        for at, step in enumerate(case.steps):
            try:
                seen.append(switch.take(step))
            except SwitchEndedError:
                return at
        try:
            seen.append(switch.counters())
        except SwitchEndedError:
            return len(case.steps) - 1
    return seen


def _comparable(step: Step | None, seen: object, layout: ProgramLayout) -> object:
    if step is None:
        return seen
    if not isinstance(step, Packet):
        return seen == "OK"
    assert isinstance(seen, list)
    left: Sequence[tuple[int, bytes]] = seen
    by_port: dict[int, list[bytes]] = {}
    for port, frame in left:
        shown = bytes(len(frame)) if layout.is_unspecified else frame
        by_port.setdefault(port, []).append(shown)
    if layout.has_multicast:
        return {port: sorted(frames) for port, frames in by_port.items()}
    return by_port


def _show(seen: object) -> str:
    if isinstance(seen, Packet):
        return f"port {seen.port} <- {seen.frame.hex()}"
    if isinstance(seen, list):
        frames: list[tuple[int, bytes]] = seen
        return ", ".join(f"{port}: {frame.hex()}" for port, frame in frames) or "nothing"
    return " ".join(str(seen).split())
