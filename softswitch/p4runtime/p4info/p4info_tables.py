# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, their actions and action profiles: the P4Info's against the JSON's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from finsy.proto import p4i

from ...program.model import Json, Program, ProgramTable
from .schema import Action, MatchField, Meter, Param, Profile, Table
from .translation import Translation

_MATCH_NAMES: dict[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    # p4c writes optional keys as ternary ones into the JSON: all bits or none.
    p4i.MatchField.OPTIONAL: "ternary",
}
_PRIORITY_MATCHES = {p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL}


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


def find_named(items: Iterable[_T], name: str) -> _T | None:
    """Return the object of this name; None if there is none."""
    return next((item for item in items if item.name == name), None)


def _json_tables(program: Program) -> dict[str, Json]:
    pipelines: list[Json] = program.json.get("pipelines", [])
    return {table["name"]: table for pipeline in pipelines for table in pipeline["tables"]}


def map_profiles(
    info: p4i.P4Info, program: Program, translation: Translation, problems: list[str]
) -> dict[int, Profile]:
    """Return the action profiles by id."""
    pipelines: list[Json] = program.json.get("pipelines", [])
    declared = [item for pipeline in pipelines for item in pipeline.get("action_profiles", ())]
    positions = {item["name"]: position for position, item in enumerate(declared)}
    actions = {action.preamble.id: action for action in info.actions}
    tables = {table.preamble.id: table for table in info.tables}
    mapped: dict[int, Profile] = {}
    for profile in info.action_profiles:
        name = profile.preamble.name
        position = positions.get(name)
        if position is None:
            problems.append(f"action profile {name} is not in the JSON")
            continue
        if profile.with_selector != ("selector" in declared[position]):
            problems.append(f"action profile {name}: only one of P4Info and JSON has a selector")
        usable: dict[int, Action] = {}
        for table_id in profile.table_ids:
            table = tables.get(table_id)
            json_table = find_named(program.tables, table.preamble.name) if table else None
            if table is not None and json_table is not None:
                usable |= _map_actions(table, actions, json_table, translation, [])
        mapped[profile.preamble.id] = Profile(
            id=profile.preamble.id,
            name=name,
            position=position,
            with_selector=profile.with_selector,
            size=profile.size,
            max_group_size=profile.max_group_size,
            counts_members=profile.HasField("sum_of_members"),
            max_member_weight=profile.sum_of_members.max_member_weight,
            actions=usable,
        )
    return mapped


@dataclass(frozen=True, kw_only=True)
class TableResources:
    """What tables of a P4Info refer to."""

    profiles: dict[int, Profile]
    """By id."""
    direct_meters: dict[int, Meter]
    """By the id of their table."""


def map_tables(
    info: p4i.P4Info,
    program: Program,
    resources: TableResources,
    translation: Translation,
    problems: list[str],
    *,
    warnings: list[str],
) -> dict[int, Table]:
    """Return the tables by id."""
    actions = {action.preamble.id: action for action in info.actions}
    json_tables = _json_tables(program)
    mapped: dict[int, Table] = {}
    for table in info.tables:
        name = table.preamble.name
        model = find_named(program.tables, name)
        if model is None:
            problems.append(f"table {name} is not in the JSON")
            continue
        profile = _check_features(table, json_tables[name], resources.profiles, problems)
        fields = _map_key(table, model, translation, problems, warnings)
        usable = _map_actions(table, actions, model, translation, problems)
        match_types = {item.match_type for item in fields}
        mapped[table.preamble.id] = Table(
            id=table.preamble.id,
            name=name,
            position=model.position,
            fields=fields,
            actions=usable,
            actions_by_position={action.position: action for action in usable.values()},
            needs_priority=bool(match_types & _PRIORITY_MATCHES),
            is_all_exact=match_types <= {p4i.MatchField.EXACT},
            is_const=table.is_const_table,
            # Section 9.1.3: the default entry of an indirect table is constant.
            is_default_const=table.const_default_action_id != 0 or profile is not None,
            has_counter=any(
                item >> 24 == p4i.P4Ids.DIRECT_COUNTER for item in table.direct_resource_ids
            ),
            meter=resources.direct_meters.get(table.preamble.id),
            has_idle_timeout=table.idle_timeout_behavior != p4i.Table.NO_TIMEOUT,
            profile=profile,
            max_size=model.max_size,
            program=model,
            widths=tuple(item.width for item in fields),
        )
    return mapped


def _check_features(
    table: p4i.Table, json_table: Json, profiles: dict[int, Profile], problems: list[str]
) -> Profile | None:
    name = table.preamble.name
    profile: Profile | None = None
    if table.implementation_id:
        profile = profiles.get(table.implementation_id)
        if profile is None:
            problems.append(f"table {name}: no action profile {table.implementation_id} in P4Info")
    declared: Any = json_table.get("action_profile")
    if (profile.name if profile else None) != declared:
        problems.append(
            f"table {name}: implementation {profile.name if profile else None} in P4Info, "
            f"{declared} in the JSON"
        )
    has_timeout = table.idle_timeout_behavior != p4i.Table.NO_TIMEOUT
    if has_timeout and not json_table.get("support_timeout"):
        problems.append(f"table {name}: idle timeouts in P4Info, none in the JSON")
    return profile


def check_width(where: str, width: int, actual: int, translated: bool, problems: list[str]) -> int:
    """Return the pipeline's width, which P4Info's may differ from only in a translated type.

    Numbers of `@p4runtime_translation` types are used unchanged; strings have no width.
    """
    if not translated and width != actual:
        problems.append(f"{where}: {width} bits but {actual} in the JSON")
    return actual


def _map_key(
    table: p4i.Table,
    model: ProgramTable,
    translation: Translation,
    problems: list[str],
    warnings: list[str],
) -> tuple[MatchField, ...]:
    name = table.preamble.name
    # Selector fields are part of the JSON's key in older compilers; they are not matched.
    columns = [column for column in model.key if column.kind != "selector"]
    if len(table.match_fields) != len(columns):
        problems.append(
            f"table {name}: {len(table.match_fields)} match fields in P4Info, "
            f"{len(columns)} in the JSON"
        )
        return ()
    fields: list[MatchField] = []
    for item, column in zip(table.match_fields, columns, strict=True):
        match_name = _MATCH_NAMES.get(item.match_type)
        json_type = "ternary" if column.kind == "optional" else column.kind
        where = f"table {name}, match field {item.name}"
        if item.name != column.name:
            problems.append(f"{where}: is {column.name} in the JSON")
        if match_name != json_type:
            problems.append(f"{where}: {match_name or item.match_type} but {json_type} in the JSON")
        translated = item.HasField("type_name")
        if item.bitwidth == 0 and not translated:
            # Values of type error have no width in P4; the JSON gives them one.
            warnings.append(f"{where}: no width in P4Info, {column.width} bits in the JSON")
            translated = True
        width = check_width(where, item.bitwidth, column.width, translated, problems)
        fields.append(
            MatchField(
                id=item.id,
                name=item.name,
                width=width,
                match_type=item.match_type,
                strings=translation.of(item.type_name.name),
            )
        )
    if len({item.id for item in fields}) != len(fields):
        problems.append(f"table {name}: two match fields with the same id")
    return tuple(fields)


def _map_actions(
    table: p4i.Table,
    actions: dict[int, p4i.Action],
    model: ProgramTable,
    translation: Translation,
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
        found = find_named(model.actions, name)
        if found is None:
            problems.append(f"{where} {name}: not an action of this table in the JSON")
            continue
        widths = [item.width for item in found.parameters]
        params = _map_params(f"{where} {name}", action.params, widths, translation, problems)
        if params is not None:
            mapped[action.preamble.id] = Action(
                id=action.preamble.id,
                name=name,
                position=found.position,
                params=params,
                scope=reference.scope,
            )
    return mapped


def _map_params(
    where: str,
    params: Sequence[p4i.Action.Param],
    actual: list[int],
    translation: Translation,
    problems: list[str],
) -> tuple[Param, ...] | None:
    widths = [item.bitwidth for item in params]
    if len(widths) != len(actual):
        problems.append(f"{where}: parameters of {widths} bits in P4Info, {actual} in the JSON")
        return None
    mapped: list[Param] = []
    for item, width in zip(params, actual, strict=True):
        named = f"{where}, parameter {item.name}"
        check_width(named, item.bitwidth, width, item.HasField("type_name"), problems)
        strings = translation.of(item.type_name.name)
        mapped.append(Param(id=item.id, name=item.name, width=width, strings=strings))
    return tuple(mapped)
