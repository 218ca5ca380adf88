# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Maps P4Info ids to positions in the BMv2 JSON, and reports every mismatch of the two."""

from collections.abc import Iterable

from finsy.proto import p4i

from ...program.model import Program
from ..service.status import PipelineConfigError
from .p4info_externs import (
    map_counters,
    map_digests,
    map_headers,
    map_meters,
    map_registers,
    map_value_sets,
)
from .p4info_tables import TableResources, map_profiles, map_tables
from .removed_objects import find_removed, without_removed
from .schema import Schema
from .translation import Translation


def build_schema(info: p4i.P4Info, program: Program) -> Schema:
    """Map a P4Info onto a JSON; PipelineConfigError lists every difference that matters."""
    problems = _duplicates(info)
    removed = find_removed(info, program)
    warnings = [
        f"{label} is in the P4Info, not in the JSON: the compiler removed it, as the program never"
        " uses it; it is empty, and writes to it get NOT_FOUND"
        for label in removed.values()
    ]
    info = without_removed(info, removed)
    meters, direct_meters = map_meters(info, program, problems)
    translation = Translation(info.type_info)
    profiles = map_profiles(info, program, translation, problems)
    tables = map_tables(
        info,
        program,
        TableResources(profiles=profiles, direct_meters=direct_meters),
        translation,
        problems,
        warnings=warnings,
    )
    for counter in info.direct_counters:
        name = counter.preamble.name
        if all(item.name != name for item in program.counters):
            problems.append(f"direct counter {name} is not in the JSON")
    headers = map_headers(info, program, translation, problems)
    schema = Schema(
        tables=tables,
        profiles=profiles,
        counters=map_counters(info.counters, program, problems),
        registers=map_registers(info, program, problems),
        meters=meters,
        value_sets=map_value_sets(info, program, problems),
        digests=map_digests(info, program, problems),
        packet_in=headers.get("packet_in"),
        packet_out=headers.get("packet_out"),
        action_widths=tuple(
            tuple(item.width for item in action.parameters) for action in program.actions
        ),
        removed=removed,
        warnings=tuple(warnings),
    )
    if problems:
        raise PipelineConfigError(
            "P4Info does not match p4_device_config; take both from one run of p4c-bm2-ss",
            problems,
        )
    return schema


def _duplicates(info: p4i.P4Info) -> list[str]:
    lists: tuple[Iterable[p4i.Table | p4i.Action | p4i.ActionProfile | p4i.Counter], ...] = (
        info.tables,
        info.actions,
        info.action_profiles,
        info.counters,
    )
    externs = (info.direct_counters, info.meters, info.direct_meters, info.registers)
    named = [item.preamble for items in lists for item in items]
    named += [item.preamble for items in externs for item in items]
    named += [item.preamble for items in (info.digests, info.value_sets) for item in items]
    seen: dict[int, str] = {}
    problems: list[str] = []
    for preamble in named:
        if preamble.id == 0:
            problems.append(f"{preamble.name}: has no id")
        elif preamble.id in seen:
            other = seen[preamble.id]
            problems.append(f"{preamble.name}: id {preamble.id} is that of {other} as well")
        seen[preamble.id] = preamble.name
    return problems
