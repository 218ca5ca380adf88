# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Standard metadata: what the runtime fills in, and what it acts on."""

from collections.abc import Iterator
from typing import Any

from ..program.model import Json, Program
from .context import STANDARD, Context

_START = (
    "ingress_port",
    "packet_length",
    "instance_type",
    "ingress_global_timestamp",
)
_EGRESS = (
    "instance_type",
    "packet_length",
    "egress_port",
    "egress_rid",
    "egress_global_timestamp",
    "enq_timestamp",
    "enq_qdepth",
    "deq_timedelta",
    "deq_qdepth",
)
REQUESTS = {
    "clone_session": ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"),
    "resubmit_fields": ("resubmit",),
    "recirculate_fields": ("recirculate",),
    "truncate_bytes": ("truncate",),
}
"""Members of intrinsic_t that stand for requests, and the primitives that set them.

PIPELINE_NONE stands for no request. The phv holds the members plus 1, so that a cleared phv
requests nothing.
"""
_LISTS = {"clone_session": "clone_fields"}


def requests(context: Context) -> list[str]:
    """Members of the phv for what the program can request from the replication engine."""
    used = primitive_names(context.program.json)
    names: list[str] = []
    for name, primitives in REQUESTS.items():
        if used.intersection(primitives):
            names.append(name)
            if name in _LISTS:
                names.append(_LISTS[name])
    if "generate_digest" in used:
        names.append("digest_list")
    return names


def counts_length(program: Program) -> bool:
    """Whether the program reads packet_length, which changes when headers become valid."""
    return any(
        node.get("type") == "field" and node.get("value") == [STANDARD, "packet_length"]
        for node in _nodes(program.json)
    ) or any(
        part.target == (STANDARD, "packet_length") for table in program.tables for part in table.key
    )


def primitive_names(json: Json) -> frozenset[str]:
    """Names of the primitives that actions, parser and deparser of a program use."""
    return frozenset(
        node["op"]
        for key in ("actions", "parsers", "deparsers")
        for node in _nodes(json.get(key, []))
        if isinstance(node.get("op"), str) and "parameters" in node
    )


def uses_time(program: Program) -> bool:
    """Whether meters or idle timeouts need the time at which a packet arrived."""
    return bool(program.meters) or any(table.has_timeout for table in program.tables)


def _nodes(root: Any) -> Iterator[Json]:
    waiting: list[Any] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            entry: Json = item  # pyright: ignore[reportUnknownVariableType]
            yield entry
            waiting += entry.values()
        elif isinstance(item, list):
            waiting += item  # pyright: ignore[reportUnknownArgumentType]


class MetadataWriter:
    """Writes what the runtime and the replication engine need of the metadata."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.requests = requests(context)

    def members(self) -> list[str]:
        """Members of the phv."""
        text = [f"uint32_t {name};" for name in self.requests]
        if uses_time(self.context.program):
            text.append("uint64_t now_us; // ingress time stamp, for meters and idle entries")
        if self.context.counts_length:
            text.append("uint32_t length_change; // bytes that headers made valid have added")
        return text

    def emit(self) -> str:
        """All functions."""
        return "\n".join([*self._start(), *self._start_egress(), *self._export()])

    def _fill(self, name: str, value: str) -> str | None:
        if not self.context.has_standard(name):
            return None
        storage = self.context.layout.fields[STANDARD, name]
        mask = f"low_mask({storage.field.width})"
        reference = self.context.standard(name)
        return f"{reference} = ({storage.type})((uint64_t)({value}) & {mask});"

    def _start(self) -> list[str]:
        return [
            "static void p4_start_ingress(phv_t *p, const packet_info_t *info) {",
            "(void)p; (void)info;",
            *filter(None, (self._fill(name, f"info->{name}") for name in _START)),
            *self._time(),
            "}",
            "",
        ]

    def _time(self) -> list[str]:
        is_used = uses_time(self.context.program)
        return ["p->now_us = info->ingress_global_timestamp;"] if is_used else []

    def _start_egress(self) -> list[str]:
        text = [
            "static void p4_start_egress(pipeline_t *s, phv_t *p, const packet_info_t *info) {",
            "(void)s; (void)p; (void)info;",
            *self._time(),
        ]
        for name in _EGRESS:
            value = f"info->{name}"
            if name == "packet_length" and self.context.counts_length:
                value += " + p->length_change"
            line = self._fill(name, value)
            if line is None:
                continue
            if name == "egress_rid":  # simple_switch sets it for replicas and clones only
                line = f"if (info->instance_type != INSTANCE_NORMAL) {{ {line} }}"
            text.append(line)
        if (line := self._fill("egress_spec", "s->drop_port + 1")) is not None:
            text.append(line)
        # A replica or clone has requested nothing yet; the packet itself keeps its requests.
        kept = [name for name in self.requests if name.startswith(("truncate", "recirculate"))]
        if kept:
            cleared = " ".join(f"p->{name} = 0;" for name in kept)
            text.append(f"if (info->instance_type != INSTANCE_NORMAL) {{ {cleared} }}")
        text += [f"p->{name} = 0;" for name in self.requests if name not in kept]
        return [*text, "}", ""]

    def _export(self) -> list[str]:
        values = dict.fromkeys(REQUESTS, "PIPELINE_NONE")
        values |= {name: f"p->{name} - 1" for name in REQUESTS if name in self.requests}
        for name in ("clone_fields", "digest_list"):
            values[name] = f"p->{name}" if name in self.requests else "0"
        for name in ("egress_spec", "mcast_grp", "priority"):
            has = self.context.has_standard(name)
            values[name] = self.context.standard(name) if has else "0"
        return [
            "static void p4_export(const phv_t *p, intrinsic_t *out) {",
            "(void)p;",
            *(f"out->{name} = {value};" for name, value in values.items()),
            "}",
            "",
        ]
