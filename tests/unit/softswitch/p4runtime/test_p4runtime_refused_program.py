# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A program that the generator refuses is refused through P4Runtime, with every reason."""

from __future__ import annotations

import copy
import json

import grpc
import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from p4runtime_fixtures import BareClient, FakeDataPlane
from refused_program import BASE, refused_problems, refused_text
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer

P4INFO = text_format.Parse(BASE.with_suffix(".p4info.txtpb").read_text(), p4i.P4Info())


def refusal(blob: bytes) -> str:
    """Push a program; return the error that the client gets, and check that nothing changed."""
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


COUNT = len(refused_problems())


def test_all_reasons_reach_the_client() -> None:
    text = refusal(refused_text().encode())
    head = f"p4_device_config: replication cannot be loaded, {COUNT} problem(s):"
    assert text.startswith(head.replace("replication", text.split()[1]))
    assert text.count("\n  replication.p4(") == COUNT


def test_more_reasons_than_a_status_holds_are_cut_at_a_line() -> None:
    data = json.loads(refused_text())
    clones = [
        primitive
        for action in data["actions"]
        for primitive in action["primitives"]
        if primitive["op"] == "_vendor_clone_ingress_pkt_to_egress"
    ]
    for line in range(1000, 1100):
        clone = copy.deepcopy(clones[0])
        clone["source_info"]["line"] = line
        data["actions"][-1]["primitives"].append(clone)
    text = refusal(json.dumps(data).encode())
    assert f"{COUNT + 100} problem(s)" in text
    shown = text.count("\n  replication.p4(")
    assert COUNT < shown < COUNT + 100
    assert text.endswith(f"\n  and {COUNT + 100 - shown} more: `softswitch show` lists all")
