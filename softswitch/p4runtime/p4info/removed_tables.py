# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables that p4c described in the P4Info before a later pass removed them from the program.

p4c writes P4Info in its front end. It describes tables that no packet can reach. The JSON
contains neither these tables nor the counters, meters and action profiles that only they use.
"""

from finsy.proto import p4i

from ...program.model import Program


def find_removed(info: p4i.P4Info, program: Program) -> dict[int, str]:
    """Return, by id, the names of tables that are not in the JSON; none if the two do not match.

    A JSON with a table of the P4 source that is not in the P4Info was compiled from another source.
    Tables that the compiler made itself have names without a dot.
    """
    stated = {table.preamble.name for table in info.tables}
    present = {table.name for table in program.tables}
    if any("." in name for name in present - stated):
        return {}
    return {
        table.preamble.id: table.preamble.name
        for table in info.tables
        if table.preamble.name not in present
    }


def without_tables(info: p4i.P4Info, removed: dict[int, str]) -> p4i.P4Info:
    """Return a P4Info without some tables, and without the objects that only they use."""
    if not removed:
        return info
    kept = p4i.P4Info()
    kept.CopyFrom(info)
    for items in (kept.tables, kept.direct_counters, kept.direct_meters, kept.action_profiles):
        del items[:]
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
        if not item.table_ids or not removed.keys() >= set(item.table_ids)
    )
    return kept
