# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/deployment.md, on machines that nothing of ours has set up: one card."""

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
