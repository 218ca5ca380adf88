# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The units of `switchfold deploy init` under a real systemd, set up as docs/deployment.md says."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from booted_systemd import BootedSystemd, obstacle
from deployed_lan import HERE, HOSTS, JOINING, PAGE, SUM, deploy, run_on_all
from page_commands import marked_commands
from plain_lan import PlainLan
from switchfold.controller.database.schema import SCHEMA_VERSION
from switchfold.controller.deployment.units import CONTROLLER_UNIT, SERVER_UNIT, SOFTSWITCH_UNIT
from time_bound import wait_until

OBSTACLE = obstacle()
DATABASE = "/var/lib/switchfold/controller.sqlite3"
UNITS = (SOFTSWITCH_UNIT, CONTROLLER_UNIT, SERVER_UNIT)
STARTS = 5
"""After so many in a minute, systemd starts a unit no more."""

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(OBSTACLE != "", reason=f"no systemd can be booted here: {OBSTACLE}"),
]

# Right after a switch has come back, a worker may look as if its link were dead: it is awaited.
LONG = (
    JOINING.replace('path="switch"', 'path="switch", min_workers=3')
    + """\
    number = 0

    def count(wants_more):
        global number
        result = session.allreduce(np.full(10_000, wants_more, np.int32)).result()
        assert (result == result[0]).all()
        number += 1
        with open("new", "w") as file:
            file.write(str(number))
        os.rename("new", "sums")
        return result[0]

    while count(not os.path.exists("enough")) == 3:
        pass
print("summed to the end")
"""
)
UNIT_NAME = "switchfold-left.service"
# Of the default type, it would be active before its process has made the folder.
UNIT = """\
[Service]
Type=exec
ExecStart=/bin/sleep infinity
DynamicUser=yes
StateDirectory=switchfold-left
[Install]
WantedBy=multi-user.target
"""
PLACES = ("/etc/systemd/system", "/var/lib", "/var/lib/private", "/var/tmp", "/run", "/tmp")


def written() -> list[Path]:
    """Return what the unit, and systemd for it, have in folders of this machine."""
    return [path for place in PLACES for path in Path(place).glob("*switchfold-left*")]


@pytest.fixture(scope="module")
def machine() -> Iterator[BootedSystemd]:
    # Paths of sockets are short.
    folder = Path(tempfile.mkdtemp(prefix="sf-"))
    with PlainLan(folder, (HERE, *HOSTS)) as lan, BootedSystemd(lan, HERE) as systemd:
        deploy(lan, "--parameter-server")
        # Where tests share the processor, a job may wait long for a switch that starts again.
        file = configuration(systemd)
        file.write_text(f"no_route_s = 120.0\nreconnect_grace_s = 120.0\n{file.read_text()}")
        systemd.systemctl("restart", CONTROLLER_UNIT)
        yield systemd


@pytest.fixture
def changed(machine: BootedSystemd) -> Iterator[BootedSystemd]:
    """The machine, for a test that may leave units stopped, failed or changed."""
    text = configuration(machine).read_text()
    yield machine
    configuration(machine).write_text(text)
    for unit in UNITS:
        machine.drop_in(unit, "")
    machine.systemctl("stop", *UNITS)
    machine.systemctl("reset-failed")
    machine.systemctl("start", *UNITS)


def configuration(machine: BootedSystemd) -> Path:
    return machine.lan.home(HERE) / "switchfold-deployment" / "controller.toml"


def files_of(machine: BootedSystemd) -> list[str]:
    return [str(configuration(machine).parent / "systemd" / unit) for unit in UNITS]


def seconds(machine: BootedSystemd, unit: str, event: str) -> float:
    """Return when a unit did something, on the machine's clock."""
    return int(machine.show(unit, f"{event}TimestampMonotonic")) / 1e6


def test_each_unit_is_active_and_says_what_it_does(machine: BootedSystemd) -> None:
    statuses = {unit: machine.show(unit, "StatusText") for unit in UNITS}
    assert statuses[SOFTSWITCH_UNIT].startswith("P4Runtime on 127.0.0.1:9559; ports: 1=interface:")
    assert statuses[CONTROLLER_UNIT] == f"ready: workers and operators may connect to {HERE}:50551"
    assert statuses[SERVER_UNIT] == f"listening on {HERE}:9600"
    assert {machine.show(unit, "UnitFileState") for unit in UNITS} == {"enabled"}
    assert {machine.show(unit, "NRestarts") for unit in UNITS} == {"0"}


def check_sums(machine: BootedSystemd) -> None:
    """Have the hosts sum over the switch."""
    for address in HOSTS:
        (machine.lan.home(address) / "sum.py").write_text(SUM)
    said = run_on_all(machine.lan, f". ~/switchfold/worker.env && {sys.executable} sum.py")
    assert all("summed by the switch" in text for text in said)


def test_hosts_sum_over_the_switch_of_a_unit(machine: BootedSystemd) -> None:
    check_sums(machine)


def test_the_page_renews_certificates_that_end_soon(changed: BootedSystemd) -> None:
    authority = configuration(changed).parent / "authority"
    issued = {folder.name: folder / "cert.pem" for folder in (authority / "issued").iterdir()}
    changed.lan.run(HERE, f"switchfold certs renew {authority} {' '.join(issued)} --days 20")
    ending = {name: file.read_bytes() for name, file in issued.items()}
    for command in marked_commands(PAGE, "commands of renewal"):
        changed.lan.run(HERE, command)
    renewed = {name: file.read_bytes() for name, file in issued.items()}
    assert all(renewed[name] != ending[name] for name in issued)
    for number, address in enumerate(HOSTS, 1):
        copied = changed.lan.home(address) / "switchfold" / "cert.pem"
        assert copied.read_bytes() == renewed[f"h{number}"]
    for unit, name in ((CONTROLLER_UNIT, "controller"), (SOFTSWITCH_UNIT, "s1")):
        assert changed.run("cat", f"/run/credentials/{unit}/cert.pem").encode() == renewed[name]
    check_sums(changed)


def type_on_page(machine: BootedSystemd, what: str) -> None:
    """Type commands of the page; those on databases see the files that the units see."""
    variables = machine.lan.variables(HERE)
    kept = [f"{name}={variables[name]}" for name in ("HOME", "PATH")]
    for command in marked_commands(PAGE, what):
        if DATABASE in command:
            machine.run("env", *kept, "sh", "-c", command)
        else:
            machine.lan.run(HERE, command)


def schema_version(machine: BootedSystemd) -> int:
    read = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]))"
    words = (sys.executable, "-c", read, DATABASE, "PRAGMA user_version")
    return int(machine.run(*words).strip("(,)\n"))


def test_the_page_saves_a_database_and_puts_it_back(changed: BootedSystemd) -> None:
    copy = changed.lan.home(HERE) / "before.sqlite3"
    type_on_page(changed, "commands before an upgrade")
    type_on_page(changed, "commands after an upgrade")
    changed.run("cmp", str(copy), DATABASE, fails=True)  # the controller's term has risen
    type_on_page(changed, "commands of a roll back")
    changed.run("cmp", str(copy), DATABASE)
    changed.systemctl("restart", SOFTSWITCH_UNIT, CONTROLLER_UNIT)
    check_sums(changed)


def test_the_page_migrates_a_database_for_an_earlier_release(changed: BootedSystemd) -> None:
    type_on_page(changed, "commands of a migration")
    assert schema_version(changed) < SCHEMA_VERSION
    changed.systemctl("restart", SOFTSWITCH_UNIT, CONTROLLER_UNIT)
    check_sums(changed)
    changed.systemctl("stop", CONTROLLER_UNIT)
    assert schema_version(changed) == SCHEMA_VERSION


def test_a_controller_is_active_only_once_it_serves(changed: BootedSystemd) -> None:
    """It waits for its switch, which is not there at first."""
    changed.systemctl("stop", CONTROLLER_UNIT, SOFTSWITCH_UNIT)
    changed.systemctl("start", "--no-block", CONTROLLER_UNIT)

    def has_begun() -> bool:
        return "option election_id" in changed.run(
            "journalctl", "--output", "cat", "--quiet",
            f"_PID={changed.show(CONTROLLER_UNIT, 'MainPID')}",
        )  # fmt: skip

    wait_until(has_begun, lambda: changed.journal(CONTROLLER_UNIT), 120.0, interval_s=0.1)
    assert changed.show(CONTROLLER_UNIT, "ActiveState") == "activating"
    changed.systemctl("start", SOFTSWITCH_UNIT)
    changed.await_state(CONTROLLER_UNIT, ActiveState="active")
    assert changed.show(CONTROLLER_UNIT, "StatusText").startswith("ready: workers")
    served = seconds(changed, CONTROLLER_UNIT, "ActiveEnter")
    assert served >= seconds(changed, SOFTSWITCH_UNIT, "ActiveEnter")


def test_sums_go_on_after_each_process_was_killed(changed: BootedSystemd) -> None:
    for address in HOSTS:
        (changed.lan.home(address) / "long.py").write_text(LONG)
    command = f". ~/switchfold/worker.env && exec {sys.executable} long.py"
    running = [changed.lan.start(address, command) for address in HOSTS]

    def sums() -> int:
        file = changed.lan.home(HOSTS[0]) / "sums"
        assert [process.poll() for process in running] == [None] * len(HOSTS), [
            process.communicate()[0] for process in running if process.poll() is not None
        ]
        return int(file.read_text()) if file.exists() else 0

    def await_sums() -> None:
        before = sums()
        wait_until(lambda: sums() > before + 10, f"no sums after {before}", 240.0)

    await_sums()
    for unit in (SOFTSWITCH_UNIT, CONTROLLER_UNIT):
        killed = changed.show(unit, "MainPID")
        changed.systemctl("kill", "--signal=KILL", unit)
        changed.await_state(unit, ActiveState="active", NRestarts="1")
        assert changed.show(unit, "MainPID") != killed
        assert "code=killed, status=9/KILL" in changed.journal(unit)
        await_sums()
    for address in HOSTS:
        (changed.lan.home(address) / "enough").touch()
    said = [process.communicate(timeout=240)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], "\n".join(said)


def test_a_process_that_hangs_is_started_again(changed: BootedSystemd) -> None:
    changed.drop_in(SERVER_UNIT, "[Service]\nWatchdogSec=2\n")
    changed.systemctl("restart", SERVER_UNIT)
    changed.systemctl("kill", "--signal=STOP", SERVER_UNIT)
    wait_until(
        lambda: "Watchdog timeout (limit 2s)!" in changed.journal(SERVER_UNIT),
        lambda: changed.journal(SERVER_UNIT),
        240.0,
        interval_s=0.1,
    )
    changed.drop_in(SERVER_UNIT, "")
    changed.await_state(SERVER_UNIT, ActiveState="active", StatusText=f"listening on {HERE}:9600")
    assert int(changed.show(SERVER_UNIT, "NRestarts")) > 0


def test_a_wrong_file_fails_a_unit_at_once_and_the_journal_says_why(changed: BootedSystemd) -> None:
    file = configuration(changed)
    file.write_text(f"straggler = 7\n{file.read_text()}")
    changed.systemctl("restart", CONTROLLER_UNIT, fails=True)
    changed.await_state(CONTROLLER_UNIT, ActiveState="failed", SubState="failed")
    assert changed.show(CONTROLLER_UNIT, "ExecMainStatus") == "2"
    assert changed.show(CONTROLLER_UNIT, "NRestarts") == "0"
    (reason,) = [
        each for each in changed.journal(CONTROLLER_UNIT).splitlines() if "straggler" in each
    ]
    assert reason.startswith("error: ")
    assert "controller.toml" in reason


def test_a_credential_that_is_missing_fails_a_unit(changed: BootedSystemd) -> None:
    authority = configuration(changed).parent / "authority"
    key = authority / "issued" / "controller" / "key.pem"
    key.rename(authority / "key.pem")
    try:
        changed.systemctl("restart", CONTROLLER_UNIT, fails=True)
        changed.await_state(CONTROLLER_UNIT, ActiveState="failed")
    finally:
        (authority / "key.pem").rename(key)
    assert changed.show(CONTROLLER_UNIT, "ExecMainStatus") == "243"
    assert "status=243/CREDENTIALS" in changed.journal(CONTROLLER_UNIT)


def test_a_process_that_always_fails_is_not_started_without_end(changed: BootedSystemd) -> None:
    """However slowly it fails: systemd's own limit holds for ten seconds alone."""
    changed.systemctl("stop", SERVER_UNIT)
    changed.systemctl("reset-failed", SERVER_UNIT)
    failing = "[Service]\nExecStart=\nExecStart=/bin/false\nRestartSec=3\n"
    changed.drop_in(SERVER_UNIT, failing)
    changed.systemctl("start", SERVER_UNIT, fails=True)
    changed.await_state(SERVER_UNIT, ActiveState="failed", SubState="failed")
    assert changed.show(SERVER_UNIT, "NRestarts") == str(STARTS)
    assert "Start request repeated too quickly." in changed.journal(SERVER_UNIT)


def test_processes_have_few_rights_and_write_where_they_must(machine: BootedSystemd) -> None:
    for unit, capabilities in zip(UNITS, ({12, 13}, set[int](), set[int]()), strict=True):
        process = machine.show(unit, "MainPID")
        lines = machine.run("cat", f"/proc/{process}/status").splitlines()
        status = dict(line.split(":", 1) for line in lines)
        bits = sum(1 << number for number in capabilities)
        assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")] == [bits] * 3
        assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
        user = status["Uid"].split()[0]
        assert 61184 <= int(user) <= 65519, "no dynamic user"
        for kind in ("State", "Cache"):
            for name in machine.show(unit, f"{kind}Directory").split():
                folder = f"/var/{'lib' if kind == 'State' else 'cache'}/private/{name}"
                owner, mode = machine.run("stat", "--format=%u %a", folder).split()
                assert owner == user
                assert kind == "Cache" or mode == "700"
                assert machine.run("ls", folder) != "", f"nothing in {folder}"
        inside = ("nsenter", "--target", process, "--mount", "--", "touch")
        for folder in ("/usr", "/etc", "/var", "/var/lib"):
            assert "Read-only file system" in machine.run(*inside, f"{folder}/x", fails=True)


def test_units_stop_in_the_reverse_order_of_their_starts(changed: BootedSystemd) -> None:
    changed.drop_in("basic.target", "[Unit]\nAllowIsolate=yes\n")
    changed.systemctl("isolate", "basic.target")  # as at a shutdown, all together
    for unit in UNITS:
        assert changed.show(unit, "ActiveState") == "inactive", changed.journal(unit)
        assert changed.show(unit, "Result") == "success"
        assert changed.show(unit, "ExecMainStatus") == "0"
    ended = seconds(changed, CONTROLLER_UNIT, "InactiveEnter")
    assert ended <= seconds(changed, SOFTSWITCH_UNIT, "ActiveExit")


def test_systemd_finds_nothing_to_complain_about(machine: BootedSystemd) -> None:
    said = machine.run("systemd-analyze", "verify", *files_of(machine))
    assert [line for line in said.splitlines() if "switchfold-" in line] == []


def test_nothing_is_left_behind() -> None:
    """No process, no group, and nothing in folders of this machine."""
    folder = Path(tempfile.mkdtemp(prefix="sf-"))
    with PlainLan(folder, (HERE,)) as lan:
        (folder / UNIT_NAME).write_text(UNIT)
        with BootedSystemd(lan, HERE) as systemd:
            systemd.systemctl("enable", "--now", str(folder / UNIT_NAME))
            systemd.await_state(UNIT_NAME, ActiveState="active")
            assert systemd.run("ls", "/var/lib/private") == "switchfold-left\n"
            assert written() == []
            assert len(systemd.processes()) > 2
        assert systemd.processes() == []
        assert not systemd.group.exists()
    assert written() == []
    assert not folder.exists()
