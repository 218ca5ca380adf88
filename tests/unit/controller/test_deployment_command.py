# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchfold deploy init` leaves and says if it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from switchfold.controller.cli.deploy import command
from switchfold.controller.cli.doctor.check import Check, fail
from switchfold.controller.deployment.card_ports import Card
from switchfold.controller.deployment.hosts import HostFinding, NamedHost
from switchfold.controller.deployment.plan import DeploymentRequest, Findings
from switchfold.controller.errors import SwitchUnreachableError

HOST = "192.168.7.11"
CARD = Card(name="eno1", mac="02:00:00:00:00:10", mtu=1500, is_up=True, rate_bits_per_s=10**10)
SOFTSWITCH, SWITCH = ("--softswitch", "eno1"), ("--switch", "s1=192.168.1.9:9559")
UNSEEN = Findings(
    hosts=(HostFinding(named=NamedHost(name="h1", address=HOST), problem="silent", remedy="look"),),
    service_address="192.168.7.254",
)
USER, GROUP = 1000, 1001


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[Path, tuple[int, int]]:
    """A machine without faults, called by sudo; returns what is given to the caller."""
    paths: dict[Path, tuple[int, int]] = {}
    monkeypatch.setattr(command, "check_machine", lambda *_: list[Check]())
    monkeypatch.setattr(command, "find_cards", lambda: {CARD.name: CARD})
    monkeypatch.setattr(command, "find", lambda *_: UNSEEN)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, *ids, **_: paths.update({path: ids}))
    monkeypatch.setenv("SUDO_UID", str(USER))
    monkeypatch.setenv("SUDO_GID", str(GROUP))
    return paths


def deploy(directory: Path, *options: str) -> Result:
    listen = ("--listen", "192.168.7.10:50551")
    words = (HOST, "--directory", str(directory), *listen, *options)
    return CliRunner().invoke(command.init, words, standalone_mode=False)


def check_caller_has_certificates_alone(
    directory: Path, given: dict[Path, tuple[int, int]]
) -> None:
    assert [path.name for path in directory.iterdir()] == ["authority"]
    assert (directory / "authority" / "ca.key").exists()
    assert given == dict.fromkeys((directory, *directory.rglob("*")), (USER, GROUP))


@pytest.mark.parametrize("options", [SOFTSWITCH, (*SWITCH, "--insecure")])
def test_a_host_that_is_not_found_leaves_nothing(
    tmp_path: Path, given: dict[Path, tuple[int, int]], options: tuple[str, ...]
) -> None:
    done = deploy(tmp_path / "made", *options)
    assert done.return_value == 1, done.output
    assert f"nothing was written to {tmp_path / 'made'}: see 'do:' above" in done.output
    assert not (tmp_path / "made").exists()
    assert given == {}


def test_a_host_that_a_switch_does_not_find_leaves_certificates_of_the_caller(
    tmp_path: Path, given: dict[Path, tuple[int, int]]
) -> None:
    done = deploy(tmp_path / "made", *SWITCH)
    assert done.return_value == 1, done.output
    assert f"nothing but certificates was written to {tmp_path / 'made'}: see" in done.output
    check_caller_has_certificates_alone(tmp_path / "made", given)


def test_a_switch_without_its_certificate_leaves_certificates_of_the_caller(
    tmp_path: Path, given: dict[Path, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(*_: object) -> Findings:
        raise SwitchUnreachableError("no answer.")

    monkeypatch.setattr(command, "find", find)
    done = deploy(tmp_path / "made", *SWITCH)
    assert isinstance(done.exception, SwitchUnreachableError)
    assert "a copy of the folder above" in str(done.exception)
    assert f"switch: {tmp_path / 'made' / 'authority' / 'issued' / 's1'}\n" in done.output
    check_caller_has_certificates_alone(tmp_path / "made", given)


def test_a_machine_with_a_fault_leaves_nothing(
    tmp_path: Path, given: dict[Path, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(request: DeploymentRequest, *_: object) -> list[Check]:
        return [fail("controller", f"cannot listen at {request.listen}", "give --listen")]

    monkeypatch.setattr(command, "check_machine", check)
    done = deploy(tmp_path / "made", *SWITCH)
    assert done.return_value == 1, done.output
    assert "nothing was written to " in done.output
    assert not (tmp_path / "made").exists()
    assert given == {}
