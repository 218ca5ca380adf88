# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The command line against a live controller: tables, JSON, exit codes, doctor's verdicts."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from controller_fixtures import (
    command,
    fake_switch,
    join_all,
    make_config,
    run,
    running_controller,
    serving,
)
from fake_row_server import FakeRowServer
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.__main__ import COMMANDS
from switchfold.controller.cli import bench as bench_module
from switchfold.controller.cli.output import default_controller
from switchfold.controller.config import DEFAULT_LISTEN
from switchfold.controller.jobs.job import slots_of_rows
from switchfold.controller.switches.switch_session import LinkState
from switchfold.hostlib.slots.wire import Outcome
from time_bound import until

__all__ = ["command"]


@pytest.fixture(autouse=True)
def nothing_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.controller.cli.doctor.system._CONNECT_TIMEOUT_S", 60.0)
    monkeypatch.setattr("switchfold.controller.rows.row_lease.ROW_LEASE_S", 60.0)


def test_command_help_and_version(command: Any):
    code, out, _ = run(command("--help"))
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert "Exit codes" in out
    assert run(command("--version"))[0] == 0


@pytest.mark.parametrize(
    "name",
    ["controller run", "doctor", "job list", "job show", "job stop", "shell", "switch list"],
)
def test_command_help_has_examples(command: Any, name: str):
    code, out, _ = run(command(*name.split(), "--help"))
    assert code == 0
    assert "Example" in out
    assert "Exit codes" in out


def test_command_wrong_use(command: Any):
    assert run(command("no-such-command"))[0] == 2
    assert run(command("job", "show"))[0] == 2
    code, _, err = run(command("controller", "run", "--switch", "nonsense"))
    assert (code, err) == (2, "error: --switch 'nonsense' is not NAME=HOST:PORT[/DEVICE_ID]\n")


def test_command_without_a_controller(command: Any):
    address = f"127.0.0.1:{free_port()}"
    for arguments in (["job", "list"], ["switch", "show", "s1"], ["shell"]):
        code, _, err = run(command(*arguments, "--controller", address))
        assert code == 3
        assert err.startswith(f"error: no controller answers at {address}")
    code, out, _ = run(command("doctor", "--json", "--controller", address))
    assert code == 1
    assert verdicts(out)["controller"] == "fail"


def test_command_bench_needs_a_checkout(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bench_module, "_FOLDER", tmp_path)
    code, _, err = run(command("bench", "--workers", "4"))
    assert code == 1
    assert "clone the repository" in err


def test_command_bench_names_the_benchmarks(command: Any):
    code, _, err = run(command("bench", "speed"))
    assert code == 1
    assert "no benchmark 'speed'; choose one of allreduce, host, trees, contention, planning" in err


def test_command_bench_runs_the_scripts_of_the_checkout():
    for script in bench_module._SCRIPTS.values():
        assert (bench_module._FOLDER / script).is_file()
    command = [sys.executable, "-m", "switchfold.controller", "bench", "planning", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: tree_planning.py" in done.stdout


def test_command_shell_without_a_switch(command: Any):
    code, _, err = run(command("shell", "--address", f"127.0.0.1:{free_port()}"))
    assert code == 1
    assert "no switch answers" in err


def test_command_jobs_and_switches(tmp_path: Path, command: Any):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            at = ("--controller", server.address)
            workers = await join_all(server.address, 2, slots_wanted=16)
            for worker in workers:
                await worker.join_reply()
            count(fake, Outcome.ABSORBED, 7)

            code, out, _ = await command("job", "list", "--json", *at)
            (job,) = json.loads(out)
            assert (code, job["name"], job["state"], job["slot_count"]) == (
                0,
                "train",
                "running",
                16,
            )
            code, out, _ = await command("job", "show", "train", "--json", *at)
            job = json.loads(out)
            assert job["counts"]["absorbed"]["packets"] == 7
            assert job["switch_counts"]["s1"]["absorbed"]["packets"] == 7
            assert [worker["address"] for worker in job["workers"]] == ["10.0.0.1", "10.0.0.2"]
            (installed,) = job["views"]
            assert (installed["state"], installed["path"]) == ("installed", "switch")
            assert (installed["members"], job["generation"]) == ([0, 1], installed["generation"])
            (tree,) = installed["trees"]
            assert (tree["slot_count"], tree["nodes"][0]["switch"]) == (16, "s1")
            assert tree["nodes"][0]["workers"] == [0, 1]
            code, out, _ = await command("job", "show", "train", *at)
            assert code == 0
            assert "s1:0..15" in out
            assert "0..1" in out
            assert "10.0.0.2" in out
            assert "absorbed" in out
            assert "stale" not in out
            code, out, _ = await command("switch", "show", "s1", "--json", *at)
            switch = json.loads(out)
            assert (switch["state"], switch["used_slots"]) == ("ready", 16)
            (lease,) = switch["leases"]
            assert (lease["job"], lease["tree_id"], lease["parent"]) == (
                "train",
                tree["tree_id"],
                "",
            )
            assert [port["host"] for port in switch["ports"]] == ["h1", "h2", "h3", "h4"]
            for arguments in (["job", "list"], ["switch", "list"], ["switch", "show", "s1"]):
                code, out, _ = await command(*arguments, *at)
                assert code == 0
                assert "s1" in out
            # The fake serves P4Runtime alone, as BMv2 does.
            assert not switch["tells_port_losses"]
            assert "This switch does not count the frames that its ports lose." in out

            code, out, _ = await command("job", "stop", "train", *at)
            assert (code, out) == (0, "job train is ended: stopped by the operator\n")
            for worker in workers:
                assert "stopped by" in (await worker.receive()).job_ended.reason
                await worker.close()
            code, out, _ = await command("job", "show", "train", "--json", *at)
            job = json.loads(out)
            assert (job["state"], job["counts"]["absorbed"]["packets"]) == ("ended", 7)
            assert json.loads((await command("job", "list", "--json", *at))[1]) == []
            code, out, _ = await command("job", "list", *at)
            assert (code, out) == (0, "no live job; --all shows ended ones\n")
            assert len(json.loads((await command("job", "list", "--all", "--json", *at))[1])) == 1
            for arguments in (["job", "show", "x"], ["job", "stop", "x"], ["switch", "show", "x"]):
                code, _, err = await command(*arguments, *at)
                assert code == 1
                assert err.startswith("error: no ")

    run(scenario())


def test_commands_show_row_servers(tmp_path: Path, command: Any):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            at = ("--controller", server.address)
            rows = [
                await FakeRowServer(server.address, 1, address="10.0.0.4").attach(),
                await FakeRowServer(
                    server.address, 2, address="10.0.0.3", rows_wanted=9000
                ).attach(),
            ]
            servers = server.membership.row_servers
            # Each has a connection of its own; a later one would change the job's view.
            await until(lambda: len(servers.of_job("train")) == 2)
            workers = await join_all(server.address, 2, slots_wanted=16)
            places = [await one.place() for one in rows]
            _, out, _ = await command("job", "show", "train", "--json", *at)
            (view,) = json.loads(out)["views"]
            assert [server["server_id"] for server in view["row_servers"]] == [1, 2]
            first, second = view["row_servers"]
            assert (first["switch"], first["num_rows"], first["reason"]) == ("s1", 8, "")
            assert first["state"] == "attached"
            assert (second["first_row"], second["tree_id"]) == (8, places[1].tree_id)
            _, out, _ = await command("job", "show", "train", *at)
            assert "Row servers" in out
            assert "0..7" in out
            assert f"8..{places[1].num_rows + 7}" in out
            assert "9000" in out
            _, out, _ = await command("switch", "show", "s1", *at)
            num_slots = slots_of_rows(8 + places[1].num_rows)
            assert f"slots {16 + num_slots} of 1024 in use" in out
            assert f"{1024 - num_slots}..1023" in out
            for end in rows:
                await end.close()

            async def states() -> list[str]:
                _, out, _ = await command("job", "show", "train", "--json", *at)
                (view,) = json.loads(out)["views"]
                return [server["state"] for server in view["row_servers"]]

            while await states() != ["detached", "detached"]:
                pass
            for worker in workers:
                await worker.close()

    run(scenario())


def test_switch_without_neighbours_has_no_table_of_ports(tmp_path: Path, command: Any) -> None:
    async def scenario() -> None:
        async with fake_switch() as one:
            config = make_config(tmp_path, one)
            (switch,) = config.switches
            config = dataclasses.replace(config, switches=(dataclasses.replace(switch, hosts=()),))
            async with serving(config) as server:
                at = ("--controller", server.address)
                code, out, _ = await command("switch", "show", "s1", *at)
                assert code == 0
                assert "No host or switch is configured at a port." in out
                assert "Frames by port" not in out

    run(scenario())


def test_command_finds_the_only_testbed(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("switchfold.controller.cli.output.records_directory", lambda: tmp_path)
    monkeypatch.delenv("SWITCHFOLD_CONTROLLER", raising=False)
    assert default_controller() == DEFAULT_LISTEN

    async def scenario() -> None:
        folder = tmp_path / "main"
        folder.mkdir()
        async with running_controller(folder, listen=f"unix:{folder}/controller.sock"):
            code, out, _ = await command("switch", "list", "--json")
            assert (code, json.loads(out)[0]["name"]) == (0, "s1")

    run(scenario())


def test_command_over_a_unix_socket(tmp_path: Path, command: Any):
    async def scenario() -> None:
        listen = f"unix:{tmp_path}/c.sock"
        async with running_controller(tmp_path, listen=listen) as (server, _):
            assert server.address == listen
            (worker,) = await join_all(listen, 1)
            await worker.join_reply()
            code, out, _ = await command("job", "list", "--json", "--controller", listen)
            assert (code, len(json.loads(out))) == (0, 1)
            asked = ("--controller", listen, "--switch", f"x={listen}")
            found = verdicts((await command("doctor", "--json", *asked))[1])
            assert found["switch x"] == "fail", "it listens, but does not speak P4Runtime"
            await worker.close()

    run(scenario())


def test_doctor_on_a_healthy_system(tmp_path: Path, command: Any):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
            code, out, _ = await command("doctor", "--json", "--controller", server.address)
            found = verdicts(out)
            assert code == 0, out
            assert found["switch s1"] == found["switch s1 program"] == found["job train"] == "ok"
            assert found["job train packets"] == found["callers"] == "ok"
            code, out, _ = await command("doctor", "--controller", server.address)
            assert code == 0
            callers = (
                r"none was refused; the address with the most calls has \d+ open, of the 1024 "
            )
            assert re.search(callers, " ".join(out.split())), out
            for worker in workers:
                await worker.close()

    run(scenario())


def test_doctor_tells_troubles_apart(tmp_path: Path, command: Any):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconcile_interval_s=60) as (server, fake):
            at = ("--json", "--controller", server.address)
            waiting = await join_all(server.address, 1, num_workers=3, job_name="waits")
            await until(lambda: server.membership.live_job("waits") is not None)
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
            for outcome in (Outcome.DUPLICATE, Outcome.FOREIGN_WORKER, Outcome.OFF_GRID):
                count(fake, outcome, 50)
            code, out, _ = await command("doctor", *at)
            found = verdicts(out)
            assert code == 1
            assert "waits for worker 1, 2 of 3" in out
            assert found["job train loss"] == found["job train foreign"] == "warn"
            assert found["job train malformed"] == "warn"

            fake.config = p4r.ForwardingPipelineConfig()
            fake.config.p4info.pkg_info.name = "acme"
            found = verdicts((await command("doctor", *at))[1])
            assert found["switch s1 program"] == "fail"
            await fake.stop()
            await until(lambda: server.links["s1"].state is LinkState.UNREACHABLE)
            found = verdicts((await command("doctor", *at))[1])
            assert found["switch s1"] == found["switch s1 control"] == "fail"
            for worker in (*waiting, *workers):
                await worker.close()

    run(scenario())


def test_doctor_on_a_switch_without_a_controller(tmp_path: Path, command: Any):
    async def scenario() -> None:
        async with fake_switch() as fake, serving(make_config(tmp_path, fake)) as server:
            at = ("doctor", "--json", "--controller", f"127.0.0.1:{free_port()}", "--switch")
            found = verdicts((await command(*at, f"s1={fake.address}"))[1])
            assert (found["switch s1"], found["switch s1 program"]) == ("ok", "ok")
            # A port that speaks gRPC but not P4Runtime: the controller's own.
            found = verdicts((await command(*at, f"s1={server.address}"))[1])
            assert found["switch s1"] == "fail"
            fake.config = None
            found = verdicts((await command(*at, f"s1={fake.address}"))[1])
            assert found["switch s1 program"] == "fail"

    run(scenario())


def verdicts(out: str) -> dict[str, str]:
    return {check["name"]: check["status"] for check in json.loads(out)["checks"]}


def count(fake: Any, outcome: Outcome, packets: int) -> None:
    """Let the fake switch have counted `packets` of every job with this outcome."""
    for name, entity in fake.entities.items():
        match = entity.table_entry.match
        if (
            len(match) == 2
            and match[1].exact.value == bytes([outcome])
            and not (entity.table_entry.action.action.params)
        ):
            fake.counters[name] = packets
