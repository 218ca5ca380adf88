# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Traces, captures, rates and exported entries of a testbed whose switch sums a vector."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scapy.layers.l2 import Ether

from page_commands import blocks, section
from switchfold import p4src
from switchfold.bmv2_topos import Testbed, state
from switchfold.bmv2_topos.commands.live_command import live, live_file
from switchfold.bmv2_topos.errors import TestbedError
from switchfold.bmv2_topos.processes.debugging import SwitchDebugging
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.controller.__main__ import run
from switchfold.hostlib.captures.scapy_layer import SwitchfoldPacket
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.slots.wire import Operation
from switchfold.softswitch.commands.command import main as softswitch
from switchfold.softswitch.trace.pcap import read_pcap
from time_bound import wait_until
from typed_testbed import run_testbed

WORKER = """
import numpy as np
from switchfold.hostlib.captures.scapy_layer import SwitchfoldPacket
from switchfold.hostlib.config import join_from_environment

with join_from_environment() as session:
    total = session.allreduce(np.full(64, session.view.worker_id + 1, dtype=np.int32)).result()
    assert (total == 3).all(), total
    session.barrier("end")
"""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "own_p4.md"
TYPED = next(blocks(section(PAGE.read_text("utf-8"), "Observing"))).commands


@pytest.fixture(autouse=True)
def records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep these tests' records apart; the path stays short enough for sockets."""
    root = tmp_path_factory.mktemp("r")
    monkeypatch.setattr(state, "records_directory", lambda: root)
    return root


def made(debugging: SwitchDebugging) -> Testbed:
    return Testbed(single_switch(2), mode="udp", variant="narrow", debugging=debugging)


def sums_of(path: Path) -> list[bytes]:
    """Return the frames of a capture that ask the switch to add."""
    return [
        frame
        for frame in read_pcap(path)
        if SwitchfoldPacket in Ether(frame)
        and Ether(frame)[SwitchfoldPacket].operation == Operation.AGGREGATE_ADD
    ]


def sum_once(testbed: Testbed) -> None:
    results = testbed.run_workers([sys.executable, "-c", WORKER], timeout_s=300)
    assert [result.exit_status for result in results] == [0, 0], results


def test_trace_and_captures_tell_what_the_switch_did(tmp_path: Path) -> None:
    trace = tmp_path / "traces" / "s1.trace"
    with made(
        SwitchDebugging(trace_dir=trace.parent, trace_count=40, pcap_dir=tmp_path / "pcap")
    ) as testbed:
        sum_once(testbed)
        wait_until(
            lambda: "out: port" in trace.read_text("utf-8"), lambda: trace.read_text("utf-8")
        )
    files = [tmp_path / "pcap" / "s1" / f"port{port}.pcap" for port in (1, 2)]
    captures = [[*read_pcap(path)] for path in files]
    text = trace.read_text("utf-8")
    assert "operation=1 OPERATION_AGGREGATE_ADD" in text
    assert "worker_admission.p4:" in text, "the P4 lines are found"
    assert all(captures), "both hosts have sent frames"


def test_rates_of_a_running_switch(tmp_path: Path) -> None:
    with made(SwitchDebugging(live_dir=tmp_path / "live")) as testbed:
        sum_once(testbed)
        path = live_file(testbed.name, None)
        assert path == tmp_path / "live" / "s1.live"

        def show() -> Result:
            return CliRunner().invoke(live, ["--name", testbed.name, "s1"])

        wait_until(lambda: "ipv4_forward" in show().output, lambda: show().output)
        assert show().exit_code == 0


def test_a_trace_with_exported_entries_is_what_the_switch_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = tmp_path / "s1.txtpb"

    def take_part(worker_id: int) -> None:
        variables = testbed.endpoint(worker_id).environment("train")
        with join_from_environment(variables=variables) as session:
            session.allreduce(np.ones(64, np.int32)).result()
            if worker_id == 0:
                words = ["--controller", testbed.controller_address, "--out", str(entries)]
                assert run(["switch", "entries", "s1", *words]) == 0
            session.barrier("exported")  # then the job may end, and its entries with it

    with (
        made(SwitchDebugging(pcap_dir=tmp_path / "pcap")) as testbed,
        ThreadPoolExecutor(2) as pool,
    ):
        for part in [pool.submit(take_part, worker_id) for worker_id in range(2)]:
            part.result()
    assert "entries" in capsys.readouterr().err
    sent = sums_of(tmp_path / "pcap" / "s1" / "port1.pcap")[0]

    def traced(*words: str) -> str:
        program = p4src.artefacts("narrow")
        files = str(program.json), "--p4info", str(program.p4info)
        arguments = ["trace", *files, "--port", "1", "--frame", sent.hex(), *words]
        result = CliRunner().invoke(softswitch, arguments)
        assert result.exit_code == 0, result.output
        return result.output

    job = "worker_admission.job"
    assert f"{job}: miss -> SwitchfoldIngress.worker_admission.foreign_job" in traced()
    with_entries = traced("--entries", str(entries))
    assert f"{job}: hit, entry 0 (0x01) -> SwitchfoldIngress.worker_admission.admit_root" in (
        with_entries
    )
    assert "OUTCOME_FOREIGN_JOB, was" not in with_entries
    assert "out: port" not in with_entries, "the first of two contributions"


def test_a_testbed_without_live_says_what_to_do(tmp_path: Path) -> None:
    with (
        made(SwitchDebugging(pcap_dir=tmp_path)) as testbed,
        pytest.raises(TestbedError, match="--live DIRECTORY"),
    ):
        live_file(testbed.name, "s1")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: shlex.split(typed)[3])
def test_a_command_of_the_page_makes_the_file_that_it_names(
    typed: str, records: Path, tmp_path: Path
) -> None:
    made: dict[str, Callable[[], bool]] = {
        "--trace": lambda: "out: port" in (tmp_path / "traces/s1.trace").read_text("utf-8"),
        "--live": lambda: "ipv4_forward" in run_testbed(records, "live", "--name", "t").stdout,
        "--pcap-dir": lambda: bool(sums_of(tmp_path / "captures/s1/port1.pcap")),
    }
    program, testbed, up, *options = shlex.split(typed, comments=True)
    assert (program, testbed, up) == ("switchfold", "testbed", "up")
    small = ("--mode", "udp", "--variant", "narrow", "--workers", "2", "--name", "t")
    try:
        done = run_testbed(records, "up", *options, *small, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        sum_once(Testbed.attach("t"))
        wait_until(made[options[0]], f"what {typed} makes, in {sorted(tmp_path.rglob('*'))}")
    finally:
        down = run_testbed(records, "down", "--name", "t")
    assert down.stdout == "testbed t is down\n"
