# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A program that the generator refuses is refused through P4Runtime, with every reason."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from p4runtime_fixtures import BareClient, FakeDataPlane
from softswitch.compiler import compile_program
from softswitch.p4runtime.server import P4RuntimeServer

PROGRAM = Path(__file__).parents[1] / "pipeline" / "programs" / "refused_replication.json"
P4INFO = text_format.Parse(PROGRAM.with_suffix(".p4info.txtpb").read_text(), p4i.P4Info())


def refusal(blob: bytes) -> str:
    """Push a program; returns what the client is told, and checks that nothing changed."""
    dataplane = FakeDataPlane()
    with (
        P4RuntimeServer(
            dataplane, address="127.0.0.1:0", device_id=7, compile_program=compile_program
        ) as server,
        BareClient(server.port) as client,
    ):
        client.become_primary()
        with pytest.raises(grpc.RpcError) as caught:
            client.push(p4info=P4INFO, blob=blob)
    assert dataplane.num_loads == 0
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return caught.value.details() or ""


def test_all_reasons_reach_the_client() -> None:
    text = refusal(PROGRAM.read_bytes())
    assert text.startswith("p4_device_config: refused_replication cannot be loaded, 8 problem(s):")
    assert text.count("\n  refused_replication.p4(") == 8


def test_more_reasons_than_a_status_holds_are_cut_at_a_line() -> None:
    data = json.loads(PROGRAM.read_text())
    clones = [
        primitive
        for action in data["actions"]
        for primitive in action["primitives"]
        if primitive["op"] == "clone_ingress_pkt_to_egress"
    ]
    for line in range(1000, 1100):
        clone = copy.deepcopy(clones[0])
        clone["source_info"]["line"] = line
        data["actions"][-1]["primitives"].append(clone)
    text = refusal(json.dumps(data).encode())
    assert "108 problem(s)" in text
    shown = text.count("\n  refused_replication.p4(")
    assert 8 < shown < 108
    assert text.endswith(f"\n  and {108 - shown} more: `softswitch show` lists all")
