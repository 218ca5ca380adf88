# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/deployment.md, on machines that nothing of ours has set up."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployed_lan import HERE, HOSTS, JOINING, SUM, deploy, run_on_all
from plain_lan import PlainLan
from switchfold.controller.config import load_config

CABLED = ("10.0.0.11", "10.0.0.12", "10.0.0.13")

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces"),
]

LONG = (
    JOINING
    + """\
    def count(wants_more):
        return session.allreduce(np.full(10_000, wants_more, np.int32)).result()[0]

    def wait_for(name):
        while not os.path.exists(name):
            time.sleep(0.05)

    assert count(True) == 3
    print("joined", flush=True)
    wait_for("go")
    until = time.monotonic() + 12
    while count(time.monotonic() < until) == 3:
        pass
    print("went on", flush=True)
    wait_for("end")
"""
)


@pytest.fixture(scope="module")
def lan() -> Iterator[PlainLan]:
    # Paths of sockets are short.
    with PlainLan(Path(tempfile.mkdtemp(prefix="sf-")), (HERE, *HOSTS)) as made:
        deploy(made)
        yield made


def test_hosts_sum_over_a_softswitch_with_one_card(lan: PlainLan) -> None:
    for address in HOSTS:
        (lan.home(address) / "sum.py").write_text(SUM)
    said = run_on_all(lan, f". ~/switchfold/worker.env && {sys.executable} sum.py")
    assert all("summed by the switch" in text for text in said)


def test_a_worker_sees_no_failed_check(lan: PlainLan) -> None:
    """The switch is at 127.0.0.1 of the controller's machine, which is not this one."""
    lan.run(HERE, "cp -r switchfold-deployment/authority/issued/operator $HOMES/192.168.7.11/me")
    said = lan.run(
        HOSTS[0],
        f"SWITCHFOLD_CREDENTIALS=$HOME/me switchfold doctor --controller {HERE}:50551",
    )
    assert "127.0.0.1:9559 is on the controller's host" in " ".join(said.split())


def test_a_job_goes_on_while_nobody_answers_arp_for_the_switch(lan: PlainLan) -> None:
    """The controller answers for the switch; kernels ask again after seconds here."""
    neighbours = "net.ipv4.neigh.eth0."
    times = ("base_reachable_time_ms=1000", "delay_first_probe_time=1", "retrans_time_ms=100")
    for address in HOSTS:
        lan.run(address, f"sysctl -w {' '.join(neighbours + each for each in times)}")
        (lan.home(address) / "long.py").write_text(LONG)
    command = f". ~/switchfold/worker.env && {sys.executable} long.py"
    running = [lan.start(address, command) for address in HOSTS]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n", process.stdout.read()
    controller = lan.unit_process("switchfold-controller.service")
    os.kill(controller, signal.SIGSTOP)
    try:
        for address in HOSTS:
            (lan.home(address) / "go").touch()
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "went on\n", process.stdout.read()
    finally:
        os.kill(controller, signal.SIGCONT)
    for address in HOSTS:
        (lan.home(address) / "end").touch()
    said = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], "\n".join(said)


@pytest.fixture
def cabled() -> Iterator[PlainLan]:
    """Hosts with a cable each to a machine with three cards, which has another network, too."""
    here = "10.0.0.1"
    with PlainLan(Path(tempfile.mkdtemp(prefix="sf-")), (here, *CABLED), is_bridged=False) as made:
        made.run(here, "ip link add mgmt0 type bridge && ip addr add 192.168.1.5/24 dev mgmt0")
        yield made


def ports_of(lan: PlainLan) -> dict[str, int]:
    config = load_config(lan.home("10.0.0.1") / "switchfold-deployment" / "controller.toml")
    assert config.listen == "192.168.1.5:50551"
    assert config.switches[0].service_address == "10.0.0.14"
    return {host.address: host.port for host in config.switches[0].hosts}


def test_hosts_are_found_behind_the_cards_of_softswitch(cabled: PlainLan) -> None:
    cabled.run(
        "10.0.0.1",
        f"switchfold deploy init {' '.join(reversed(CABLED))} --softswitch eno2 --softswitch eno1"
        " --softswitch 7=eno3 --listen 192.168.1.5:50551",
    )
    assert ports_of(cabled) == {"10.0.0.11": 2, "10.0.0.12": 1, "10.0.0.13": 7}


def test_a_host_without_a_cable_is_told_and_nothing_is_written(cabled: PlainLan) -> None:
    process = cabled.start(
        "10.0.0.1",
        f"switchfold deploy init {' '.join(CABLED)} --softswitch eno1 --softswitch eno2"
        " --listen 192.168.1.5:50551",
    )
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 1
    words = " ".join(said.split())
    assert "10.0.0.13 does not answer ARP behind eno1, eno2" in words
    assert "do: look whether it is up" in words
    assert not (cabled.home("10.0.0.1") / "switchfold-deployment" / "controller.toml").exists()


def test_a_p4runtime_switch_says_where_the_hosts_are(cabled: PlainLan) -> None:
    switch = cabled.start(
        "10.0.0.1",
        "exec softswitch run --insecure --port 4=interface:eno1 --port 9=interface:eno2"
        " --port 2=interface:eno3 2>softswitch.log",
    )
    assert switch.stdout is not None
    assert switch.stdout.readline().startswith("ready")
    cabled.run(
        "10.0.0.1",
        f"switchfold deploy init {' '.join(CABLED)} --switch s1=127.0.0.1:9559 --insecure"
        " --listen 192.168.1.5:50551",
    )
    assert ports_of(cabled) == {"10.0.0.11": 4, "10.0.0.12": 9, "10.0.0.13": 2}
