# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold top` and `doctor --why-slow` on a testbed: by worker, link, processor; no sums."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from live_testbed import LiveTestbed
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.controller.cli.top import command
from switchfold.hostlib.session import Session
from time_bound import wait_until

NUM_WORKERS = 3
NARROW_BITS_PER_S = 1_000_000
SECONDS = ("--seconds", "3")
LIMIT_S = 240.0
BURN = "while True: pass"


def why_slow(testbed: LiveTestbed, job: str = "train") -> str:
    """Return what doctor says of the job."""
    _, checks = testbed.doctor("--why-slow", job, *SECONDS)
    ((name, (_, text)),) = checks.items()
    assert name == f"job {job} slow"
    return text


def waited_for(activity: dict[str, Any]) -> set[tuple[int, ...]]:
    """Return the workers for which the rounds of a job wait."""
    return {tuple(each["missing_workers"]) for each in activity["waiting_now"]}


def test_late_worker_is_named_and_an_idle_job_is_not_guessed_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with (
        LiveTestbed(NUM_WORKERS) as testbed,
        testbed.sessions(NUM_WORKERS, timeout_s=LIMIT_S) as sessions,
    ):
        assert "cannot tell: it has summed nothing for" in why_slow(testbed)
        values = np.ones(4096, np.float32)
        first = [session.allreduce(values) for session in sessions[:-1]]

        def is_one_late() -> bool:
            (activity,) = testbed.show("top")["activity"]
            return waited_for(activity) == {(2,)}

        wait_until(is_one_late, "rounds that wait for worker 2 alone")
        assert "limited by worker 2: " in why_slow(testbed)

        shown = testbed.show("top")
        (activity,) = shown["activity"]
        assert activity["workers"][2]["last_share"] == 1.0
        assert waited_for(activity) == {(2,)}
        assert all(r["switch"] == "s1" and r["is_stuck"] for r in activity["waiting_now"])
        code, out, err = testbed.command("top")
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80
        assert "2 (100 %)" in out
        assert "Slots that wait now" in out
        assert "worker 2 " in out

        num_looks = 0

        def look_twice(*arguments: Any) -> Any:
            nonlocal num_looks
            num_looks += 1
            if num_looks > 2:
                raise KeyboardInterrupt
            return look(*arguments)

        look = command._look
        monkeypatch.setattr(command, "_look", look_twice)
        code, out, err = testbed.command("top", "--watch")
        assert (code, err) == (0, "")
        assert out.count("Slots that wait now") == 2
        monkeypatch.setattr(command, "_look", look)

        last = sessions[-1].allreduce(values)
        for future in (*first, last):
            assert (future.result() == NUM_WORKERS).all()


@contextmanager
def summing(sessions: list[Session]) -> Generator[None]:
    """Let all workers sum until the context is left; all end at the same tensor."""
    is_over = threading.Event()

    def sum_on(session: Session) -> None:
        values = np.ones(65536, np.float32)
        while True:
            wants = session.allreduce(np.array([is_over.is_set()], np.int32)).result(LIMIT_S)
            if wants[0] == len(sessions):
                return
            session.allreduce(values, precision="block").result()

    threads = [threading.Thread(target=sum_on, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def wait_for_verdict(testbed: LiveTestbed, begin: str) -> str:
    """Ask until doctor names this limit; return what it says."""
    found: list[str] = []

    def is_named() -> bool:
        found.append(why_slow(testbed))
        return begin in found[-1]

    wait_until(is_named, lambda: found[-1])
    return found[-1]


def test_narrow_link_is_named() -> None:
    """Asked again and again: a busy machine may leave the link idle for a while."""
    topology = single_switch(2)
    narrow = dataclasses.replace(topology.links[0], rate_bits_per_s=NARROW_BITS_PER_S)
    topology = dataclasses.replace(topology, links=(narrow, *topology.links[1:]))
    with (
        LiveTestbed(topology, shaping="switch") as testbed,
        testbed.sessions(2, timeout_s=LIMIT_S) as sessions,
        summing(sessions),
    ):
        found = wait_for_verdict(testbed, "limited by the link ")
    assert "of 1 Mbit/s" in found
    assert "h1" in found.partition(":")[0]


@contextmanager
def busy_cores() -> Generator[None]:
    """Use all that other processes leave of every core: these have the lowest priority."""
    with contextlib.ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            burner = subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", BURN])
            stack.callback(burner.wait)
            stack.callback(burner.kill)
        yield


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < (os.cpu_count() or 1),
    reason="this process may not use all cores, so it cannot make all of them busy",
)
def test_busy_processor_is_named_with_what_the_testbed_uses() -> None:
    """The links have no rate to fill, and workers wait for each other alone."""
    with (
        LiveTestbed(single_switch(2, rate_bits_per_s=None)) as testbed,
        testbed.sessions(2, timeout_s=LIMIT_S) as sessions,
        summing(sessions),
        busy_cores(),
    ):
        found = wait_for_verdict(testbed, "limited by the processor: ")
    assert f"of this machine's {os.cpu_count()} cores" in found
    assert re.search(r"the testbed's own processes, (s1|controller) used most: \d", found)
    assert re.search(r"other processes, as workers are, used \d", found)


def test_job_that_is_not_there_is_refused() -> None:
    with LiveTestbed(1) as testbed:
        code, checks = testbed.doctor("--why-slow", "nobody", *SECONDS)
        assert code == 1
        assert "cannot tell: job 'nobody' is not running" in checks["job nobody slow"][1]
        assert testbed.show("top")["activity"] == []
