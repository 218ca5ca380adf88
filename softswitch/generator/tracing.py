# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trace points: calls that a traced build makes at each step of a packet.

A point is a number in the C text and a TracePoint here. A call records all headers and metadata of
the packet after the step; the narrator reads from them and from the JSON what the step did. The
text of an ordinary build contains no trace points.
"""

from dataclasses import dataclass, field

from ..program.model import Json, Program
from .headers import HeaderLayout

VALID = "$valid$"


@dataclass(frozen=True, kw_only=True)
class TracePoint:
    """One step of the program."""

    kind: str
    """state, operation, select, end, condition, table, action, statement, branch, checksum, emit"""
    name: str
    """Of the state, table, action, header or checksum."""
    item: Json
    """The step in the JSON; empty where it has none."""
    source: Json | None
    """source_info of the step, or of what encloses it."""


@dataclass(kw_only=True)
class TracePoints:
    """The points of a program, in the order of their numbers."""

    points: list[TracePoint] = field(default_factory=list[TracePoint])
    outer: Json | None = None
    """source_info of what encloses the steps being written."""

    def point(self, kind: str, name: str, item: Json, *values: str) -> str:
        """C statement of a new point with numbers to record."""
        own: Json | None = item.get("source_info")
        number = len(self.points)
        self.points.append(TracePoint(kind=kind, name=name, item=item, source=own or self.outer))
        numbers = ", ".join(["0", *(f"(uint64_t)({value})" for value in values)])
        return f"TRACE_POINT({number}, {len(values)}, {numbers});"

    def memory(self, index: int, lvalue: str) -> str:
        """C statement that adds an object to the record of the point before it."""
        return f"trace_memory({index}, &{lvalue}, sizeof {lvalue});"


def traced_fields(program: Program) -> list[tuple[str, str]]:
    """Header and name of each field that a point records; $valid$ is a header's validity."""
    found: list[tuple[str, str]] = []
    for header in program.headers:
        found.append((header.name, VALID))
        found += [(header.name, item.name) for item in header.fields]
    return found


def emit_fields(program: Program, layout: HeaderLayout) -> str:
    """C function that writes the offset in the phv and the bytes of each traced field."""
    text = [
        "uint32_t p4_trace_fields(uint32_t *out, uint32_t capacity) {",
        "static phv_t phv;",
        "const phv_t *p = &phv;",
        "uint32_t count = 0;",
    ]
    for header, name in traced_fields(program):
        if name == VALID:
            lvalue = layout.valid(header)
        elif (header, name) in layout.fields:
            lvalue = layout.fields[header, name].reference
        else:
            text.append("if (count < capacity) out[2 * count] = out[2 * count + 1] = 0;")
            text.append("count++;")
            continue
        text.append("if (count < capacity) {")
        text.append(
            f"out[2 * count] = (uint32_t)((const uint8_t *)&{lvalue} - (const uint8_t *)p);"
        )
        text += [f"out[2 * count + 1] = (uint32_t)sizeof {lvalue};", "}", "count++;"]
    return "\n".join([*text, "return count;", "}", ""])
