# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Strings of `@p4runtime_translation` types: each stands for one number of the pipeline."""

from finsy.proto import p4t, rpc_code

from ..service.status import RequestError
from .values import field_bytes


class StringNumbers:
    """The strings of one type, and their numbers.

    A decimal string stands for its number, and the empty string for 0, if that number is free. Any
    other string gets the highest free number below all ones. Strings keep their numbers.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[bytes, int] = {}
        self._strings: dict[int, bytes] = {}

    def encode(self, string: bytes, width: int) -> bytes:
        """Return the number as `field_bytes(width)` bytes.

        Raises RequestError RESOURCE_EXHAUSTED if no number is left.
        """
        number = self._numbers.get(string)
        if number is None or number >> width:
            number = self._choose(string, width)
            self._numbers[string] = number
            self._strings[number] = string
        return number.to_bytes(field_bytes(width), "big")

    def decode(self, number: bytes) -> bytes:
        """Return the string of a number; one without a string is written in decimal."""
        value = int.from_bytes(number, "big")
        return self._strings.get(value, b"%d" % value)

    def _choose(self, string: bytes, width: int) -> int:
        if string.isdigit() or not string:
            wanted = int(string or b"0")
            is_canonical = string in (b"%d" % wanted, b"")
            if is_canonical and not wanted >> width and wanted not in self._strings:
                return wanted
        ones = (1 << width) - 1
        for number in range(ones - 1, -1, -1):
            if number not in self._strings:
                return number
        raise RequestError(
            rpc_code.RESOURCE_EXHAUSTED, f"type {self._name}: no number of {width} bits is left"
        )


class Translation:
    """The types of a P4Info that controllers write as strings."""

    def __init__(self, info: p4t.P4TypeInfo) -> None:
        self._types = {
            name: StringNumbers(name)
            for name, declared in info.new_types.items()
            if declared.translated_type.HasField("sdn_string")
        }

    def of(self, type_name: str) -> StringNumbers | None:
        """Return the strings of a type; None for a type of numbers."""
        return self._types.get(type_name)
