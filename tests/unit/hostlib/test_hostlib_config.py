# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from switchfold.hostlib.config import (
    complete_from_environment,
    fill_setting,
    join_from_environment,
    place_variables,
    tolerance_setting,
    transport_from_environment,
)
from switchfold.hostlib.control import controller_channel
from switchfold.hostlib.errors import ConfigurationError, ControllerUnreachableError
from switchfold.hostlib.loss_fill import FillPolicy
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.transports.tunnel import TunnelTransport
from switchfold.hostlib.transports.udp import UdpTransport

WORKER = {
    "SWITCHFOLD_CONTROLLER": "127.0.0.1:1",
    "SWITCHFOLD_JOB": "train",
    "SWITCHFOLD_WORKER_ID": "0",
    "SWITCHFOLD_NUM_WORKERS": "2",
    "SWITCHFOLD_ADDRESS": "127.0.0.1",
}


def test_udp_is_the_default_transport() -> None:
    transport = transport_from_environment(WORKER)
    assert isinstance(transport, UdpTransport)
    assert transport.local.address == "127.0.0.1"
    transport.close()


def test_tunnel_transport() -> None:
    variables = {
        **WORKER,
        "SWITCHFOLD_TRANSPORT": "tunnel",
        "SWITCHFOLD_MAC": "02:00:00:00:00:01",
        "SWITCHFOLD_TUNNEL_LOCAL": "127.0.0.1:0",
        "SWITCHFOLD_TUNNEL_SWITCH": "127.0.0.1:9",
    }
    transport = transport_from_environment(variables)
    assert isinstance(transport, TunnelTransport)
    assert transport.local.mac == "02:00:00:00:00:01"
    transport.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SWITCHFOLD_CONTROLLER", ""),
        ("SWITCHFOLD_JOB", ""),
        ("SWITCHFOLD_WORKER_ID", "first"),
        ("SWITCHFOLD_NUM_WORKERS", "-1"),
        ("SWITCHFOLD_TRANSPORT", "rdma"),
        ("SWITCHFOLD_ADDRESS", ""),
        ("SWITCHFOLD_WEIGHT", "0"),
        ("SWITCHFOLD_WEIGHT", "much"),
        ("SWITCHFOLD_MAX_PRIORITY", "8"),
        ("SWITCHFOLD_LATE_WAIT", "never"),
        ("SWITCHFOLD_PATH", "air"),
        ("SWITCHFOLD_SLOTS", "-1"),
        ("SWITCHFOLD_JOINING", "yes"),
    ],
)
def test_wrong_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        join_from_environment(variables={**WORKER, name: value})


def test_all_missing_variables_are_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        join_from_environment(variables={"SWITCHFOLD_TRANSPORT": "tunnel"})
    for name in (*(name for name in WORKER), "SWITCHFOLD_MAC", "SWITCHFOLD_TUNNEL_SWITCH"):
        assert name in str(raised.value)
    assert "SWITCHFOLD_TRANSPORT" not in str(raised.value)


def test_join_reaches_for_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 0.5)  # it always expires
    with pytest.raises(ControllerUnreachableError, match=r"127\.0\.0\.1:1"):
        join_from_environment(variables=WORKER)


def test_environment_sets_the_options_that_the_program_does_not() -> None:
    variables = {
        "SWITCHFOLD_SLOTS": "20",
        "SWITCHFOLD_WEIGHT": "2.5",
        "SWITCHFOLD_MAX_PRIORITY": "3",
        "SWITCHFOLD_LATE_WAIT": "adaptive",
        "SWITCHFOLD_DYNAMIC_INCAST": "1",
        "SWITCHFOLD_PATH": "host",
        "SWITCHFOLD_INGRESS_PORT": "s1-eth1",
    }
    options = SessionOptions(timeout_s=7.0, slots_wanted=10)
    assert complete_from_environment(options, variables) == SessionOptions(
        timeout_s=7.0,
        slots_wanted=10,
        weight=2.5,
        max_priority=3,
        late_wait="adaptive",
        dynamic_incast=True,
        path="host",
        ingress_port="s1-eth1",
    )


def test_another_server_is_no_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 60.0)
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with pytest.raises(ControllerUnreachableError, match=f"at 127.0.0.1:{port} is no controller"):
        join_from_environment(variables={**WORKER, "SWITCHFOLD_CONTROLLER": f"127.0.0.1:{port}"})
    server.stop(None).wait()


def test_join_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "switchfold.hostlib.control.controller_link")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigurationError, match=r"module grpc, .* '\.\[controller\]'"):
        join_from_environment(variables=WORKER)


def test_variables_override_a_place(tmp_path: Path) -> None:
    path = tmp_path / "places.json"
    path.write_text(json.dumps([{"SWITCHFOLD_ADDRESS": "10.0.0.1"}, {"SWITCHFOLD_ADDRESS": "b"}]))
    process = {"SWITCHFOLD_PLACES": str(path), "RANK": "0", "LOCAL_RANK": "1", "X": "own"}
    assert place_variables(process) == {"SWITCHFOLD_ADDRESS": "b", **process}
    assert place_variables({**process, "LOCAL_RANK": ""})["SWITCHFOLD_ADDRESS"] == "10.0.0.1"
    own = {**process, "SWITCHFOLD_ADDRESS": "own"}
    assert place_variables(own)["SWITCHFOLD_ADDRESS"] == "own"
    assert place_variables({"X": "own"}) == {"X": "own"}
    spawned = {"SWITCHFOLD_PLACES": str(path)}
    assert place_variables(spawned, 1)["SWITCHFOLD_ADDRESS"] == "b"
    assert place_variables({**spawned, "LOCAL_RANK": "0"}, 1)["SWITCHFOLD_ADDRESS"] == "10.0.0.1"


@pytest.mark.parametrize(
    ("text", "rank", "problem"),
    [
        (None, "0", "there is no such file"),
        ("[", "0", "cannot be read"),
        ("{}", "0", "must hold a list"),
        ("[{}]", "", "start it with torchrun"),
        ("[{}]", "1", "has 1 places and none for process 1"),
        ("[3]", "0", "none for process 0"),
    ],
)
def test_unusable_places_are_named(
    tmp_path: Path, text: str | None, rank: str, problem: str
) -> None:
    path = tmp_path / "places.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        join_from_environment(variables={"SWITCHFOLD_PLACES": str(path), "LOCAL_RANK": rank})
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        ("", None),
        ("0.05", LossTolerance(loss=0.05)),
        ("0.05:0.8", LossTolerance(loss=0.05, worker_floor=0.8)),
    ],
)
def test_tolerance_of_process_groups(
    monkeypatch: pytest.MonkeyPatch, text: str, tolerance: LossTolerance | None
) -> None:
    monkeypatch.setenv("SWITCHFOLD_TOLERANCE", text)
    assert tolerance_setting() == tolerance


@pytest.mark.parametrize("text", ["few", "1.5", "0.05:x", "0.05:2"])
def test_wrong_tolerance_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SWITCHFOLD_TOLERANCE", text)
    with pytest.raises(ConfigurationError, match=f"SWITCHFOLD_TOLERANCE is '{text}'.*such as 0.05"):
        tolerance_setting()


def test_fill_of_process_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWITCHFOLD_FILL", raising=False)
    assert fill_setting() is FillPolicy.MEAN
    monkeypatch.setenv("SWITCHFOLD_FILL", "zero")
    assert fill_setting() is FillPolicy.ZERO
    for value in ("previous", "none"):
        monkeypatch.setenv("SWITCHFOLD_FILL", value)
        with pytest.raises(ConfigurationError, match=f"is '{value}'; choose mean or zero"):
            fill_setting()
