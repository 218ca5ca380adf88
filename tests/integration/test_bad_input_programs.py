# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Missing switches, switches with other programs, and jobs that a real controller refuses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from controller_fixtures import HOSTS, FakeWorker, run, serving
from live_testbed import LiveTestbed
from switchfold import p4src
from switchfold.bmv2_topos import state
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.config import ControllerConfig, SwitchConfig
from switchfold.controller.errors import ControllerError, SwitchUnreachableError, WrongProgramError
from switchfold.hostlib import errors
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.p4runtime.service.serve import serve
from time_bound import wait_until

SAMPLE = Path(__file__).parents[1] / "support" / "p4runtime" / "p4runtime_sample"


@pytest.fixture(scope="module", autouse=True)
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        yield root


@pytest.fixture(scope="module")
def whole(records: Path) -> Iterator[LiveTestbed]:
    with LiveTestbed(3, controller_options=("--lease", "60")) as live:
        yield live


def make_config(
    folder: Path, address: str, *, switch_credentials: Path | None = None, **options: Any
) -> ControllerConfig:
    switch = SwitchConfig(name="s1", address=address, hosts=HOSTS, credentials=switch_credentials)
    return ControllerConfig(
        switches=(switch,),
        insecure=True,
        listen="127.0.0.1:0",
        database=folder / "controller.sqlite3",
        **{"connect_timeout_s": 60.0, **options},
    )


def start_controller(config: ControllerConfig) -> None:
    async def scenario() -> None:
        async with serving(config):
            pass

    run(scenario())


def artefacts(folder: Path, program: str) -> tuple[Path, Path]:
    """Return JSON and P4Info of a program that is not the narrow one."""
    if program == "toy_forwarding":
        return SAMPLE / f"{program}.json", SAMPLE / f"{program}.p4info.txtpb"
    build = Path(p4src.__file__).parent / "build"
    variant = "wide" if program == "wide" else "narrow"
    base = build / f"switchfold_{variant}" / f"switchfold_{variant}"
    p4info = base.with_suffix(".p4info.txtpb")
    if program != "wide":
        text = p4info.read_text("utf-8")
        assert '"2.32"' in text
        p4info = folder / "changed.p4info.txtpb"
        p4info.write_text(text.replace('"2.32"', f'"{program}"'), "utf-8")
    return base.with_suffix(".json"), p4info


@pytest.mark.parametrize(
    ("program", "name", "verdict"),
    [
        ("toy_forwarding", "a program without name", "instead of switchfold"),
        ("wide", "switchfold 2.352", ""),
        ("1.32", "switchfold 1.32", "wire version 1, this host speaks 2"),
        ("2.33", "switchfold 2.33", ""),
    ],
)
def test_wrong_program_on_the_switch(
    whole: LiveTestbed, tmp_path: Path, program: str, name: str, verdict: str
) -> None:
    json_path, p4info = artefacts(tmp_path, program)
    with (
        Switch(compile_program(json_path)) as switch,
        serve(switch, p4info, "127.0.0.1:0") as server,
    ):
        with pytest.raises(WrongProgramError) as caught:
            start_controller(make_config(tmp_path, server.address))
        text = str(caught.value)
        assert f"switch s1 at {server.address} runs {name}" in text
        assert "needs switchfold 2.32" in text
        assert "--replace-program" in text
        code, found = whole.doctor("--switch", f"other={server.address}")
        status, text = found["switch other program"]
        assert found["switch s1 program"][0] == "ok"
        assert name in text
        if verdict:
            assert (code, status) == (1, "fail")
            assert verdict in text


def test_wrong_program_is_replaced_when_asked(tmp_path: Path) -> None:
    with Switch() as switch, serve(switch, address="127.0.0.1:0") as server:
        start_controller(make_config(tmp_path, server.address, variant="wide"))
        with pytest.raises(WrongProgramError):
            start_controller(make_config(tmp_path, server.address))
        start_controller(make_config(tmp_path, server.address, replace_program=True))


def test_program_changed_under_a_running_controller(records: Path, tmp_path: Path) -> None:
    """Another controller with a higher election id loads its own program."""
    with LiveTestbed(2) as live:
        other = make_config(
            tmp_path,
            live.made.switch_address,
            variant="wide",
            replace_program=True,
            election_id=20,
            switch_credentials=live.made.switch_operator.folder,
        )
        start_controller(other)
        code, found = live.doctor()
        assert code == 1
        assert found["switch s1 program"][0] == "fail"
        assert (
            "runs switchfold 2.352 (wide: 352 values per packet) instead of"
            in found["switch s1 program"][1]
        )
        # The testbed's own controller is the only one again, and checks the program itself.
        wait_until(
            lambda: live.show("switch", "show", "s1")["state"] == "wrong program", "its verdict"
        )
        with pytest.raises(errors.JoinError, match=r"2\.352"):
            live.join(0, 1, "next")


@pytest.mark.parametrize("kind", ["closed", "silent"])
def test_controller_without_a_switch(tmp_path: Path, kind: str) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        if kind == "silent":
            sock.listen()
        address = f"127.0.0.1:{sock.getsockname()[1]}"
        with pytest.raises(SwitchUnreachableError) as caught:
            start_controller(make_config(tmp_path, address, connect_timeout_s=2))
    assert f"switch s1 at {address}" in str(caught.value)
    assert "is it running" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "status", "texts"),
    [
        ({"num_workers": 65536}, StatusCode.INVALID_ARGUMENT, ("65536 workers", "1 to 65535")),
        ({"wire_version": 1}, StatusCode.FAILED_PRECONDITION, ("wire version 1", "same release")),
        (
            {"values_per_packet": 352},
            StatusCode.FAILED_PRECONDITION,
            ("352 values per packet", "takes 32", "--variant"),
        ),
        (
            {"slots_wanted": 1025, "path": pb.SWITCH},
            StatusCode.RESOURCE_EXHAUSTED,
            ("wants 1025 slots", "a switch has only 1024"),
        ),
        (
            {"slots_wanted": 100, "path": pb.SWITCH},
            StatusCode.RESOURCE_EXHAUSTED,
            ("24 slots would fit", "held by big (1000)", "Ask for fewer slots"),
        ),
        ({"address": "10.9.9.9"}, StatusCode.INVALID_ARGUMENT, ("10.9.9.9", "not a configured")),
    ],
)
def test_join_request_that_is_refused(
    whole: LiveTestbed, fields: dict[str, Any], status: StatusCode, texts: tuple[str, ...]
) -> None:
    async def scenario() -> None:
        address = whole.made.controller_address
        big = await FakeWorker(address, 0, 1, job_name="big", slots_wanted=1000).join()
        await big.join_reply()
        worker = FakeWorker(address, 1, **({"job_name": "next"} | fields))
        code, details = await (await worker.knock()).refusal()
        assert code is status
        assert all(text in details for text in texts), details
        await worker.close()
        whole.command("job", "stop", "big")
        await big.close()

    run(scenario())


def test_testbed_is_closed_to_strangers(whole: LiveTestbed) -> None:
    """It makes its tokens itself: only its workers and commands have them."""
    address = whole.made.controller_address
    with pytest.raises(ControllerError, match="wrong token"):
        OperatorClient(address, "guess").list_jobs()
    assert whole.command("job", "list")[0] == 0
    with whole.sessions(2) as sessions:
        assert len(sessions) == 2

    async def scenario() -> None:
        stranger = FakeWorker(address, 0, 1, token="guess")
        assert (await stranger.refusal())[0] is StatusCode.UNAUTHENTICATED
        await stranger.close()

    run(scenario())


def test_more_workers_than_can_be_counted_are_refused(whole: LiveTestbed) -> None:
    with pytest.raises(errors.ConfigurationError, match="65535"):
        whole.join(0, 65536)
