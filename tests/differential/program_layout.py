# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the generators need of a program's JSON: header layouts, parser states, constants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
UNSPECIFIED_FIELDS = (
    "ingress_global_timestamp",
    "egress_global_timestamp",
    "enq_timestamp",
    "enq_qdepth",
    "deq_timedelta",
    "deq_qdepth",
)
"""Times and queue depths: two switches never agree on them."""
ARRAY_PRIMITIVES = ("count", "execute_meter", "register_read", "register_write")
UNSPECIFIED_PRIMITIVES = ("modify_field_rng_uniform",)


@dataclass(frozen=True)
class HeaderLayout:
    """Fields of a header type in order: (name, bits); bits None for the varbit field."""

    fields: tuple[tuple[str, int | None], ...]


class ProgramLayout:
    """A program's JSON by name."""

    def __init__(self, path: Path) -> None:
        self.json: Json = json.loads(path.read_text(encoding="utf-8"))
        types = {
            item["name"]: HeaderLayout(
                tuple((f[0], None if f[1] == "*" else f[1]) for f in item["fields"])
            )
            for item in self.json["header_types"]
        }
        self.headers: dict[str, HeaderLayout] = {
            item["name"]: types[item["header_type"]] for item in self.json["headers"]
        }
        self.stacks: dict[str, list[str]] = {}
        by_id = {item["id"]: item["name"] for item in self.json["headers"]}
        for stack in self.json["header_stacks"]:
            self.stacks[stack["name"]] = [by_id[i] for i in stack["header_ids"]]
        self.union_stacks = self._union_stacks(by_id)
        parser = self.json["parsers"][0]
        self.init_state: str | None = parser["init_state"]
        self.states: dict[str, Json] = {item["name"]: item for item in parser["parse_states"]}
        self.indices = set(_indices(self.json["actions"]))
        """Header and field of each index into an array."""
        self.constants = sorted({value for value in _constants(self.json) if 0 < value < 1 << 128})

    def _union_stacks(self, by_id: dict[int, str]) -> dict[str, list[dict[str, str]]]:
        types = {item["name"]: item["headers"] for item in self.json.get("header_union_types", [])}
        unions: dict[int, dict[str, str]] = {}
        for union in self.json.get("header_unions", []):
            members = [member[0] for member in types[union["union_type"]]]
            unions[union["id"]] = {
                member: by_id[i] for member, i in zip(members, union["header_ids"], strict=True)
            }
        return {
            item["name"]: [unions[i] for i in item["header_union_ids"]]
            for item in self.json.get("header_union_stacks", [])
        }

    @property
    def is_unspecified(self) -> bool:
        """Whether the frames that leave depend on time, queues or random numbers."""
        text = json.dumps([self.json["actions"], self.json["pipelines"], self.json["checksums"]])
        names = (*UNSPECIFIED_FIELDS, *UNSPECIFIED_PRIMITIVES)
        return any(f'"{name}"' in text for name in names)

    @property
    def has_state(self) -> bool:
        """Whether one packet can change what happens to the next."""
        return bool(self.json["register_arrays"] or self.json["meter_arrays"])

    @property
    def has_multicast(self) -> bool:
        """Whether the program may replicate packets."""
        return '"mcast_grp"' in json.dumps([self.json["actions"], self.json["pipelines"]])

    def has_primitive(self, prefix: str) -> bool:
        """Return whether an action or control uses a primitive whose name has this prefix."""
        return f'"op": "{prefix}' in json.dumps([self.json["actions"], self.json["pipelines"]])

    def key_widths(self, table: str) -> list[int]:
        """Return the bits of a table's key parts."""
        (targets,) = (found for name, found in self.key_targets().items() if name == table)
        return [dict(self.headers[header].fields).get(field) or 1 for header, field in targets]

    def parameter_widths(self, action: str) -> list[int]:
        """Return the bits of an action's parameters."""
        found = next(item for item in self.json["actions"] if item["name"] == action)
        return [item["bitwidth"] for item in found["runtime_data"]]

    def key_targets(self) -> dict[str, list[tuple[str, str]]]:
        """Return header and field of each key part, by table."""
        return {
            table["name"]: [tuple(part["target"]) for part in table["key"]]
            for pipeline in self.json["pipelines"]
            for table in pipeline["tables"]
        }


def _indices(actions: list[Json]) -> Iterator[tuple[str, str]]:
    """Yield the fields among the parameters of operations on arrays."""
    for action in actions:
        for primitive in action["primitives"]:
            if primitive["op"] in ARRAY_PRIMITIVES:
                for parameter in primitive["parameters"]:
                    if parameter["type"] == "field":
                        yield parameter["value"][0], parameter["value"][1]


def _constants(node: Any) -> Iterator[int]:
    if isinstance(node, dict):
        if node.get("type") == "hexstr" and isinstance(node.get("value"), str):
            yield int(node["value"], 16)
        for value in node.values():
            yield from _constants(value)
    elif isinstance(node, list):
        for value in node:
            yield from _constants(value)
