# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Objects that p4c described in the P4Info before a later pass removed them from the program.

p4c writes P4Info in its front end. It describes tables that no packet can reach, action profiles
that no table uses, and digests that no packet can cause. The JSON contains none of these, nor the
counters, meters and action profiles that only removed tables use.
"""

from collections.abc import Sequence

from finsy.proto import p4i

from ...program.model import Json, Program


def find_removed(info: p4i.P4Info, program: Program) -> dict[int, str]:
    """Return, by id, the kinds and names of tables, unused action profiles and digests that are
    not in the JSON.

    A JSON with an object that is not in the P4Info was compiled from another source: then no object
    of that kind counts as removed. Tables that the compiler made itself have names without a dot.
    """
    pipelines: list[Json] = program.json.get("pipelines", [])
    tables = {table.name for table in program.tables if "." in table.name}
    profiles = {item["name"] for part in pipelines for item in part.get("action_profiles", ())}
    digests = {item["name"] for item in program.json.get("learn_lists", ())}
    unused = [item.preamble for item in info.action_profiles if not item.table_ids]
    return {
        **_missing("table", [item.preamble for item in info.tables], tables),
        **_missing("action profile", unused, profiles & {item.name for item in unused}),
        **_missing("digest", [item.preamble for item in info.digests], digests),
    }


def _missing(kind: str, stated: Sequence[p4i.Preamble], present: set[str]) -> dict[int, str]:
    if present - {item.name for item in stated}:
        return {}
    return {item.id: f"{kind} {item.name}" for item in stated if item.name not in present}


def without_removed(info: p4i.P4Info, removed: dict[int, str]) -> p4i.P4Info:
    """Return a P4Info without removed objects, and without those that only they use."""
    if not removed:
        return info
    kept = p4i.P4Info()
    kept.CopyFrom(info)
    for items in (kept.tables, kept.direct_counters, kept.direct_meters, kept.action_profiles):
        del items[:]
    del kept.digests[:]
    kept.digests.extend(item for item in info.digests if item.preamble.id not in removed)
    kept.tables.extend(item for item in info.tables if item.preamble.id not in removed)
    kept.direct_counters.extend(
        item for item in info.direct_counters if item.direct_table_id not in removed
    )
    kept.direct_meters.extend(
        item for item in info.direct_meters if item.direct_table_id not in removed
    )
    kept.action_profiles.extend(
        item
        for item in info.action_profiles
        if item.preamble.id not in removed
        and (not item.table_ids or not removed.keys() >= set(item.table_ids))
    )
    return kept
