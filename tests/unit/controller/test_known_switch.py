# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Doctor on another machine than the controller's, whose switch is at 127.0.0.1 there."""

from __future__ import annotations

import pytest

from switchfold.controller.api.endpoint import is_local, is_this_host
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.cli.doctor import known_switch
from switchfold.controller.cli.doctor.check import Check, Status, fail
from switchfold.controller.config import SwitchConfig

ELSEWHERE = "192.0.2.1:50551"


@pytest.fixture(autouse=True)
def _called(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(client: OperatorClient, config: SwitchConfig, program: str) -> list[Check]:
        del client, program
        return [fail(f"switch {config.name}", "called", "nothing")]

    monkeypatch.setattr(known_switch, "check_switch", call)


@pytest.mark.parametrize("switch", ["127.0.0.1:9559", "localhost:9559", "unix:/run/s1.sock"])
def test_a_switch_on_the_controllers_host_is_not_called_from_another(switch: str) -> None:
    client = OperatorClient(ELSEWHERE, insecure=True)
    config = SwitchConfig(name="s1", address=switch)
    (check,) = known_switch.check_known_switch(client, config, "")
    assert check.status is Status.OK
    assert f"{switch} is on the controller's host, {ELSEWHERE}" in check.text


@pytest.mark.parametrize(
    ("controller", "switch"),
    [
        ("127.0.0.1:50551", "127.0.0.1:9559"),
        ("unix:/run/c.sock", "unix:/run/s1.sock"),
        (ELSEWHERE, "192.0.2.1:9559"),
    ],
)
def test_other_switches_are_called(controller: str, switch: str) -> None:
    client = OperatorClient(controller, insecure=True)
    config = SwitchConfig(name="s1", address=switch)
    (check,) = known_switch.check_known_switch(client, config, "")
    assert check.text == "called"


def test_addresses_of_this_host() -> None:
    assert is_local("[::1]:1")
    assert not is_local("10.0.0.1:1")
    assert is_this_host("127.0.0.2:1")
    assert is_this_host("0.0.0.0:1")
    assert not is_this_host(ELSEWHERE)
    assert not is_this_host("no-such-host.invalid:1")
