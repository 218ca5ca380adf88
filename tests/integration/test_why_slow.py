# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold top` and `doctor --why-slow` on a testbed: a late worker, a narrow link, no sums."""

from __future__ import annotations

import dataclasses
import threading
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


def test_narrow_link_is_named() -> None:
    topology = single_switch(2)
    narrow = dataclasses.replace(topology.links[0], rate_bits_per_s=NARROW_BITS_PER_S)
    topology = dataclasses.replace(topology, links=(narrow, *topology.links[1:]))
    is_over = threading.Event()

    def sum_on(session: Session) -> None:
        """Sum until all workers want to end."""
        values = np.ones(65536, np.float32)
        while True:
            wants = session.allreduce(np.array([is_over.is_set()], np.int32)).result(LIMIT_S)
            if wants[0] == 2:
                return
            session.allreduce(values, precision="block").result()

    with (
        LiveTestbed(topology, shaping="switch") as testbed,
        testbed.sessions(2, timeout_s=LIMIT_S) as sessions,
    ):
        threads = [threading.Thread(target=sum_on, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        found: list[str] = []

        def is_link_full() -> bool:
            found.append(why_slow(testbed))
            return "limited by the link " in found[-1]

        try:
            # A busy machine may leave the link idle for a while.
            wait_until(is_link_full, lambda: found[-1])
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
    assert "of 1 Mbit/s" in found[-1]
    assert "h1" in found[-1].partition(":")[0]


def test_job_that_is_not_there_is_refused() -> None:
    with LiveTestbed(1) as testbed:
        code, checks = testbed.doctor("--why-slow", "nobody", *SECONDS)
        assert code == 1
        assert "cannot tell: job 'nobody' is not running" in checks["job nobody slow"][1]
        assert testbed.show("top")["activity"] == []
