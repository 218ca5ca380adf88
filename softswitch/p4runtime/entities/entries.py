# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads files of table entries and groups that a switch starts with.

The suffix decides the form. A .json file has the form of the P4 tutorials (table_entries,
multicast_group_entries, clone_session_entries). A .txtpb file is a P4Runtime WriteRequest as text.
Any other file has a command per line, as simple_switch_CLI knows them:

    table_add TABLE ACTION KEY ... => PARAMETER ... [PRIORITY]
    table_set_default TABLE ACTION PARAMETER ...
    multicast_group ID PORT[:REPLICA] ...
    clone_session ID PORT ...
    register_write NAME INDEX VALUE
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from finsy import (
    P4CloneSessionEntry,
    P4MulticastGroupEntry,
    P4RegisterEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4schema import P4MatchType, P4Table
from finsy.proto import p4i, p4r, rpc_code
from google.protobuf import text_format

from ...errors import SoftswitchError
from ..service.pipeline_config import Pipeline
from ..writes.write import write_updates

_INSERT, _MODIFY = p4r.Update.INSERT, p4r.Update.MODIFY


class EntriesError(SoftswitchError):
    """A file of entries cannot be read or does not fit the program; names the line or entry."""


def load_entries(pipeline: Pipeline, path: Path) -> int:
    """Write a file's entries to a pipeline; return how many. Raises EntriesError at a bad one.

    An entry that the program has from the start is replaced by the file's.
    """
    info = pipeline.config.p4info
    started = {table.preamble.id for table in info.tables if table.has_initial_entries}
    updates = list(read_entries(path, info))
    for where, update in updates:
        error = write_updates(pipeline, p4r.WriteRequest(updates=[update]))[0]
        is_there = error is not None and error.code == rpc_code.ALREADY_EXISTS
        if is_there and update.entity.table_entry.table_id in started:
            change = p4r.Update(type=_MODIFY, entity=update.entity)
            error = write_updates(pipeline, p4r.WriteRequest(updates=[change]))[0]
        if error is not None:
            raise EntriesError(f"{path}: {where}: {error}")
    return len(updates)


def read_entries(path: Path, p4info: p4i.P4Info) -> Iterator[tuple[str, p4r.Update]]:
    """Yield a file's updates, each with its place in the file; raises EntriesError."""
    schema = P4Schema(p4info)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".txtpb":
        try:
            request = text_format.Parse(text, p4r.WriteRequest())
        except text_format.ParseError as exc:
            raise EntriesError(f"{path}: not a WriteRequest: {exc}") from exc
        for number, update in enumerate(request.updates, 1):
            yield f"update {number}", update
        return
    items = _json_items(text, path) if path.suffix == ".json" else _command_items(text, path)
    for where, item in items:
        try:
            yield where, _update(schema, item)
        except (KeyError, TypeError, ValueError, IndexError) as exc:
            reason = exc.args[0] if exc.args else exc
            # The text of a KeyError is only the key.
            kind = "nothing named " if isinstance(exc, KeyError) else ""
            raise EntriesError(f"{path}: {where}: {kind}{reason}") from exc


def _update(schema: P4Schema, item: dict[str, Any]) -> p4r.Update:
    kind = _INSERT
    if "table" in item:
        if item.get("default_action"):
            kind = _MODIFY
        entity = _table_entry(schema, item)
    elif "multicast_group_id" in item:
        entity = P4MulticastGroupEntry(
            int(item["multicast_group_id"]), replicas=_replicas(item["replicas"])
        )
    elif "clone_session_id" in item:
        entity = P4CloneSessionEntry(
            int(item["clone_session_id"]), replicas=_replicas(item["replicas"])
        )
    else:
        kind = _MODIFY
        entity = P4RegisterEntry(
            item["register"], index=_number(item["index"]), data=_number(item["value"])
        )
    return p4r.Update(type=kind, entity=entity.encode(schema))


def _table_entry(schema: P4Schema, item: dict[str, Any]) -> P4TableEntry:
    table = schema.tables[item["table"]]
    name = item["action_name"]
    known = schema.actions[name]
    given = item.get("action_params", {})
    priority = int(item.get("priority", 0))
    if not isinstance(given, dict):
        names = [parameter.name for parameter in known.params]
        if len(given) == len(names) + 1 and _is_ranked(table):
            *given, last = given
            priority = int(last)
        if len(names) != len(given):
            raise ValueError(f"action {name} takes {len(names)} parameters, {len(given)} given")
        given = dict(zip(names, given, strict=True))
    action = P4TableAction(name, **given)
    if item.get("default_action"):
        return P4TableEntry(item["table"], is_default_action=True, action=action)
    match: dict[str, Any] = item.get("match", {})
    if "keys" in item:
        fields = [field.alias for field in table.match_fields]
        if len(fields) != len(item["keys"]):
            raise ValueError(f"{item['table']} has {len(fields)} keys, {len(item['keys'])} given")
        match = dict(zip(fields, item["keys"], strict=True))
    values: dict[str, Any] = {}
    for key, value in match.items():
        field = table.match_fields[key]
        encoded = _key(value, is_lpm=field.match_type == P4MatchType.LPM)
        if encoded is not None:
            values[field.alias] = encoded
    return P4TableEntry(item["table"], match=P4TableMatch(values), action=action, priority=priority)


def _is_ranked(table: P4Table) -> bool:
    ranked = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)
    return any(field.match_type in ranked for field in table.match_fields)


def _key(value: Any, *, is_lpm: bool) -> Any:
    """Turn a key of the file into a value that finsy encodes; None matches anything."""
    if isinstance(value, list):
        first, second = value  # pyright: ignore[reportUnknownVariableType]
        return f"{first}/{second}" if is_lpm else (first, second)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return value
    if value in {"*", "_"}:
        return None
    for mark in ("&&&", "->"):
        if mark in value:
            first, _, second = value.partition(mark)
            return first, second
    return value


def _number(text: Any) -> int:
    return int(text, 0) if isinstance(text, str) else int(text)


def _replicas(items: Sequence[Any]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for item in items:
        if isinstance(item, dict):
            result.append((int(item["egress_port"]), int(item.get("instance", 0))))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        else:
            port, _, instance = str(item).partition(":")
            result.append((int(port), int(instance or 0)))
    return result


def _json_items(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as exc:
        raise EntriesError(f"{path}: not JSON: {exc}") from exc
    kinds = (
        "multicast_group_entries",
        "clone_session_entries",
        "table_entries",
        "register_entries",
    )
    if not isinstance(data, dict) or not any(kind in data for kind in kinds):
        raise EntriesError(f"{path}: has none of {', '.join(kinds)}")
    for kind in kinds:
        for number, item in enumerate(data.get(kind, []), 1):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
            yield f"{kind} {number}", item


def _command_items(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        where = f"line {number}"
        match words:
            case ["table_add", table, action, *rest] if "=>" in rest:
                at = rest.index("=>")
                yield where, _table_add(table, action, rest[:at], rest[at + 1 :])
            case ["table_set_default", table, action, *params]:
                item = {"table": table, "action_name": action, "action_params": params}
                yield where, {**item, "default_action": True}
            case ["multicast_group", group, *ports]:
                yield where, {"multicast_group_id": group, "replicas": ports}
            case ["clone_session", session, *ports]:
                yield where, {"clone_session_id": session, "replicas": ports}
            case ["register_write", register, index, value]:
                yield where, {"register": register, "index": index, "value": value}
            case _:
                raise EntriesError(
                    f"{path}: line {number}: {line.strip()!r} is none of: "
                    "table_add TABLE ACTION KEY ... => PARAMETER ... [PRIORITY], "
                    "table_set_default TABLE ACTION PARAMETER ..., "
                    "multicast_group ID PORT[:REPLICA] ..., clone_session ID PORT ..., "
                    "register_write NAME INDEX VALUE"
                )


def _table_add(table: str, action: str, keys: list[str], rest: list[str]) -> dict[str, Any]:
    return {"table": table, "action_name": action, "keys": keys, "action_params": rest}
