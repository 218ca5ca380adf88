# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the narrator knows of the current packet, and the text of its values."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..generator import TracePoint
from ..program.model import Program
from .constants import Constants
from .expressions import JsonExpressions
from .snapshot import VALID, FieldChange, FieldName, PhvLayout, Snapshot
from .sources import Source, Sources
from .step import Step
from .values import field_name, format_value


@dataclass
class PacketState:
    """The current packet; the narrator's parts share it."""

    program: Program
    layout: PhvLayout
    sources: Sources
    number: int = 0
    stage: str = "arrival"
    frame: bytes = b""
    expressions: JsonExpressions = field(default_factory=JsonExpressions)
    before: Snapshot | None = None
    """The values at the previous point."""
    now: Snapshot | None = None
    dropped_at: Source | None = None
    """Where egress_spec was last set to the drop port."""
    depth: int = 0

    def __post_init__(self) -> None:
        self.widths: dict[FieldName, int] = {
            (head.name, item.name): item.width
            for head in self.program.headers
            for item in head.fields
        }

    @cached_property
    def constants(self) -> Constants:
        """Names of values, from the P4 sources that are found."""
        main = str(self.program.json.get("program", ""))
        return Constants(self.program, self.sources.texts(main) if main else ())

    def step(
        self,
        kind: str,
        text: str,
        *,
        details: tuple[str, ...] = (),
        source: Source | None = None,
        extra_depth: int = 0,
        **data: Any,
    ) -> Step:
        """Return a step of the current stage."""
        return Step(
            packet=self.number,
            stage=self.stage,
            kind=kind,
            text=text,
            details=details,
            depth=self.depth + extra_depth,
            source=source,
            data=data,
        )

    def source(self, point: TracePoint) -> Source | None:
        """Return the P4 line of a point."""
        return self.sources.of(point.source)

    def changes(self) -> list[FieldChange]:
        """Return what changed since the previous point."""
        if self.before is None or self.now is None:
            return []
        return self.now.changes(self.before)

    def format(self, name: FieldName, value: int) -> str:
        """Return a field's value as readable text."""
        shown = format_value(value, self.widths.get(name, 0), name[1])
        constant = self.constants.name(name, value)
        return f"{shown} {constant}" if constant else shown

    def describe(self, changes: list[FieldChange]) -> tuple[str, ...]:
        """Return a line per change; a header that appears shows all of its fields."""
        appeared = {c.field[0] for c in changes if c.field[1] == VALID and c.after}
        gone = {c.field[0] for c in changes if c.field[1] == VALID and not c.after}
        lines = [f"{name}: {self.header(name)}" for name in appeared]
        lines += [f"{name} is no longer valid" for name in gone]
        for change in changes:
            header, name = change.field
            if name == VALID or header in appeared or header in gone:
                continue
            before = self.format(change.field, change.before)
            after = self.format(change.field, change.after)
            lines.append(f"{field_name(change.field)} = {after}, was {before}")
        return tuple(lines)

    def header(self, name: str) -> str:
        """Return all fields of a header with their values."""
        parts: list[str] = []
        for item in self.program.header(name).fields:
            value = self.now.value(name, item.name) if self.now is not None else None
            if value is not None:
                parts.append(f"{item.name}={self.format((name, item.name), value)}")
        return ", ".join(parts)

    def change_data(self, changes: list[FieldChange]) -> dict[str, dict[str, int]]:
        """Return changes as data for JSON: the values before and after, by field."""
        return {
            ".".join(change.field): {"before": change.before, "after": change.after}
            for change in changes
        }
