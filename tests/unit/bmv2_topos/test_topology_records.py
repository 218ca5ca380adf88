# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of testbeds, processes and commands, as far as they need no privileges."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchfold.bmv2_topos import state
from switchfold.bmv2_topos.commands import testbed as commands
from switchfold.bmv2_topos.config import child_environment
from switchfold.bmv2_topos.errors import (
    PortTakenError,
    PrivilegeError,
    ProcessFailedError,
    ProcessTimeoutError,
    RecordVersionError,
    TargetMissingError,
    TestbedBusyError,
    TestbedNotFoundError,
)
from switchfold.bmv2_topos.processes.daemons import (
    SwitchSoftware,
    Target,
    switch_command,
    write_controller_config,
)
from switchfold.bmv2_topos.processes.processes import (
    ManagedProcess,
    ProcessRecord,
    is_alive,
    launch_process,
    read_records,
    start_process,
)
from switchfold.bmv2_topos.testbed import Testbed
from switchfold.bmv2_topos.topology.topology import single_switch
from time_bound import wait_until

SLEEPER = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep records of these tests in a folder of their own."""
    root = tmp_path / "records"
    monkeypatch.setattr(state, "records_directory", lambda: root)
    return root


def udp_testbed(num_workers: int = 2, **options: object) -> Testbed:
    topology = single_switch(num_workers, rate_bits_per_s=None)
    return Testbed(topology, mode="udp", has_switch=False, **options)  # type: ignore[arg-type]


def test_record_round_trips(records: Path) -> None:
    made = state.create_record("a", single_switch(3), target="bmv2", mode="udp", variant="wide")
    made.udp_ports["h1"] = (4000, 4001)
    made.controller_options = ["--lease", "60"]
    made.namespaces["sf-a-h1"] = 12
    made.save()
    assert state.load_record("a") == made
    assert made.is_owner_alive()
    made.remove()
    assert not list(records.iterdir())


def test_testbeds_of_one_process_have_names_of_their_own() -> None:
    assert len({Testbed(single_switch(2), mode="udp").name for _ in range(300)}) == 300


def test_record_of_a_live_owner_is_refused() -> None:
    with udp_testbed(name="taken"), pytest.raises(TestbedBusyError, match=str(os.getpid())):
        udp_testbed(name="taken").up()


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "x" * 25])
def test_record_names_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case"):
        state.create_record(name, single_switch(1), target="bmv2", mode="udp", variant="wide")


def test_record_of_a_dead_owner_is_swept_with_its_processes(records: Path) -> None:
    made = state.create_record("dead", single_switch(1), target="x", mode="udp", variant="wide")
    process = start_process(
        "orphan",
        SLEEPER,
        run_directory=made.directory,
        environment=child_environment(made.directory),
        dies_with_us=False,
    )
    made.owner_start_time -= 1  # as if the pid had been given to another process since
    made.save()
    with udp_testbed(name="other") as other:
        assert process.popen.wait(60) == -signal.SIGTERM
        assert state.record_names() == ["other"]
        assert other.run_directory.parent == records


def test_record_of_another_version_is_left_alone_and_told(
    records: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = state.create_record("later", single_switch(1), target="x", mode="udp", variant="wide")
    made.owner_start_time -= 1  # its owner is dead
    made.save()
    path = records / "later" / "testbed.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "invented_later": 1}))
    assert state.sweep() == []
    assert "made by another version of Switchfold" in caplog.text
    assert "['invented_later']" in caplog.text
    with pytest.raises(RecordVersionError, match="end it with that version"):
        state.load_record("later")


def test_reused_pid_is_never_signalled(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as foreign:
        record = ProcessRecord(name="x", pid=foreign.pid, start_time=1, run_directory=tmp_path)
        assert record.living() == []
        record.stop()
        assert foreign.poll() is None
        foreign.kill()


def leader_that_ended(folder: Path) -> ManagedProcess:
    """Return a process that has ended; its log has the pid of the child that it has left."""
    script = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True)"
    leader = start_process(
        "leader",
        [sys.executable, "-c", script, *SLEEPER],
        run_directory=folder,
        environment=child_environment(folder),
    )
    assert leader.wait(timeout_s=60) == 0
    return leader


def test_stop_reaches_children_of_a_dead_leader(tmp_path: Path) -> None:
    leader = leader_that_ended(tmp_path)
    child = int(leader.log.read_text())
    assert leader.record.living() == [child]
    leader.stop()
    assert leader.record.living() == []


def test_a_child_is_ours_while_it_runs_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment reads as empty for a moment then; it alone tells that the child is ours."""
    leader = leader_that_ended(tmp_path)
    empty = [6]
    read_bytes = Path.read_bytes

    def read_as_during_execve(path: Path) -> bytes:
        if path.name in {"cmdline", "environ"} and empty[0]:
            empty[0] -= 1
            return b""
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read_as_during_execve)
    assert leader.record.living() == [int(leader.log.read_text())]
    assert empty == [0]
    leader.stop()


def test_stop_kills_what_ignores_sigterm(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "os.write(int(sys.argv[1]), b'ready'); signal.pause()"
    )
    process = launch_process(
        "stubborn",
        [sys.executable, "-c", script, "{ready_fd}"],
        run_directory=tmp_path,
        environment=child_environment(tmp_path),
    ).await_ready(60)
    process.stop(term_timeout_s=0.1)
    assert process.popen.wait(60) == -signal.SIGKILL  # `stop` has not waited long


def test_start_names_the_log_of_a_process_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match=r"status 3.*\n.*no such thing"):
        launch_process(
            "failing",
            [sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"],
            run_directory=tmp_path,
            environment=child_environment(tmp_path),
        ).await_ready(60)


def test_start_stops_a_process_that_is_never_ready(tmp_path: Path) -> None:
    with pytest.raises(ProcessTimeoutError, match=r"not ready after 0\.2 s"):
        launch_process(
            "silent",
            [*SLEEPER, "{ready_fd}"],
            run_directory=tmp_path,
            environment=child_environment(tmp_path),
        ).await_ready(0.2)
    assert not any(record.living() for record in read_records(tmp_path))


def test_start_reports_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match="cannot run no-such-program"):
        launch_process(
            "missing",
            ["no-such-program"],
            run_directory=tmp_path,
            environment=child_environment(tmp_path),
        ).await_ready(60)


def test_processes_die_with_a_killed_owner(tmp_path: Path) -> None:
    script = (
        "import sys, signal; from pathlib import Path\n"
        "from switchfold.bmv2_topos.processes.processes import start_process\n"
        "from switchfold.bmv2_topos.config import child_environment\n"
        "where = Path(sys.argv[1])\n"
        "start_process('child', sys.argv[2:], run_directory=where,"
        " environment=child_environment(where))\n"
        "signal.pause()"
    )
    environment = child_environment(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), *SLEEPER], env=environment
    ) as owner:
        wait_until((tmp_path / "child.pid").exists, "child's pid file")
        (child,) = read_records(tmp_path)
        assert is_alive(child.pid, child.start_time)
        owner.kill()
    wait_until(lambda: not is_alive(child.pid, child.start_time), "end of the child")


def test_workers_run_with_their_endpoints() -> None:
    show = "import os; print(os.environ['SWITCHFOLD_WORKER_ID'], os.environ['SWITCHFOLD_ADDRESS'])"
    with udp_testbed(3) as made:
        results = made.run_workers([sys.executable, "-c", show], timeout_s=60)
        assert [result.output for result in results] == [
            "0 10.0.0.1\n",
            "1 10.0.0.2\n",
            "2 10.0.0.3\n",
        ]
        assert [result.exit_status for result in results] == [0, 0, 0]


def test_workers_that_hang_are_named_and_stopped() -> None:
    def command(endpoint: object) -> list[str]:
        return SLEEPER if getattr(endpoint, "worker_id", 0) == 1 else [sys.executable, "-c", ""]

    with udp_testbed(2) as made:
        with pytest.raises(ProcessTimeoutError, match="worker 1"):
            made.run_workers(command, timeout_s=1)
        assert not any(process.living() for process in read_records(made.run_directory))


def test_udp_port_that_is_taken_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        with pytest.raises(PortTakenError, match=str(port)):
            udp_testbed(1, udp_base_port=port).up()
    assert state.record_names() == []


def test_udp_mode_refuses_bmv2() -> None:
    with pytest.raises(ValueError, match="no UDP ports"):
        Testbed(single_switch(1), mode="udp", target="bmv2")


def test_veth_mode_without_root_points_to_udp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PrivilegeError, match="--mode udp"):
        Testbed(single_switch(1), has_switch=False).up()


def test_bmv2_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetMissingError, match="simple_switch_grpc"):
        switch_command(
            SwitchSoftware(target="bmv2"),
            single_switch(1).switches[0],
            port_specs={1: "veth:s1-eth1"},
            grpc_address="unix:/x",
            run_directory=tmp_path,
        )


@pytest.mark.parametrize("target", ["softswitch", "bmv2"])
def test_both_targets_have_a_queue_for_each_priority(
    target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    binary = tmp_path / "simple_switch_grpc"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    words = switch_command(
        SwitchSoftware(target=target, options=["--log-level", "debug"]),
        single_switch(1).switches[0],
        port_specs={1: "veth:s1-eth1"},
        grpc_address="unix:/x",
        run_directory=tmp_path,
    )
    at = words.index("--priority-queues")
    assert words[at + 1] == "8"
    if target == "bmv2":
        assert words.index("--log-level") < words.index("--") < at
    else:
        assert at < words.index("--log-level")  # options of the caller come last and win


def test_controller_config_names_every_host(tmp_path: Path) -> None:
    path = tmp_path / "controller.toml"
    write_controller_config(
        path,
        single_switch(2),
        listen="unix:/run/c.sock",
        switch_addresses={"s1": "unix:/run/s1.sock"},
        variant="wide",
    )
    content = tomllib.loads(path.read_text())
    (switch,) = content["switch"]
    assert switch["service_address"] == "10.0.0.254"
    assert [host["mac"] for host in switch["host"]] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]
    assert content["listen"] == "unix:/run/c.sock"


def test_status_command_shows_testbeds_and_refuses_unknown_names() -> None:
    runner = CliRunner()
    empty = runner.invoke(commands.testbed, ["status"])
    assert (empty.exit_code, empty.output) == (0, "no testbed\n")
    with udp_testbed(2, name="shown"):
        shown = runner.invoke(commands.testbed, ["status", "--json"])
        (only,) = json.loads(shown.output)
        assert (only["name"], only["mode"], only["is_up"]) == ("shown", "udp", True)
        assert "h2 on port 2 of s1: unshaped" in runner.invoke(commands.testbed, ["status"]).output
        refused = runner.invoke(commands.testbed, ["down", "--name", "shown"])
        assert refused.exit_code == 1
        assert "live process" in refused.output
    missing = runner.invoke(commands.testbed, ["status", "--name", "gone"])
    assert missing.exit_code == 1
    assert "no testbed gone" in missing.output


@pytest.mark.parametrize(
    "arguments", [["--rate", "fast"], ["--workers", "33"], ["--rate", "1k"], ["--lease", "0"]]
)
def test_up_command_refuses_wrong_use(arguments: list[str]) -> None:
    result = CliRunner().invoke(commands.testbed, ["up", "--mode", "veth", *arguments])
    assert result.exit_code == 2


def test_attach_to_an_unknown_testbed_is_refused() -> None:
    with pytest.raises(TestbedNotFoundError, match="no testbed gone"):
        Testbed.attach("gone")
