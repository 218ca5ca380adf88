# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4Info ids mapped to positions in the BMv2 JSON; a mismatch of the two is reported in full."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from finsy.proto import p4i, rpc_code

from softswitch.p4runtime.status import ConfigError, RequestError
from softswitch.program import Program
from softswitch.program import Table as ProgramTable

_MATCH_NAMES: dict[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    # p4c writes optional keys as ternary ones into the JSON: all bits or none.
    p4i.MatchField.OPTIONAL: "ternary",
}
_PRIORITY_MATCHES = {p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL}


@dataclass(frozen=True, kw_only=True)
class Param:
    """An action parameter."""

    id: int
    name: str
    width: int


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action as one table uses it."""

    id: int
    name: str
    position: int
    """In the JSON's actions."""
    params: tuple[Param, ...]
    scope: int
    """p4i.ActionRef.Scope: usable in entries, as default, or both."""


@dataclass(frozen=True, kw_only=True)
class MatchField:
    """A key field."""

    id: int
    name: str
    width: int
    match_type: int
    """p4i.MatchField.MatchType."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that P4Runtime can see."""

    id: int
    name: str
    position: int
    """Over both pipelines of the JSON."""
    fields: tuple[MatchField, ...]
    actions: dict[int, Action]
    actions_by_position: dict[int, Action]
    needs_priority: bool
    is_all_exact: bool
    is_const: bool
    is_default_const: bool
    has_counter: bool
    max_size: int
    program: ProgramTable
    """The same table in the JSON."""
    widths: tuple[int, ...]
    """Bits of each key field."""


@dataclass(frozen=True, kw_only=True)
class Array:
    """An indirect counter or a register."""

    id: int
    name: str
    position: int
    size: int
    width: int
    """Bits of a register cell; 0 for counters."""


@dataclass(frozen=True, kw_only=True)
class ControllerHeader:
    """packet_in or packet_out."""

    fields: tuple[Param, ...]

    @property
    def bits(self) -> int:
        """Width of the header."""
        return sum(item.width for item in self.fields)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Everything that the server looks up by id."""

    tables: dict[int, Table]
    counters: dict[int, Array]
    registers: dict[int, Array]
    direct_counters: dict[int, Table]
    packet_in: ControllerHeader | None
    packet_out: ControllerHeader | None
    action_widths: tuple[tuple[int, ...], ...]

    def table(self, table_id: int) -> Table:
        """Return a table or raise NOT_FOUND."""
        table = self.tables.get(table_id)
        if table is None:
            raise RequestError(
                rpc_code.NOT_FOUND, f"table_id {table_id} (0x{table_id:08x}) is not in the P4Info"
            )
        return table


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


def _find(items: Iterable[_T], name: str) -> _T | None:
    return next((item for item in items if item.name == name), None)


def build_schema(info: p4i.P4Info, program: Program) -> Schema:
    """Map a P4Info onto a JSON; ConfigError lists every difference."""
    problems: list[str] = []
    actions = {action.preamble.id: action for action in info.actions}
    tables: dict[int, Table] = {}
    for table in info.tables:
        mapped = _map_table(table, actions, program, problems)
        if mapped is not None:
            tables[mapped.id] = mapped
    direct_counters: dict[int, Table] = {}
    for counter in info.direct_counters:
        owner = tables.get(counter.direct_table_id)
        if owner is not None:
            direct_counters[counter.preamble.id] = owner
        if _find(program.counters, counter.preamble.name) is None:
            problems.append(f"direct counter {counter.preamble.name} is not in the JSON")
    schema = Schema(
        tables=tables,
        counters=_map_counters(info.counters, program, problems),
        registers=_map_registers(info.registers, program, problems),
        direct_counters=direct_counters,
        packet_in=_map_header(info, "packet_in", problems),
        packet_out=_map_header(info, "packet_out", problems),
        action_widths=tuple(
            tuple(item.width for item in action.parameters) for action in program.actions
        ),
    )
    if problems:
        raise ConfigError("P4Info does not match p4_device_config", problems)
    return schema


def _map_table(
    table: p4i.Table,
    actions: dict[int, p4i.Action],
    program: Program,
    problems: list[str],
) -> Table | None:
    name = table.preamble.name
    json_table = _find(program.tables, name)
    if json_table is None:
        problems.append(f"table {name} is not in the JSON")
        return None
    fields = tuple(
        MatchField(
            id=item.id,
            name=item.name,
            width=item.bitwidth,
            match_type=item.match_type,
        )
        for item in table.match_fields
    )
    _compare_key(name, fields, json_table, problems)
    mapped = _map_actions(table, actions, json_table, problems)
    match_types = {item.match_type for item in fields}
    return Table(
        id=table.preamble.id,
        name=name,
        position=json_table.position,
        fields=fields,
        actions=mapped,
        actions_by_position={action.position: action for action in mapped.values()},
        needs_priority=bool(match_types & _PRIORITY_MATCHES),
        is_all_exact=match_types <= {p4i.MatchField.EXACT},
        is_const=table.is_const_table,
        is_default_const=table.const_default_action_id != 0,
        has_counter=any(
            item >> 24 == p4i.P4Ids.DIRECT_COUNTER for item in table.direct_resource_ids
        ),
        max_size=json_table.max_size,
        program=json_table,
        widths=tuple(item.width for item in fields),
    )


def _compare_key(
    name: str, fields: tuple[MatchField, ...], json_table: ProgramTable, problems: list[str]
) -> None:
    if len(fields) != len(json_table.key):
        problems.append(
            f"table {name}: {len(fields)} match fields in P4Info, {len(json_table.key)} in the JSON"
        )
        return
    for item, column in zip(fields, json_table.key, strict=True):
        match_name = _MATCH_NAMES.get(item.match_type)
        json_type = "ternary" if column.kind == "optional" else column.kind
        where = f"table {name}, match field {item.name}"
        if item.name != column.name:
            problems.append(f"{where}: is {column.name} in the JSON")
        if match_name != json_type:
            problems.append(f"{where}: {match_name or item.match_type} but {json_type} in the JSON")
        if item.width != column.width:
            problems.append(f"{where}: {item.width} bits but {column.width} in the JSON")


def _map_actions(
    table: p4i.Table,
    actions: dict[int, p4i.Action],
    json_table: ProgramTable,
    problems: list[str],
) -> dict[int, Action]:
    mapped: dict[int, Action] = {}
    for reference in table.action_refs:
        where = f"table {table.preamble.name}, action"
        action = actions.get(reference.id)
        if action is None:
            problems.append(f"{where} id {reference.id}: no such action in P4Info")
            continue
        name = action.preamble.name
        json_action = _find(json_table.actions, name)
        if json_action is None:
            problems.append(f"{where} {name}: not an action of this table in the JSON")
            continue
        params = tuple(
            Param(id=item.id, name=item.name, width=item.bitwidth) for item in action.params
        )
        widths = [item.width for item in params]
        json_widths = [item.width for item in json_action.parameters]
        if widths != json_widths:
            problems.append(
                f"{where} {name}: parameters of {widths} bits in P4Info, {json_widths} in the JSON"
            )
            continue
        mapped[action.preamble.id] = Action(
            id=action.preamble.id,
            name=name,
            position=json_action.position,
            params=params,
            scope=reference.scope,
        )
    return mapped


def _map_counters(
    counters: Iterable[p4i.Counter], program: Program, problems: list[str]
) -> dict[int, Array]:
    mapped: dict[int, Array] = {}
    for counter in counters:
        name = counter.preamble.name
        array = _find(program.counters, name)
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
                width=0,
            )
    return mapped


def _map_registers(
    registers: Iterable[p4i.Register], program: Program, problems: list[str]
) -> dict[int, Array]:
    mapped: dict[int, Array] = {}
    for register in registers:
        name = register.preamble.name
        array = _find(program.registers, name)
        if array is None:
            problems.append(f"register {name} is not in the JSON")
        elif array.size != register.size:
            problems.append(f"register {name}: size {register.size} but {array.size} in the JSON")
        else:
            mapped[register.preamble.id] = Array(
                id=register.preamble.id,
                name=name,
                position=array.position,
                size=array.size,
                width=array.width,
            )
    return mapped


def _map_header(info: p4i.P4Info, name: str, problems: list[str]) -> ControllerHeader | None:
    for metadata in info.controller_packet_metadata:
        if metadata.preamble.name != name:
            continue
        header = ControllerHeader(
            fields=tuple(
                Param(id=item.id, name=item.name, width=item.bitwidth) for item in metadata.metadata
            )
        )
        if header.bits % 8:
            problems.append(f"controller header {name}: {header.bits} bits are not whole bytes")
        return header
    return None
