# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchfold deploy init` writes: configuration, units, variables, certificates."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from switchfold.controller.config import ControllerConfig, HostConfig, SwitchConfig, load_config
from switchfold.controller.deployment.card_ports import Card
from switchfold.controller.deployment.hosts import HostFinding, NamedHost
from switchfold.controller.deployment.plan import DeploymentRequest, Findings, controller_config
from switchfold.controller.deployment.units import (
    CONTROLLER_UNIT,
    SERVER_UNIT,
    SOFTSWITCH_UNIT,
    Installation,
)
from switchfold.controller.deployment.writing import (
    check_unwritten,
    give_to_caller,
    open_certificates,
    write_deployment,
)
from switchfold.controller.errors import ConfigError, DeploymentError
from switchfold.hostlib.credentials import Credentials
from unit_runner import UnitFile

CARD = Card(name="eno1", mac="02:00:00:00:00:10", mtu=1500, is_up=True, rate_bits_per_s=10**10)
NAMED = tuple(NamedHost(name=f"h{n}", address=f"192.168.7.1{n}") for n in (1, 2, 3))
PLACES = tuple(
    HostConfig(name=each.name, port=1, address=each.address, mac=f"02:00:00:00:00:0{n}")
    for n, each in enumerate(NAMED, 1)
)
FINDINGS = Findings(
    hosts=tuple(
        HostFinding(named=named, host=place) for named, place in zip(NAMED, PLACES, strict=True)
    ),
    service_address="192.168.7.254",
)
INSTALLED = Installation(python="/opt/switchfold/bin/python3", package=Path("/opt/switchfold/lib"))


@pytest.fixture(autouse=True)
def _no_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.delenv("SUDO_GID", raising=False)


def request_in(directory: Path, /, **changes: object) -> DeploymentRequest:
    request = DeploymentRequest(
        hosts=NAMED,
        directory=directory,
        cards={1: CARD},
        switch=SwitchConfig(name="s1", address="127.0.0.1:9559"),
        listen="192.168.7.10:50551",
        has_server=True,
    )
    return replace(request, **changes)


def write(directory: Path, /, **changes: object) -> dict[str, UnitFile]:
    request = request_in(directory, **changes)
    certificates = open_certificates(request)
    config = controller_config(request, FINDINGS)
    paths = write_deployment(request, config, certificates, INSTALLED)
    return {path.name: UnitFile(path) for path in paths}


def variables_of(path: Path) -> dict[str, str]:
    command = ["sh", "-c", f'. "{path}" && env']
    text = subprocess.check_output(command, env={"HOME": "/home/me"}, text=True)
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_controller_reads_what_was_written(tmp_path: Path) -> None:
    write(tmp_path)
    config = load_config(tmp_path / "controller.toml")
    (switch,) = config.switches
    assert switch.hosts == PLACES
    assert switch.service_address == "192.168.7.254"
    assert (config.listen, config.variant) == ("192.168.7.10:50551", "wide")
    assert config.frame_overhead_bytes == 24
    assert not config.insecure


def test_the_controller_reads_the_lines_for_metrics_and_the_web_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "deployment.md").read_text("utf-8")
    (lines,) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    write(tmp_path)
    path = tmp_path / "controller.toml"
    path.write_text(lines + path.read_text("utf-8"), "utf-8")
    config = load_config(path)
    assert (config.metrics, config.web) == ("9464", "9470")


def test_units_start_what_there_is_with_what_it_needs(tmp_path: Path) -> None:
    units = write(tmp_path)
    assert list(units) == [
        "switchfold-softswitch.service", "switchfold-controller.service", "switchfold-ps.service",
    ]  # fmt: skip
    python = INSTALLED.python
    assert {name: unit.one("ExecStart") for name, unit in units.items()} == {
        "switchfold-softswitch.service": f"{python} -m switchfold.softswitch run"
        " --port 1=interface:eno1 --grpc 127.0.0.1:9559 --credentials %d",
        "switchfold-controller.service": f"{python} -m switchfold.controller controller run"
        " --config %d/controller.toml --credentials %d"
        " --database %S/switchfold/controller.sqlite3",
        "switchfold-ps.service": f"{python} -m switchfold.controller ps run"
        " --address 192.168.7.10 --port 9600 --num-workers 3 --log %S/switchfold-ps"
        " --credentials %d",
    }
    for unit in units.values():
        assert unit.one("Type") == "notify"
        assert unit.one("DynamicUser") == "yes"
        assert unit.one("Restart") == "on-failure"
        assert unit.one("RestartPreventExitStatus") == "2"
        assert unit.one("WatchdogSec") == "30"
        loaded = dict(entry.split(":", 1) for entry in unit["LoadCredential"])
        assert {"ca.pem", "cert.pem", "crl.pem", "key.pem"} <= loaded.keys()
        assert all(Path(path).is_file() for path in loaded.values())
    assert "switchfold-softswitch.service" in units["switchfold-controller.service"].after
    capabilities = {name: unit.one("CapabilityBoundingSet") for name, unit in units.items()}
    assert capabilities.pop("switchfold-softswitch.service") == "CAP_NET_RAW CAP_NET_ADMIN"
    assert set(capabilities.values()) == {""}


def test_every_command_of_a_unit_is_one_that_there_is(tmp_path: Path) -> None:
    for unit in write(tmp_path).values():
        _, _, module, *words = shlex.split(unit.one("ExecStart"))
        verbs = words[: next(n for n, word in enumerate(words) if word.startswith("--"))]
        shown = subprocess.run(
            [sys.executable, "-m", module, *verbs, "--help"], capture_output=True, text=True,
            check=True,
        ).stdout  # fmt: skip
        for word in words:
            assert not word.startswith("--") or word in shown, f"{unit.name}: {word}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    config = controller_config(request, FINDINGS)
    here = Installation()  # systemd looks for the programs
    paths = write_deployment(request, config, open_certificates(request), here)
    done = subprocess.run(
        ["systemd-analyze", "verify", *map(str, paths)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if "switchfold-" in line]
    assert (done.returncode, complaints) == (0, []), done.stderr


def test_units_that_fail_again_and_again_are_given_up(tmp_path: Path) -> None:
    """A controller whose switch is away is not: it fails less often than the limit allows for."""
    write(tmp_path)
    for path in (tmp_path / "systemd").iterdir():
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read_string(path.read_text("utf-8"))
        window_s, starts = (
            int(parser["Unit"][name]) for name in ("StartLimitIntervalSec", "StartLimitBurst")
        )
        assert (window_s, starts) == (60, 5)
        assert window_s / starts < ControllerConfig.connect_timeout_s


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_rates_the_units_as_little_exposed(tmp_path: Path) -> None:
    """0 is best and 10 worst; docs/deployment.md states the figures."""
    write(tmp_path, has_server=True)
    limits = {SOFTSWITCH_UNIT: 2.3, CONTROLLER_UNIT: 1.7, SERVER_UNIT: 1.7}
    for name, limit in limits.items():
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--no-pager",
             f"--threshold={round(10 * limit)}", str(tmp_path / "systemd" / name)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Overall exposure level" in done.stdout


def test_programs_in_a_home_can_be_seen(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    config = controller_config(request, FINDINGS)
    for python, protection in (("/home/me/venv/bin/python", "read-only"), ("/opt/p", "yes")):
        installed = Installation(python=python, package=Path("/opt/switchfold"))
        for path in write_deployment(request, config, open_certificates(request), installed):
            assert UnitFile(path).one("ProtectHome") == protection


def test_a_host_gets_its_certificate_and_its_variables(tmp_path: Path) -> None:
    write(tmp_path)
    for rank, named in enumerate(NAMED):
        folder = tmp_path / "hosts" / named.name
        assert Credentials(folder).own_problem() == ""
        assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
        variables = variables_of(folder / "worker.env")
        assert variables["SWITCHFOLD_CONTROLLER"] == "192.168.7.10:50551"
        assert variables["SWITCHFOLD_ADDRESS"] == named.address
        assert variables["SWITCHFOLD_CREDENTIALS"] == "/home/me/switchfold"
        assert (variables["PET_NODE_RANK"], variables["PET_NNODES"]) == (str(rank), "3")
        assert variables["PET_MASTER_ADDR"] == "192.168.7.11"
    operator = variables_of(tmp_path / "operator.env")
    assert Credentials(Path(operator["SWITCHFOLD_CREDENTIALS"])).own_problem() == ""


def test_without_certificates_everything_says_so(tmp_path: Path) -> None:
    units = write(tmp_path, is_insecure=True)
    assert load_config(tmp_path / "controller.toml").insecure
    assert "--insecure" in units["switchfold-softswitch.service"].one("ExecStart")
    assert "--insecure" in units["switchfold-ps.service"].one("ExecStart")
    assert variables_of(tmp_path / "operator.env")["SWITCHFOLD_INSECURE"] == "1"
    assert variables_of(tmp_path / "hosts" / "h1" / "worker.env")["SWITCHFOLD_INSECURE"] == "1"
    assert not (tmp_path / "authority").exists()


def test_a_folder_is_written_again_only_when_asked_and_keeps_its_certificates(
    tmp_path: Path,
) -> None:
    check_unwritten(tmp_path)
    write(tmp_path)
    with pytest.raises(DeploymentError, match="--replace"):
        check_unwritten(tmp_path)
    before = (tmp_path / "hosts" / "h1" / "cert.pem").read_bytes()
    write(tmp_path)
    assert (tmp_path / "hosts" / "h1" / "cert.pem").read_bytes() == before


def test_the_folder_is_the_callers_of_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[Path, tuple[int, int]] = {}
    monkeypatch.setattr(os, "chown", lambda path, *ids, **_: given.update({path: ids}))
    write(tmp_path)
    give_to_caller(tmp_path)
    assert given == {}
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1001")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    give_to_caller(tmp_path)
    assert given == {}, "who is not root cannot give anything away"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    give_to_caller(tmp_path)
    assert given == dict.fromkeys((tmp_path, *tmp_path.rglob("*")), (1000, 1001))


def test_another_switch_needs_no_softswitch(tmp_path: Path) -> None:
    switch = SwitchConfig(name="tor", address="192.168.1.9:9559", device_id=3)
    units = write(tmp_path, cards={}, switch=switch, has_server=False)
    assert list(units) == ["switchfold-controller.service"]
    (written,) = load_config(tmp_path / "controller.toml").switches
    assert (written.name, written.address, written.device_id) == ("tor", switch.address, 3)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hosts": ()}, "no host"),
        ({"hosts": (*NAMED, NamedHost(name="x", address="192.168.7.11"))}, "the same address"),
        ({"hosts": (*NAMED, NamedHost(name="h1", address="192.168.7.9"))}, "the same name"),
        ({"hosts": (NamedHost(name="s1", address="192.168.7.9"),)}, "of another process"),
        ({"directory": Path("/tmp/a b")}, "spaces"),
    ],
)
def test_requests_that_make_no_sense(tmp_path: Path, changes: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        request_in(tmp_path, **changes)


def test_a_path_that_only_root_reads_is_told_the_installation_check() -> None:
    home = Installation(python="/root/venv/bin/python", package=Path("/opt/x"))
    assert home.is_in_a_home
    assert not INSTALLED.is_in_a_home
    assert os.path.isabs(Installation().python)
