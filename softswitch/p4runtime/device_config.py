# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the P4Runtime server needs of a BMv2 JSON: positions, widths, initial entries."""

import json
from dataclasses import dataclass
from typing import Any

from softswitch.p4runtime.status import ConfigError

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class JsonTable:
    """A table of either pipeline; `position` counts over both, ingress first."""

    position: int
    key: tuple[tuple[str, str, int], ...]
    """Name, match type and width in bits of each key field."""
    actions: dict[str, int]
    """Position in the JSON's actions, by name: p4c copies an action for each table."""
    max_size: int
    default_action: int
    """Position of the default action; -1 where the table has none."""
    default_params: bytes
    entries: tuple[Json, ...]
    """Initial entries as in the JSON."""


@dataclass(frozen=True, kw_only=True)
class JsonArray:
    """A counter or register array."""

    position: int
    size: int
    width: int
    is_direct: bool


@dataclass(frozen=True, kw_only=True)
class DeviceConfig:
    """The parts of a BMv2 JSON that have names in P4Info."""

    tables: dict[str, JsonTable]
    action_names: tuple[str, ...]
    action_ids: dict[int, int]
    """JSON id to position."""
    action_widths: tuple[tuple[int, ...], ...]
    """Widths in bits of each action's parameters, by position."""
    counters: dict[str, JsonArray]
    registers: dict[str, JsonArray]


def parse_device_config(blob: bytes) -> DeviceConfig:
    """Read a BMv2 JSON; ConfigError says what is missing or malformed."""
    try:
        document = json.loads(blob)
        return _parse(document)
    except ValueError as exc:
        raise ConfigError(f"p4_device_config is not a BMv2 JSON: {exc}") from exc
    except (KeyError, TypeError, AttributeError, IndexError) as exc:
        raise ConfigError(
            f"p4_device_config is not a BMv2 JSON as p4c writes it: {type(exc).__name__} {exc}"
        ) from exc


def _parse(document: Json) -> DeviceConfig:
    actions: list[Json] = document["actions"]
    ids = {int(action["id"]): position for position, action in enumerate(actions)}
    widths = tuple(
        tuple(int(parameter["bitwidth"]) for parameter in action["runtime_data"])
        for action in actions
    )
    field_widths = _field_widths(document)
    tables: dict[str, JsonTable] = {}
    for pipeline in document["pipelines"]:
        for table in pipeline["tables"]:
            tables[table["name"]] = _parse_table(table, len(tables), field_widths, ids, widths)
    return DeviceConfig(
        tables=tables,
        action_names=tuple(str(action["name"]) for action in actions),
        action_ids=ids,
        action_widths=widths,
        counters=_parse_arrays(document.get("counter_arrays") or []),
        registers=_parse_arrays(document.get("register_arrays") or []),
    )


def _field_widths(document: Json) -> dict[tuple[str, str], int]:
    fields_of_type: dict[str, list[list[Any]]] = {
        header_type["name"]: header_type["fields"] for header_type in document["header_types"]
    }
    widths: dict[tuple[str, str], int] = {}
    for header in document["headers"]:
        widths[header["name"], "$valid$"] = 1
        for name, width, *_ in fields_of_type[header["header_type"]]:
            if isinstance(width, int):  # "*" is a varbit, which no key may hold
                widths[header["name"], name] = width
    return widths


def _parse_table(
    table: Json,
    position: int,
    field_widths: dict[tuple[str, str], int],
    ids: dict[int, int],
    widths: tuple[tuple[int, ...], ...],
) -> JsonTable:
    key: list[tuple[str, str, int]] = []
    for element in table["key"]:
        target = element["target"]
        is_validity = element["match_type"] == "valid"
        width = 1 if is_validity else field_widths[target[0], target[1]]
        key.append((element.get("name") or ".".join(target), element["match_type"], width))
    default_action, default_params = -1, b""
    default: Json | None = table.get("default_entry")
    if default is not None:
        default_action = ids[default["action_id"]]
        default_params = pack_params(default["action_data"], widths[default_action])
    return JsonTable(
        position=position,
        key=tuple(key),
        actions={
            name: ids[action_id]
            for name, action_id in zip(table["actions"], table["action_ids"], strict=True)
        },
        max_size=int(table["max_size"]),
        default_action=default_action,
        default_params=default_params,
        entries=tuple(table.get("entries") or ()),
    )


def pack_params(data: list[str], widths: tuple[int, ...]) -> bytes:
    """Pack action data of the JSON ("0x.." per parameter) as the pipeline takes it."""
    return b"".join(
        int(value, 16).to_bytes((width + 7) // 8, "big")
        for value, width in zip(data, widths, strict=True)
    )


def _parse_arrays(arrays: list[Json]) -> dict[str, JsonArray]:
    return {
        array["name"]: JsonArray(
            position=position,
            size=int(array.get("size") or 0),
            width=int(array.get("bitwidth") or 0),
            is_direct=bool(array.get("is_direct")),
        )
        for position, array in enumerate(arrays)
    }
