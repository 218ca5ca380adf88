# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Counters, registers, meters, digests, value sets, controller headers: P4Info against JSON."""

from collections.abc import Iterable

from finsy.proto import p4i, p4t

from ...program.model import Json, Program
from .data_types import DataType, TypeTable
from .p4info_tables import check_width, find_named
from .schema import (
    Array,
    ControllerHeader,
    Digest,
    MatchField,
    Meter,
    Param,
    ValueSet,
)
from .translation import Translation


def map_counters(
    counters: Iterable[p4i.Counter], program: Program, problems: list[str]
) -> dict[int, Array]:
    """Return the indirect counters by id."""
    mapped: dict[int, Array] = {}
    for counter in counters:
        name = counter.preamble.name
        array = find_named(program.counters, name)
        if array is None:
            problems.append(f"counter {name} is not in the JSON")
        elif array.size != counter.size:
            problems.append(f"counter {name}: size {counter.size} but {array.size} in the JSON")
        else:
            mapped[counter.preamble.id] = Array(
                id=counter.preamble.id,
                name=name,
                position=array.position,
                size=array.size,
                data=None,
            )
    return mapped


def map_registers(info: p4i.P4Info, program: Program, problems: list[str]) -> dict[int, Array]:
    """Return the registers by id."""
    types = TypeTable(info.type_info)
    mapped: dict[int, Array] = {}
    for register in info.registers:
        name = register.preamble.name
        where = f"register {name}"
        array = find_named(program.registers, name)
        if array is None:
            problems.append(f"{where} is not in the JSON")
            continue
        if array.size != register.size:
            problems.append(f"{where}: size {register.size} but {array.size} in the JSON")
        data = _read_type(types, register.type_spec, where, problems)
        if data is not None and data.widths != (array.width,):
            problems.append(f"{where}: {list(data.widths)} bits but {array.width} in the JSON")
        mapped[register.preamble.id] = Array(
            id=register.preamble.id,
            name=name,
            position=array.position,
            size=array.size,
            data=data,
        )
    return mapped


def _read_type(
    types: TypeTable, spec: p4t.P4DataTypeSpec, where: str, problems: list[str]
) -> DataType | None:
    try:
        return types.read(spec)
    except ValueError as exc:
        problems.append(f"{where}: {exc}")
        return None


def map_meters(
    info: p4i.P4Info, program: Program, problems: list[str]
) -> tuple[dict[int, Meter], dict[int, Meter]]:
    """Return the meters by id, and the direct ones by the id of their table."""
    arrays: list[Json] = program.json.get("meter_arrays", [])
    positions = {item["name"]: position for position, item in enumerate(arrays)}
    meters: dict[int, Meter] = {}
    direct: dict[int, Meter] = {}
    for item in (*info.meters, *info.direct_meters):
        name = item.preamble.name
        position = positions.get(name)
        if position is None:
            problems.append(f"meter {name} is not in the JSON")
            continue
        array = arrays[position]
        unit = {p4i.MeterSpec.BYTES: "bytes", p4i.MeterSpec.PACKETS: "packets"}.get(item.spec.unit)
        if unit != array["type"]:
            problems.append(f"meter {name}: counts {unit}, {array['type']} in the JSON")
        is_direct = isinstance(item, p4i.DirectMeter)
        if is_direct != array["is_direct"]:
            problems.append(f"meter {name}: direct in only one of P4Info and JSON")
            continue
        size = 0 if isinstance(item, p4i.DirectMeter) else item.size
        if not is_direct and size != array["size"]:
            problems.append(f"meter {name}: size {size} but {array['size']} in the JSON")
        mapped = Meter(
            id=item.preamble.id, name=name, position=position, size=size, kind=item.spec.type
        )
        if isinstance(item, p4i.DirectMeter):
            direct[item.direct_table_id] = mapped
        else:
            meters[mapped.id] = mapped
    return meters, direct


def map_value_sets(info: p4i.P4Info, program: Program, problems: list[str]) -> dict[int, ValueSet]:
    """Return the value sets by id."""
    declared: list[Json] = program.json.get("parse_vsets", [])
    positions = {item["name"]: position for position, item in enumerate(declared)}
    mapped: dict[int, ValueSet] = {}
    for item in info.value_sets:
        name = item.preamble.name
        position = positions.get(name)
        if position is None:
            problems.append(f"value set {name} is not in the JSON")
            continue
        fields = tuple(
            MatchField(
                id=field.id, name=field.name, width=field.bitwidth, match_type=field.match_type
            )
            for field in item.match
        )
        actual = declared[position]["compressed_bitwidth"]
        bits = sum(field.width for field in fields)
        if bits != actual or any(field.width <= 0 for field in fields):
            problems.append(f"value set {name}: {bits} bits but {actual} in the JSON")
        mapped[item.preamble.id] = ValueSet(
            id=item.preamble.id, name=name, position=position, fields=fields, size=item.size
        )
    return mapped


def map_digests(
    info: p4i.P4Info, program: Program, problems: list[str], warnings: list[str]
) -> dict[int, Digest]:
    """Return the digests by id.

    p4c makes up the name of a digest of a tuple, and another one in the JSON. Where both have one
    digest that the other has not, it is the same.
    """
    types = TypeTable(info.type_info)
    lists: dict[str, Json] = {item["name"]: item for item in program.json.get("learn_lists", [])}
    stated = {item.preamble.name for item in info.digests}
    if len(stated - lists.keys()) == len(lists.keys() - stated) == 1:
        (name,), (other,) = stated - lists.keys(), lists.keys() - stated
        warnings.append(f"digest {name}: is {other} in the JSON")
        lists[name] = lists[other]
    mapped: dict[int, Digest] = {}
    for item in info.digests:
        name = item.preamble.name
        where = f"digest {name}"
        learn_list = lists.get(name)
        if learn_list is None:
            problems.append(f"{where} is not in the JSON")
            continue
        data = _read_type(types, item.type_spec, where, problems)
        if data is None:
            continue
        fields = len(learn_list["elements"])
        if len(data.widths) != fields:
            problems.append(f"{where}: {len(data.widths)} fields but {fields} in the JSON")
        mapped[item.preamble.id] = Digest(
            id=item.preamble.id, name=name, list_id=learn_list["id"], data=data
        )
    return mapped


def map_headers(
    info: p4i.P4Info, program: Program, translation: Translation, problems: list[str]
) -> dict[str, ControllerHeader]:
    """Return those of packet_in and packet_out that the program has."""
    mapped: dict[str, ControllerHeader] = {}
    for metadata in info.controller_packet_metadata:
        name = metadata.preamble.name
        where = f"controller header {name}"
        actual = _field_widths(metadata, program)
        fields: list[Param] = []
        for item, width in zip(metadata.metadata, actual, strict=True):
            named = f"{where}, field {item.name}"
            check_width(named, item.bitwidth, width, item.HasField("type_name"), problems)
            strings = translation.of(item.type_name.name)
            fields.append(Param(id=item.id, name=item.name, width=width, strings=strings))
        header = ControllerHeader(fields=tuple(fields))
        if any(item.width <= 0 and item.strings is None for item in fields):
            problems.append(f"{where}: a field without bits")
        mapped[name] = header
    return mapped


def _field_widths(metadata: p4i.ControllerPacketMetadata, program: Program) -> list[int]:
    """Return the widths of the header with these fields; P4Info's if there is none."""
    names = [item.name for item in metadata.metadata]
    stated = [item.bitwidth for item in metadata.metadata]
    found = [
        [item.width for item in header.fields]
        for header in program.headers
        if not header.is_metadata and [item.name for item in header.fields] == names
    ]
    return stated if stated in found or not found else found[0]
