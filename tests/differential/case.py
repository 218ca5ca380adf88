# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A test case: a program and the steps for both switches, saved as a folder of text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from finsy.proto import p4r
from google.protobuf import text_format


@dataclass(frozen=True)
class Write:
    """One update from the controller."""

    update: p4r.Update


@dataclass(frozen=True)
class Packet:
    """One frame that arrives at a port."""

    port: int
    frame: bytes


Step = Write | Packet


@dataclass(frozen=True, kw_only=True)
class Case:
    """Steps on fresh switches that run one program."""

    json: Path
    p4info: Path
    seed: int
    steps: tuple[Step, ...]

    def with_steps(self, steps: Sequence[Step]) -> Case:
        return replace(self, steps=tuple(steps))

    def save(self, folder: Path) -> None:
        """Write program, P4Info and steps into a folder, and make it if necessary."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.json.name).write_bytes(self.json.read_bytes())
        (folder / self.p4info.name).write_bytes(self.p4info.read_bytes())
        steps = [_to_json(step) for step in self.steps]
        text = ",\n  ".join(json.dumps(step) for step in steps)
        names = json.dumps([self.json.name, self.p4info.name])
        (folder / "case.json").write_text(
            f'{{"program": {names}, "seed": {self.seed}, "steps": [\n  {text}\n]}}\n',
            encoding="utf-8",
        )


def load_case(folder: Path) -> Case:
    """Read what Case.save wrote."""
    held = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    return Case(
        json=folder / held["program"][0],
        p4info=folder / held["program"][1],
        seed=held["seed"],
        steps=tuple(_from_json(step) for step in held["steps"]),
    )


def _to_json(step: Step) -> dict[str, Any]:
    if isinstance(step, Packet):
        return {"port": step.port, "frame": step.frame.hex()}
    return {"update": text_format.MessageToString(step.update, as_one_line=True)}


def _from_json(held: dict[str, Any]) -> Step:
    if "update" in held:
        return Write(text_format.Parse(held["update"], p4r.Update()))
    return Packet(held["port"], bytes.fromhex(held["frame"]))
