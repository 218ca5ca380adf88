# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4Data (section 8.5) to and from the fixed-width fields of digests and registers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from finsy.proto import p4d, p4t, rpc_code

from ..service.status import RequestError
from .values import decode, decode_signed, encode, encode_signed

ENUM_WIDTH = 32
"""Bits that p4c gives an enum without a representation, and an error."""


class DataType(Protocol):
    """A P4 type; `widths` are the bits of its fields, flattened in order."""

    @property
    def widths(self) -> tuple[int, ...]: ...  # noqa: D102

    def encode(self, fields: Iterator[bytes]) -> p4d.P4Data:
        """Take fields from the iterator and return their message."""
        ...

    def decode(self, data: p4d.P4Data, where: str) -> list[bytes]:
        """Return the fields of a message; raises RequestError if it is of another type."""
        ...


@dataclass(frozen=True)
class _Bits:
    width: int
    is_signed: bool

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,)

    def encode(self, fields: Iterator[bytes]) -> p4d.P4Data:
        value = next(fields)
        text = encode_signed(value, self.width) if self.is_signed else encode(value)
        return p4d.P4Data(bitstring=text)

    def decode(self, data: p4d.P4Data, where: str) -> list[bytes]:
        _expect(data, "bitstring", where)
        read = decode_signed if self.is_signed else decode
        return [read(data.bitstring, self.width, where)]


@dataclass(frozen=True)
class _Bool:
    @property
    def widths(self) -> tuple[int, ...]:
        return (1,)

    def encode(self, fields: Iterator[bytes]) -> p4d.P4Data:
        return p4d.P4Data(bool=any(next(fields)))

    def decode(self, data: p4d.P4Data, where: str) -> list[bytes]:
        _expect(data, "bool", where)
        return [bytes([data.bool])]


@dataclass(frozen=True)
class _SerializableEnum:
    width: int

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,)

    def encode(self, fields: Iterator[bytes]) -> p4d.P4Data:
        return p4d.P4Data(enum_value=encode(next(fields)))

    def decode(self, data: p4d.P4Data, where: str) -> list[bytes]:
        _expect(data, "enum_value", where)
        return [decode(data.enum_value, self.width, where)]


@dataclass(frozen=True)
class _Names:
    """An enum or an error: numbered by the compiler, named on the wire."""

    field: str
    names: tuple[str, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        return (ENUM_WIDTH,)

    def encode(self, fields: Iterator[bytes]) -> p4d.P4Data:
        number = int.from_bytes(next(fields), "big")
        name = self.names[number] if number < len(self.names) else str(number)
        return p4d.P4Data(enum=name) if self.field == "enum" else p4d.P4Data(error=name)

    def decode(self, data: p4d.P4Data, where: str) -> list[bytes]:
        _expect(data, self.field, where)
        name = getattr(data, self.field)
        if name not in self.names:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"{where}: {name!r} is not one of {self.names}"
            )
        return [self.names.index(name).to_bytes(ENUM_WIDTH // 8, "big")]


@dataclass(frozen=True)
class _Group:
    """A struct, a tuple or a header."""

    field: str
    members: tuple[DataType, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(width for member in self.members for width in member.widths)

    def encode(self, fields: Iterator[bytes]) -> p4d.P4Data:
        data = p4d.P4Data()
        if self.field == "header":
            data.header.is_valid = True
            data.header.bitstrings.extend(encode(next(fields)) for _ in self.members)
            return data
        members = data.struct.members if self.field == "struct" else data.tuple.members
        members.extend(member.encode(fields) for member in self.members)
        return data

    def decode(self, data: p4d.P4Data, where: str) -> list[bytes]:
        _expect(data, self.field, where)
        if self.field == "header":
            items = [p4d.P4Data(bitstring=value) for value in data.header.bitstrings]
        else:
            items = list(getattr(data, self.field).members)
        if len(items) != len(self.members):
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                f"{where}: {len(items)} members given, the type has {len(self.members)}",
            )
        fields: list[bytes] = []
        for member, item in zip(self.members, items, strict=True):
            fields.extend(member.decode(item, where))
        return fields


def _expect(data: p4d.P4Data, field: str, where: str) -> None:
    kind = data.WhichOneof("data")
    if kind != field:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT, f"{where}: data: a {field} is expected, not {kind}"
        )


class TypeTable:
    """Reads type specifications with the names that a P4Info declares."""

    def __init__(self, info: p4t.P4TypeInfo) -> None:
        self._info = info

    def read(self, spec: p4t.P4DataTypeSpec, depth: int = 0) -> DataType:  # noqa: PLR0911 - one case per kind of type
        """Return the type; raises ValueError if digests and registers cannot have it."""
        if depth > _MAX_DEPTH:
            raise ValueError("types are nested too deeply")
        info = self._info
        kind = spec.WhichOneof("type_spec")
        if kind == "bitstring":
            return _bits(spec.bitstring)
        if kind == "bool":
            return _Bool()
        if kind == "error":
            return _Names("error", tuple(info.error.members))
        if kind == "enum" and spec.enum.name in info.enums:
            names = (member.name for member in info.enums[spec.enum.name].members)
            return _Names("enum", tuple(names))
        if kind == "serializable_enum" and spec.serializable_enum.name in info.serializable_enums:
            declared = info.serializable_enums[spec.serializable_enum.name]
            return _SerializableEnum(_positive(declared.underlying_type.bitwidth))
        if kind == "new_type" and spec.new_type.name in info.new_types:
            return self._read_new_type(info.new_types[spec.new_type.name], depth)
        if kind == "struct" and spec.struct.name in info.structs:
            members = [member.type_spec for member in info.structs[spec.struct.name].members]
            return _Group("struct", self._read_all(members, depth))
        if kind == "header" and spec.header.name in info.headers:
            fields = info.headers[spec.header.name].members
            return _Group("header", tuple(_bits(field.type_spec) for field in fields))
        if kind == "tuple":
            return _Group("tuple", self._read_all(spec.tuple.members, depth))
        raise ValueError(f"type {kind} is not one that digests and registers can have")

    def _read_all(self, specs: Sequence[p4t.P4DataTypeSpec], depth: int) -> tuple[DataType, ...]:
        return tuple(self.read(spec, depth + 1) for spec in specs)

    def _read_new_type(self, declared: p4t.P4NewTypeSpec, depth: int) -> DataType:
        if declared.HasField("original_type"):
            return self.read(declared.original_type, depth + 1)
        return _Bits(_positive(declared.translated_type.sdn_bitwidth), is_signed=False)


_MAX_DEPTH = 16


def _bits(spec: p4t.P4BitstringLikeTypeSpec) -> _Bits:
    if spec.HasField("int"):
        return _Bits(_positive(spec.int.bitwidth), is_signed=True)
    if spec.HasField("bit"):
        return _Bits(_positive(spec.bit.bitwidth), is_signed=False)
    raise ValueError("varbit fields are not supported here")


def _positive(width: int) -> int:
    if width <= 0:
        raise ValueError(f"a width of {width} bits")
    return width
