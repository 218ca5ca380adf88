# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What every construct of the generator shares: program, storage layout, problems found."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import Problem
from ..program.model import Json, Program, ProgramAction
from .headers import HeaderLayout
from .tracing import TracePoints

STANDARD = "standard_metadata"


class Refusal(Exception):  # noqa: N818 - control flow of the generator, never seen outside
    """A construct is not supported; caught at the next statement, state or table."""

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(what, why, remedy)
        self.what = what
        self.why = why
        self.remedy = remedy


@dataclass(kw_only=True)
class Context:
    """State of one run of the generator."""

    program: Program
    layout: HeaderLayout
    problems: list[Problem] = field(default_factory=list[Problem])
    action: ProgramAction | None = None
    """Action whose body is being read or written."""
    signed: frozenset[tuple[int, int]] = frozenset()
    """Signed parameters: position of the action, index."""
    counts_length: bool = False
    """Whether the program reads packet_length, which valid and invalid headers change."""
    trace: TracePoints | None = None
    """Trace points of a traced build."""
    has_counts: bool = False
    """Whether to count each table's hits and misses and the parser's errors."""

    def point(self, kind: str, name: str, item: Json, *values: str) -> list[str]:
        """C statements of a trace point; none in an ordinary build."""
        return [] if self.trace is None else [self.trace.point(kind, name, item, *values)]

    def json_node(self, name: str) -> Json:
        """Table or conditional of this name in the JSON, for its trace point."""
        if self.trace is None:
            return {}
        kinds = ("tables", "conditionals")
        pipelines = self.program.json["pipelines"]
        nodes = [node for part in pipelines for kind in kinds for node in part.get(kind, [])]
        found: Json = next((node for node in nodes if node["name"] == name), dict[str, Any]())
        return found

    def enclose(self, item: Json) -> None:
        """Set the source line of later trace points that have none of their own."""
        if self.trace is not None:
            self.trace.outer = item.get("source_info")

    @contextmanager
    def refusals(self, where: str) -> Generator[None]:
        """Collect a refusal of the enclosed construct as a problem at this place."""
        try:
            yield
        except Refusal as exc:
            self.problems.append(
                Problem(what=exc.what, where=where, why=exc.why, remedy=exc.remedy)
            )

    def error_code(self, name: str) -> int:
        """Value of a P4 error; 0 where the program has none of this name."""
        errors: list[list[Any]] = self.program.json.get("errors", [])
        return next((item[1] for item in errors if item[0] == name), 0)

    def has_standard(self, name: str) -> bool:
        """Whether standard_metadata exists and has this field."""
        return (STANDARD, name) in self.layout.fields

    def standard(self, name: str) -> str:
        """C lvalue of a field of standard_metadata."""
        return self.layout.fields[STANDARD, name].reference
