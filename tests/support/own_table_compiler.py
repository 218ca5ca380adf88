# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in of p4c for one program: the narrow one with the table of examples/own_table.

It adds to the committed artefacts what p4c makes of that change, so that the tutorial's page runs
where there is no p4c. It refuses every other source. p4c itself compiles the page's program where
it is installed.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from finsy.proto import p4i
from google.protobuf import text_format

from switchfold.p4src.artefacts import artefacts, included_by
from switchfold.p4src.compile import COMPILER
from switchfold.p4src.own_program import copy_sources

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_table"
PROGRAM = "switchfold_narrow.p4"
SENDER = "SwitchfoldIngress.sender"
TABLE, COUNTER = f"{SENDER}.sender", f"{SENDER}.sender_packets"
ACCOUNT, REFUSE, PASS_BY = (f"{SENDER}.{name}" for name in ("account", "refuse", "pass_by"))
ACTIONS = {ACCOUNT: 0x01A00001, REFUSE: 0x01A00002, PASS_BY: 0x01A00003}
"""Ids of the P4Info; their first byte is the kind."""
TABLE_ID, COUNTER_ID = 0x02A00001, 0x13A00001
SENDER_LINES = (
    "direct_counter(CounterType.packets_and_bytes) sender_packets;",
    'hdr.ipv4.src_address: exact @name("source_address") @format(IPV4_ADDRESS);',
    "md.outcome = OUTCOME_FOREIGN_WORKER;",
    "@defaultonly pass_by;",
    "const default_action = pass_by();",
    "counters = sender_packets;",
    "size = 256;",
    "if (md.outcome == OUTCOME_NONE) {",
)
"""What the control must say, beside the names, for this to be its translation."""
NEXT_STAGE = ("worker_admission.p4", "md.outcome == OUTCOME_NONE")
"""Source of the condition before which the control acts."""


def check_sources(program: Path) -> None:
    """Exit unless these are the package's sources with the example's change."""
    with tempfile.TemporaryDirectory() as scratch:
        expected = Path(scratch) / "mine"
        copy_sources(expected)
        (expected / "bmv2" / "sender.p4").write_bytes((EXAMPLE / "sender.p4").read_bytes())
        patch = ["patch", "-s", "-d", str(expected), "-p1", "-i", str(EXAMPLE / "sender.diff")]
        subprocess.run(patch, check=True)
        for one, other in zip(
            included_by(program), included_by(expected / "bmv2" / PROGRAM), strict=True
        ):
            if one.read_bytes() != other.read_bytes():
                sys.exit(f"{one}: this stand-in of {COMPILER} compiles the tutorial's change alone")
    text = (EXAMPLE / "sender.p4").read_text("utf-8")
    missing = [line for line in SENDER_LINES if line not in text]
    if missing:
        sys.exit(f"sender.p4 no longer says {missing}: change {Path(__file__).name} with it")


def with_table(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return BMv2 JSON to which the control is added, in front of the worker's admission."""
    made = copy.deepcopy(pipeline)
    (ingress,) = (each for each in made["pipelines"] if each["name"] == "ingress")
    file, fragment = NEXT_STAGE
    after = next(
        each
        for each in ingress["conditionals"]
        if each["source_info"]["filename"].endswith(file)
        and each["source_info"]["source_fragment"] == fragment
    )
    condition = {
        "name": "node_sender",
        "id": 1 + max(each["id"] for side in made["pipelines"] for each in side["conditionals"]),
        "expression": copy.deepcopy(after["expression"]),
        "true_next": TABLE,
        "false_next": after["name"],
    }
    for each in ingress["conditionals"]:
        for branch in ("true_next", "false_next"):
            if each[branch] == after["name"]:
                each[branch] = condition["name"]
    for each in ingress["tables"]:
        if each["base_default_next"] == after["name"]:
            each["base_default_next"] = condition["name"]
        for action, follower in each["next_tables"].items():
            if follower == after["name"]:
                each["next_tables"][action] = condition["name"]
    ids = _add_actions(made)
    ingress["conditionals"].append(condition)
    ingress["tables"].append(
        {
            "name": TABLE,
            "id": 1 + max(each["id"] for side in made["pipelines"] for each in side["tables"]),
            "key": [
                {
                    "match_type": "exact",
                    "name": "source_address",
                    "target": ["ipv4", "src_address"],
                    "mask": None,
                }
            ],
            "match_type": "exact",
            "type": "simple",
            "max_size": 256,
            "with_counters": True,
            "support_timeout": False,
            "direct_meters": None,
            "action_ids": list(ids.values()),
            "actions": list(ids),
            "base_default_next": after["name"],
            "next_tables": dict.fromkeys(ids, after["name"]),
            "default_entry": {
                "action_id": ids[PASS_BY],
                "action_const": True,
                "action_data": [],
                "action_entry_const": True,
            },
        }
    )
    counters = made["counter_arrays"]
    number = 1 + max(each["id"] for each in counters)
    counters.append({"name": COUNTER, "id": number, "is_direct": True, "binding": TABLE})
    return made


def _add_actions(made: dict[str, Any]) -> dict[str, int]:
    """Add the control's actions; return their ids."""
    first = 1 + max(each["id"] for each in made["actions"])
    ids = {name: first + number for number, name in enumerate(ACTIONS)}
    (refused,) = (
        each["primitives"]
        for each in made["actions"]
        if each["name"] == "SwitchfoldIngress.worker_admission.foreign_worker"
    )
    for name, number in ids.items():
        primitives = copy.deepcopy(refused) if name == REFUSE else []
        made["actions"].append(
            {"name": name, "id": number, "runtime_data": [], "primitives": primitives}
        )
    return ids


def with_description(text: str) -> str:
    """Return P4Info to which the table is added."""
    info = text_format.Parse(text, p4i.P4Info())
    table = info.tables.add(size=256, const_default_action_id=ACTIONS[PASS_BY])
    table.preamble.MergeFrom(_preamble(TABLE_ID, TABLE))
    table.initial_default_action.action_id = ACTIONS[PASS_BY]
    table.direct_resource_ids.append(COUNTER_ID)
    table.match_fields.add(
        id=1,
        name="source_address",
        bitwidth=32,
        match_type=p4i.MatchField.EXACT,
        annotations=["@format(IPV4_ADDRESS)"],
    )
    for name, number in ACTIONS.items():
        info.actions.add(preamble=_preamble(number, name))
        reference = table.action_refs.add(id=number)
        if name == PASS_BY:
            reference.annotations.append("@defaultonly")
            reference.scope = p4i.ActionRef.DEFAULT_ONLY
    counter = info.direct_counters.add(direct_table_id=TABLE_ID)
    counter.preamble.MergeFrom(_preamble(COUNTER_ID, COUNTER))
    counter.spec.unit = p4i.CounterSpec.BOTH
    return text_format.MessageToString(info)


def _preamble(number: int, name: str) -> p4i.Preamble:
    return p4i.Preamble(id=number, name=name, alias=name.rpartition(".")[2])


def write_stand_in(folder: Path) -> None:
    """Write the compiler's command into a folder of the PATH."""
    file = folder / COMPILER
    file.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} "$@"\n', "utf-8")
    file.chmod(0o755)


def main() -> None:
    """Do what p4c does with the options that `switchfold p4 compile` gives it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="version", version="Version 0 (SHA: 0 stand-in)")
    parser.add_argument("--std")
    parser.add_argument("-o", dest="json", type=Path)
    parser.add_argument("--p4runtime-files", type=Path)
    parser.add_argument("program", type=Path)
    options = parser.parse_args()
    check_sources(options.program)
    committed = artefacts("narrow")
    pipeline = json.loads(committed.json.read_text("utf-8"))
    options.json.write_text(json.dumps(with_table(pipeline)), "utf-8")
    description = with_description(committed.p4info.read_text("utf-8"))
    options.p4runtime_files.write_text(description, "utf-8")


if __name__ == "__main__":
    main()
