# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Headers and metadata of a packet at one point, read from the bytes of its phv."""

from dataclasses import dataclass

from ..generator import traced_fields
from ..program.model import Program

VALID = "$valid$"
FieldName = tuple[str, str]


def load_number(data: bytes) -> int:
    """Return the number in an object's bytes: up to 8 in host order, more in big-endian order."""
    return int.from_bytes(data, "little" if len(data) <= 8 else "big")


class PhvLayout:
    """Where each field is: offset and bytes, as p4_trace_fields returns them."""

    def __init__(self, program: Program, places: list[tuple[int, int]]) -> None:
        widths = {
            (head.name, item.name): item.width for head in program.headers for item in head.fields
        }
        self.program = program
        self.places: dict[FieldName, tuple[int, int, int]] = {}
        for name, (offset, size) in zip(traced_fields(program), places, strict=True):
            if size:
                self.places[name] = (offset, size, 1 if name[1] == VALID else widths[name])
        self.metadata = {head.name for head in program.headers if head.is_metadata}


@dataclass(frozen=True)
class FieldChange:
    """A field that a step has changed."""

    field: FieldName
    before: int
    after: int


class Snapshot:
    """Values at one point."""

    def __init__(self, layout: PhvLayout, phv: bytes) -> None:
        self.layout = layout
        self._phv = phv

    def value(self, header: str, name: str) -> int | None:
        """Return a field's value as an unsigned number; None if there is no such field."""
        place = self.layout.places.get((header, name))
        if place is None:
            return None
        offset, size, width = place
        value = load_number(self._phv[offset : offset + size])
        return value & ((1 << width) - 1) if width else value

    def is_valid(self, header: str) -> bool:
        """Whether a header is valid; metadata always is."""
        return header in self.layout.metadata or bool(self.value(header, VALID))

    def changes(self, before: "Snapshot") -> list[FieldChange]:
        """Return the fields that differ from an earlier point, in the order of the headers."""
        if before._phv == self._phv:
            return []
        found: list[FieldChange] = []
        for name, (offset, size, _) in self.layout.places.items():
            end = offset + size
            if self._phv[offset:end] != before._phv[offset:end]:
                old, new = before.value(*name), self.value(*name)
                if old is not None and new is not None:
                    found.append(FieldChange(name, old, new))
        return found
