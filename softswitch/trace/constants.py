# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of constants for the values of fields, read from the P4 sources.

p4c replaces constants by their numbers, so the JSON has no names. A value gets the name of a
constant of the field's own type (`const operation_t OPERATION_FLUSH = 3`), or of a member of its
enum. If the type has no name, the constant's name must begin with the field's, as in
`const bit<16> ETHERTYPE_IPV4 = 0x0800` for `bit<16> ethertype`. A field whose constants are single
bits, such as `FLAG_LAST` for `flags`, gets those that are set. What is not certain gets no name.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from ..program.model import Program
from .snapshot import FieldName

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTANT: Final = re.compile(r"\bconst\s+([\w<>]+)\s+(\w+)\s*=\s*([^;]+);")
_ENUM: Final = re.compile(r"\benum\s+bit\s*<\s*\w+\s*>\s*(\w+)\s*\{([^}]*)\}")
_BLOCK: Final = re.compile(r"\b(?:header|struct)\s+(\w+)\s*\{([^}]*)\}")
_MEMBER: Final = re.compile(r"(?:^|;|\))\s*([\w<>]+)\s+(\w+)\s*(?=;|$|=)")
_LOCAL: Final = re.compile(r"^[ \t]*([A-Za-z_]\w*(?:<\w+>)?)[ \t]+(\w+)[ \t]*(?:=[^;]*)?;", re.M)
_LITERAL: Final = re.compile(r"(?:\d+[ws])?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9][0-9_]*)")
_MADE_UP: Final = re.compile(r"^_|_?\d+$")
"""What p4c puts around the name of a local variable."""
_ANONYMOUS: Final = re.compile(r"^(?:bit|int)\b|^bool$")


class Constants:
    """The constants, enums and declared types of a program's sources."""

    def __init__(self, program: Program, texts: Iterable[str]) -> None:
        self._types = {
            str(item["name"]): str(item["header_type"]) for item in program.json.get("headers", [])
        }
        self._by_type: dict[str, dict[str, int]] = defaultdict(dict)
        self._members: dict[tuple[str, str], str] = {}
        self._locals: dict[str, set[str]] = defaultdict(set)
        for text in texts:
            self._read(_COMMENT.sub(" ", text))

    def name(self, field: FieldName, value: int) -> str | None:
        """Return the name of a field's value, or the names of its bits; None if none is certain."""
        kind = self._type_of(field)
        if kind is not None and not _ANONYMOUS.match(kind):
            return _only(self._by_type.get(kind, {}), value)
        prefix = self._own_name(field).upper()
        if kind is None or not prefix:
            return None
        known = self._by_type.get(kind, {})
        if found := _only(_beginning(known, f"{prefix}_"), value):
            return found
        return _bits(_beginning(known, f"{prefix.removesuffix('S')}_"), value)

    def _read(self, text: str) -> None:
        for kind, name, words in _CONSTANT.findall(text):
            literal = _LITERAL.fullmatch(words.strip())
            if literal is not None:
                self._by_type[kind][name] = int(literal.group(1), 0)
        for kind, body in _ENUM.findall(text):
            for part in body.split(","):
                name, _, words = (word.strip() for word in part.partition("="))
                if literal := _LITERAL.fullmatch(words):
                    self._by_type[kind][f"{kind}.{name}"] = int(literal.group(1), 0)
        for owner, body in _BLOCK.findall(text):
            for kind, name in _MEMBER.findall(body):
                self._members[owner, name] = kind
        for kind, name in _LOCAL.findall(text):
            if kind not in {"return", "const"}:
                self._locals[name].add(kind)

    def _type_of(self, field: FieldName) -> str | None:
        header, name = field
        owner, _, member = name.rpartition(".")
        owner = owner or self._types.get(header, header)
        if (owner, member) in self._members:
            return self._members[owner, member]
        found = self._locals.get(self._own_name(field), set())
        return next(iter(found)) if len(found) == 1 else None

    def _own_name(self, field: FieldName) -> str:
        """Return a field's name as the program wrote it, as far as that can be told."""
        header, name = field
        name = name.rpartition(".")[2]
        return _MADE_UP.sub("", name) if header == "scalars" else name


def _only(known: Mapping[str, int], value: int) -> str | None:
    found = [name for name, number in known.items() if number == value]
    return found[0] if len(found) == 1 else None


def _beginning(known: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {name: value for name, value in known.items() if name.startswith(prefix)}


def _bits(known: Mapping[str, int], value: int) -> str | None:
    """Return the names of all bits of a value; None unless every bit that is set has one."""
    bits = {number: name for name, number in known.items() if number.bit_count() == 1}
    if len(bits) < 2 or not value:
        return None
    names = [bits.get(1 << place) for place in range(value.bit_length()) if value >> place & 1]
    return None if None in names else "|".join(filter(None, names))
