# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole testbeds on every target: switch and controller up, sums by workers, traffic, counters."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest

from switchfold.bmv2_topos import Testbed, leaf_spine, state
from switchfold.bmv2_topos.errors import ProcessFailedError, TestbedBusyError
from switchfold.bmv2_topos.network.port_counters import SwitchCalls, read_port_bytes
from switchfold.bmv2_topos.processes.daemons import Mode, Target, Variant, program_files
from switchfold.bmv2_topos.processes.processes import read_records
from switchfold.bmv2_topos.topology.topology import single_switch
from time_bound import wait_until
from typed_testbed import run_testbed

pytestmark = pytest.mark.timeout(600)
needs_root = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
needs_bmv2 = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on the PATH"
    ),
]
KINDS = [
    pytest.param("softswitch", "udp", "wide", id="softswitch-udp"),
    pytest.param("softswitch", "veth", "wide", id="softswitch-veth", marks=needs_root),
    pytest.param("bmv2", "veth", "narrow", id="bmv2-veth", marks=[*needs_root, *needs_bmv2]),
]

WORKER = """
import numpy as np
from switchfold.hostlib.config import join_from_environment

with join_from_environment() as session:
    array = np.arange(5000, dtype=np.int32) * (session.view.worker_id + 1)
    total = session.allreduce(array, timeout_s=120).result()
    assert (total == np.arange(5000) * 3).all(), total
    session.barrier("end")
print("summed")
"""
TALK = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talker:
    talker.bind((sys.argv[1], 7000))
    talker.settimeout(0.2)
    while True:
        talker.sendto(b"hello", (sys.argv[2], 7000))
        try:
            text, sender = talker.recvfrom(100)
        except TimeoutError:
            continue
        for _ in range(3):  # the other end may have missed the first
            talker.sendto(b"hello", (sys.argv[2], 7000))
        print(text.decode(), "from", sender[0])
        break
"""


@pytest.fixture(autouse=True)
def records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep these tests' records apart; the path stays short enough for sockets."""
    root = tmp_path_factory.mktemp("r")
    monkeypatch.setattr(state, "records_directory", lambda: root)
    return root


@pytest.mark.parametrize(("target", "mode", "variant"), KINDS)
def test_testbed_sums_inside_its_switch(target: Target, mode: Mode, variant: Variant) -> None:
    with Testbed(single_switch(2), target=target, mode=mode, variant=variant) as made:
        results = made.run_workers([sys.executable, "-c", WORKER], timeout_s=400)
        assert [result.output for result in results] == ["summed\n"] * 2
        payload_bytes = 5000 * 4
        for link in made.link_bytes():
            assert link.from_host_bytes > payload_bytes, made.link_bytes()
            assert link.to_host_bytes > payload_bytes, made.link_bytes()

        def do_counters_agree() -> bool:
            # Retransmissions of a busy machine's workers may still be under way.
            calls = SwitchCalls(
                addresses=made.switch_addresses,
                p4info=program_files(variant)[1],
                credentials=made.switch_operator,
            )
            by_switch = read_port_bytes(made.topology, calls)
            return all(
                program.from_host_bytes <= kernel.from_host_bytes
                and program.to_host_bytes == kernel.to_host_bytes
                for kernel, program in zip(made.link_bytes(), by_switch, strict=True)
            )

        wait_until(do_counters_agree, "the same bytes by the program and by the kernel")
        status = made.status()
        assert status.is_up
        assert {name for name, _, alive in status.processes if alive} == {"s1", "controller"}


@pytest.mark.parametrize(("target", "mode", "variant"), KINDS)
def test_testbed_sums_over_a_tree_of_switches(target: Target, mode: Mode, variant: Variant) -> None:
    topology = leaf_spine(2, 1, 1, uplink_rate_bits_per_s=25_000_000)
    with Testbed(topology, target=target, mode=mode, variant=variant) as made:
        results = made.run_workers([sys.executable, "-c", WORKER], timeout_s=400)
        assert [result.output for result in results] == ["summed\n"] * 2
        for uplink in made.switch_link_bytes():  # more where a slow switch makes workers repeat
            assert uplink.from_a_bytes > 5000 * 4, uplink
            assert uplink.from_b_bytes > 5000 * 4, uplink


@pytest.mark.parametrize(("target", "mode", "variant"), KINDS[1:])
def test_hosts_reach_each_other_through_the_switch(
    target: Target, mode: Mode, variant: Variant
) -> None:
    with Testbed(single_switch(2), target=target, mode=mode, variant=variant) as made:
        addresses = [host.address for host in made.topology.hosts]
        results = made.run_workers(
            lambda endpoint: [
                sys.executable,
                "-c",
                TALK,
                addresses[endpoint.worker_id],
                addresses[1 - endpoint.worker_id],
            ],
            timeout_s=400,
        )
        assert [result.output for result in results] == [
            "hello from 10.0.0.2\n",
            "hello from 10.0.0.1\n",
        ]


TOPOLOGY = re.search(
    r"### Topologies from a file.*?```toml\n(.*?)```",
    (Path(__file__).parents[2] / "docs" / "own_p4.md").read_text("utf-8"),
    re.DOTALL,
)


def test_a_testbed_of_the_topology_file_in_the_docs_sums(records: Path, tmp_path: Path) -> None:
    assert TOPOLOGY, "docs/own_p4.md shows a file"
    file = tmp_path / "mine.toml"
    file.write_text(TOPOLOGY[1])
    words = ("--mode", "udp", "--topology-file", str(file), "--name", "mine")
    up = run_testbed(records, "up", *words)
    assert up.returncode == 0, up.stderr
    try:
        attached = Testbed.attach("mine")
        assert [switch.name for switch in attached.topology.switches] == ["s1", "s2"]
        results = attached.run_workers([sys.executable, "-c", WORKER], timeout_s=400)
        assert [result.output for result in results] == ["summed\n"] * 2
    finally:
        down = run_testbed(records, "down", "--name", "mine")
    assert down.stdout == "testbed mine is down\n"


def test_commands_leave_a_testbed_up_and_take_it_down(records: Path) -> None:
    command = partial(run_testbed, records)

    up = command("up", "--mode", "udp", "--workers", "2", "--name", "kept", "--json")
    assert up.returncode == 0, up.stderr
    try:
        assert json.loads(up.stdout)["is_up"]
        again = command("up", "--mode", "udp", "--name", "kept")
        assert again.returncode == 1
        assert "is up" in again.stderr
        shown = command("status", "--name", "kept", "--json")
        assert shown.returncode == 0
        (only,) = json.loads(shown.stdout)
        assert [name for name, _, alive in only["processes"] if alive] == ["controller", "s1"]
        for node in ("s1", "controller"):
            again = command("restart", "--name", "kept", node)
            assert again.stdout == f"{node} of testbed kept runs again\n", again.stderr
        refused = command("restart", "--name", "kept", "s2")
        assert refused.returncode == 2
        assert "there are s1" in refused.stderr
        assert "no cables" in command("cut", "--name", "kept", "h1", "s1").stderr
        attached = Testbed.attach("kept")
        results = attached.run_workers([sys.executable, "-c", WORKER], timeout_s=400)
        assert [result.output for result in results] == ["summed\n"] * 2
        with pytest.raises(TestbedBusyError, match="is up"):
            Testbed(single_switch(2), mode="udp", name="kept").up()
        processes = read_records(records / "kept")
    finally:
        down = command("down", "--name", "kept")
    assert down.stdout == "testbed kept is down\n"
    assert not any(process.living() for process in processes)
    assert list(records.iterdir()) == []
    assert command("status", "--name", "kept").returncode == 1


def test_switch_that_cannot_start_is_shown_with_its_last_words(records: Path) -> None:
    made = Testbed(single_switch(1), mode="udp", switch_options=["--no-such-option"])
    with pytest.raises(ProcessFailedError, match="no-such-option"):
        made.up()
    assert list(records.iterdir()) == []
