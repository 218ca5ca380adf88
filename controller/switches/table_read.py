# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads one table of a running switch, with the counters of its entries.

Any P4Runtime client may read; no primary role is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finsy import P4Client, P4ClientError, P4Schema, P4TableEntry
from finsy.proto import p4i, p4r

from ..config import SwitchConfig
from ..errors import UnknownNameError
from .program import describe
from .switch_call import refusal, switch_credentials


@dataclass(frozen=True, kw_only=True)
class CountedEntry:
    """One entry as text, and what it has counted."""

    match: Mapping[str, str]
    """Text of each key by its name, "*" where it matches anything."""
    priority: int
    action: str
    packets: int | None
    """None: the table has no direct counter, or one that counts no packets."""
    bytes: int | None


@dataclass(frozen=True, kw_only=True)
class TableContents:
    """The entries of one table, in the switch's order."""

    keys: tuple[str, ...]
    """Names of the keys, in the program's order."""
    entries: tuple[CountedEntry, ...]


async def read_table(config: SwitchConfig, info: p4i.P4Info, name: str) -> TableContents:
    """Return what a table of a switch with this program holds.

    Raises UnknownNameError if the program has no such table, and SwitchError.
    """
    schema = P4Schema(info)
    known = {table.alias: table for table in schema.tables}
    if name not in known:
        raise UnknownNameError(
            f"{describe(info)} on switch {config.name} has no table {name}; it has"
            f" {', '.join(sorted(known))}"
        )
    table = known[name]
    query = p4r.TableEntry(table_id=table.id)
    if table.direct_counter is not None:
        query.counter_data.SetInParent()
    request = p4r.ReadRequest(device_id=config.device_id, entities=[p4r.Entity(table_entry=query)])
    entries: list[CountedEntry] = []
    client = P4Client(config.address, switch_credentials(config), wait_for_ready=False)
    try:
        async with client:
            async for response in client.request_iter(request):
                entries += [_counted(entity, schema) for entity in response.entities]
    except P4ClientError as exc:
        raise refusal(config, f"a read of table {name}", exc) from exc
    keys = tuple(field.alias for field in table.match_fields)
    return TableContents(keys=keys, entries=tuple(entries))


def _counted(entity: p4r.Entity, schema: P4Schema) -> CountedEntry:
    entry = P4TableEntry.decode(entity, schema)
    counts = entry.counter_data
    return CountedEntry(
        match=entry.match_dict(schema, wildcard="*"),
        priority=entry.priority,
        action=entry.action_str(schema),
        packets=None if counts is None else counts.packet_count,
        bytes=None if counts is None else counts.byte_count,
    )
