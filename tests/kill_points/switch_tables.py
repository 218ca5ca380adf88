# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch's tables and multicast groups hold, read with P4Runtime's messages alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

_TIMEOUT_S: Final = 120.0
"""As the longest wait of the campaign: only a switch that hangs reaches it."""

Key = tuple[int, ...]
"""The match of an entry: its fields in the order of P4Info; a prefix is two numbers."""
Action = tuple[str, dict[str, int]]
"""Name and parameters."""


@dataclass
class Tables:
    """Everything on one switch that a controller writes."""

    entries: dict[str, dict[Key, Action]] = field(default_factory=dict[str, dict[Key, Action]])
    """By table, without entries of the program itself."""
    groups: dict[int, set[tuple[int, int]]] = field(default_factory=dict[int, set[tuple[int, int]]])
    """(port, instance) of the replicas of each multicast group."""


class SwitchReader:
    """Reads a switch; needs no primary role."""

    def __init__(self, channel: Any, device_id: int, p4info: Path) -> None:
        self._stub: Any = p4r_grpc.P4RuntimeStub(channel)
        self._device_id = device_id
        info = text_format.Parse(p4info.read_text("utf-8"), p4i.P4Info())
        self._tables = {table.preamble.id: table for table in info.tables}
        self._actions = {action.preamble.id: action for action in info.actions}

    def read(self) -> Tables:
        """Return what the switch holds now."""
        request = p4r.ReadRequest(device_id=self._device_id)
        for table in self._tables.values():
            if not table.is_const_table:
                request.entities.add().table_entry.table_id = table.preamble.id
        request.entities.add().packet_replication_engine_entry.multicast_group_entry.SetInParent()
        tables = Tables(
            {t.preamble.alias: {} for t in self._tables.values() if not t.is_const_table}
        )
        for response in self._stub.Read(request, timeout=_TIMEOUT_S):
            for entity in response.entities:
                if entity.HasField("table_entry"):
                    self._add_entry(tables, entity.table_entry)
                else:
                    group = entity.packet_replication_engine_entry.multicast_group_entry
                    tables.groups[group.multicast_group_id] = {
                        (_port(replica), replica.instance) for replica in group.replicas
                    }
        return tables

    def _add_entry(self, tables: Tables, entry: p4r.TableEntry) -> None:
        if entry.is_default_action or entry.is_const:
            return
        table = self._tables[entry.table_id]
        fields = {match.field_id: match for match in entry.match}
        key: list[int] = []
        for field_ in table.match_fields:
            match = fields.get(field_.id)
            if field_.match_type == p4i.MatchField.LPM:
                key += [0, 0] if match is None else [_number(match.lpm.value), match.lpm.prefix_len]
            else:
                assert match is not None, f"{table.preamble.alias}: {entry}"
                key.append(_number(match.exact.value))
        done = entry.action.action
        action = self._actions[done.action_id]
        names = {param.id: param.name for param in action.params}
        params = {names[param.param_id]: _number(param.value) for param in done.params}
        tables.entries[table.preamble.alias][tuple(key)] = action.preamble.alias, params


def _number(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _port(replica: p4r.Replica) -> int:
    return int(getattr(replica, str(replica.WhichOneof("port_kind"))))
