# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping: addresses, programs that run already, P4Info files."""

from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from loopback import LOOPBACK
from p4runtime_fixtures import (
    DEVICE_ID,
    IDS,
    P4INFO,
    SAMPLE,
    BareClient,
    FakeDataPlane,
    insert,
    serving,
    station,
)
from switchfold.softswitch.p4runtime.service.serve import adopt_running
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.p4runtime.service.status import AddressInUseError, PipelineConfigError
from switchfold.softswitch.program.bmv2_json import read_program


def _serve(address: str, p4info: Path | None, dataplane: FakeDataPlane) -> P4RuntimeServer:
    program = read_program(SAMPLE / "toy_forwarding.json")
    dataplane.load(program)
    server = P4RuntimeServer(
        dataplane, address=address, device_id=DEVICE_ID, compile_program=read_program
    )
    adopt_running(server, p4info, program)
    server.start()
    return server


def test_taken_address_is_a_typed_error() -> None:
    with serving() as (server, _):
        with pytest.raises(AddressInUseError, match=str(server.port)):
            _serve(server.address, SAMPLE / "toy_forwarding.p4info.txtpb", FakeDataPlane())
        with BareClient(server.port) as client:  # the first one is unharmed
            client.become_primary()


def test_running_program_is_served_at_once() -> None:
    dataplane = FakeDataPlane()
    with _serve("127.0.0.1:0", SAMPLE / "toy_forwarding.p4info.txtpb", dataplane) as server:
        with BareClient(server.port) as client:
            request = p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)
            assert client.stub.GetForwardingPipelineConfig(request).config.p4info == P4INFO
            client.become_primary()
            client.write(insert(station()))
            assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == [station()]
        assert dataplane.num_loads == 1
        assert len(dataplane.entries) == 1


def test_running_program_needs_its_p4info(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="P4Info is needed"):
        _serve("127.0.0.1:0", None, FakeDataPlane())
    broken = tmp_path / "x.p4info.txtpb"
    broken.write_text("tables {")
    with pytest.raises(PipelineConfigError, match=r"x\.p4info\.txtpb"):
        _serve("127.0.0.1:0", broken, FakeDataPlane())


def test_stop_frees_the_port_and_may_be_repeated() -> None:
    with _serve(f"{LOOPBACK}:0", SAMPLE / "toy_forwarding.p4info.txtpb", FakeDataPlane()) as server:
        address = server.address
        server.stop()
        server.stop()
        again = _serve(address, SAMPLE / "toy_forwarding.p4info.txtpb", FakeDataPlane())
        assert again.address == address
        again.stop()


def test_malformed_messages_do_not_harm_the_server() -> None:
    with serving() as (server, _):
        channel = grpc.insecure_channel(server.address)
        call = channel.unary_unary("/p4.v1.P4Runtime/Write")
        with pytest.raises(grpc.RpcError):
            call(b"\xff\xff\xff", timeout=60)
        channel.close()
        with BareClient(server.port) as client:
            client.become_primary()
            client.push()
