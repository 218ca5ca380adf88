# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the P4Info that the controller's tests hand to a switch without a data plane."""

from __future__ import annotations

from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

EXACT, LPM = p4i.MatchField.EXACT, p4i.MatchField.LPM

ACTIONS = {
    "admit_root": {
        "generation": 32,
        "slot_base": 32,
        "slot_count": 32,
        "children_bitmap": 32,
        "quorum": 16,
        "num_workers": 16,
        "multicast_group_id": 16,
        "allow_partial": 1,
        "level": 16,
        "max_priority": 3,
    },
    "admit_inner": {
        "generation": 32,
        "slot_base": 32,
        "slot_count": 32,
        "children_bitmap": 32,
        "multicast_group_id": 16,
        "allow_partial": 1,
        "level": 16,
        "max_priority": 3,
        "parent_port": 9,
        "parent_address": 32,
        "child_id": 8,
        "child_bitmap": 32,
    },
    "admit_worker": {"worker_bit": 32, "contributor_mask": 32, "max_contributors": 16},
    "admit_server": {},
    "place_row": {
        "slot": 32,
        "value_copy": 32,
        "epoch": 32,
        "exponent": 8,
        "server_group_id": 16,
        "copies_group_id": 16,
    },
    "set_worker_address": {"mac": 48, "address": 32, "udp_port": 16},
    "forward": {"port": 9, "mac": 48},
    "drop_packet": {},
    "count_outcome": {},
    "NoAction": {},
}
TABLES = {
    "job": ({"job_id": (16, EXACT)}, ["admit_root", "admit_inner", "NoAction"]),
    "worker": (
        {
            "job_id": (16, EXACT),
            "worker_id": (8, EXACT),
            "ingress_port": (9, EXACT),
            "source_address": (32, EXACT),
        },
        ["admit_worker", "admit_server", "NoAction"],
    ),
    "worker_address": (
        {"job_id": (16, EXACT), "replica_id": (16, EXACT)},
        ["set_worker_address", "NoAction"],
    ),
    "hot_row": ({"job_id": (16, EXACT), "row": (32, EXACT)}, ["place_row", "NoAction"]),
    "ipv4_forward": ({"dst_address": (32, LPM)}, ["forward", "drop_packet"]),
    "outcome": ({"job_id": (16, EXACT), "outcome": (8, EXACT)}, ["count_outcome", "NoAction"]),
}
_DIRECT_COUNTER_ID = 0x13000001


def build_p4info(name: str = "switchfold", version: str = "2.32") -> p4i.P4Info:
    p4info = p4i.P4Info()
    p4info.pkg_info.name, p4info.pkg_info.version, p4info.pkg_info.arch = name, version, "v1model"
    action_ids: dict[str, int] = {}
    for index, (action, params) in enumerate(ACTIONS.items(), 1):
        action_ids[action] = 0x01000000 + index
        message = p4info.actions.add()
        message.preamble.id, message.preamble.alias = action_ids[action], action
        message.preamble.name = f"ingress.{action}"
        for number, (param, width) in enumerate(params.items(), 1):
            message.params.add(id=number, name=param, bitwidth=width)
    for index, (table, (fields, actions)) in enumerate(TABLES.items(), 1):
        message = p4info.tables.add(size=1024)
        message.preamble.id, message.preamble.alias = 0x02000000 + index, table
        message.preamble.name = f"ingress.{table}"
        for number, (field, (width, kind)) in enumerate(fields.items(), 1):
            message.match_fields.add(id=number, name=field, bitwidth=width, match_type=kind)
        for action in actions:
            message.action_refs.add(id=action_ids[action])
        if table == "outcome":
            message.direct_resource_ids.append(_DIRECT_COUNTER_ID)
            counter = p4info.direct_counters.add(direct_table_id=message.preamble.id)
            counter.preamble.id, counter.preamble.alias = _DIRECT_COUNTER_ID, "job_outcomes"
            counter.preamble.name = "ingress.job_outcomes"
            counter.spec.unit = p4i.CounterSpec.BOTH
    for index, (counter_name, size) in enumerate(
        {"outcomes": 64, "ordinary_outcomes": 8, "port_in": 512, "port_out": 512}.items(), 1
    ):
        counter = p4info.counters.add(size=size)
        counter.preamble.id, counter.preamble.alias = 0x12000000 + index, counter_name
        counter.preamble.name = f"ingress.{counter_name}"
        counter.spec.unit = p4i.CounterSpec.BOTH
    for index, (header, port) in enumerate(
        {"packet_in": "ingress_port", "packet_out": "egress_port"}.items(), 1
    ):
        metadata = p4info.controller_packet_metadata.add()
        metadata.preamble.id, metadata.preamble.name = 0x04000000 + index, header
        metadata.preamble.alias = header
        metadata.metadata.add(id=1, name=port, bitwidth=9)
        metadata.metadata.add(id=2, name="_pad", bitwidth=7)
    return p4info


def write_program(folder: Path) -> Path:
    """Write artefacts of the narrow variant into `folder` and return it."""
    text = text_format.MessageToString(build_p4info())
    (folder / "switchfold_narrow.p4info.txtpb").write_text(text, "utf-8")
    (folder / "switchfold_narrow.json").write_text("{}", "utf-8")
    return folder
