# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts that fail while a job runs, on a live testbed: errors, their times, doctor's verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live_testbed import LiveTestbed
from stream_clock import install_still_clock
from switchfold.bmv2_topos import state
from switchfold.bmv2_topos.processes import daemons
from switchfold.hostlib import errors
from switchfold.hostlib.options import Precision
from switchfold.hostlib.session import Session
from time_bound import wait_until

ARRAY = np.arange(3000, dtype=np.int32)


@pytest.fixture(scope="module", autouse=True)
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep these tests' records apart; the path stays short enough for sockets."""
    root = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        yield root


@pytest.fixture(scope="module")
def whole(records: Path) -> Iterator[LiveTestbed]:
    """A testbed that no test of this module breaks."""
    with LiveTestbed(3) as live:
        yield live


@pytest.fixture
def frail(records: Path) -> Iterator[LiveTestbed]:
    """A testbed to break."""
    with LiveTestbed(3) as live:
        yield live


def sums(sessions: list[Session]) -> None:
    """Sum ARRAY once on all workers and check the results."""
    futures = [session.allreduce(ARRAY, timeout_s=60) for session in sessions]
    for future in futures:
        np.testing.assert_array_equal(future.result(60), ARRAY * len(sessions))


def listed(live: LiveTestbed) -> list[dict[str, Any]]:
    """Return the live jobs."""
    jobs: Any = live.show("job", "list")
    return jobs


def failed(found: dict[str, tuple[str, str]]) -> set[str]:
    return {name for name, (status, _) in found.items() if status == "fail"}


def test_doctor_healthy_without_and_with_a_job(
    whole: LiveTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found = whole.doctor()
    assert (code, failed(found)) == (0, set())
    assert found["jobs"] == ("ok", "none is live | ")
    # Packets that a busy machine delays are not sent again: that would be a symptom.
    install_still_clock(monkeypatch)
    timers = dict.fromkeys(("min_rto_s", "initial_rto_s", "max_rto_s"), 60.0)
    with whole.sessions(3, **timers) as sessions:
        sums(sessions)
        code, found = whole.doctor()
        assert (code, failed(found)) == (0, set())
        assert found["job train"] == ("ok", "running with 3 workers | ")
        assert found["job train packets"][0] == "ok"
        assert "none of them a symptom" in found["switch s1 packets"][1]


def test_worker_that_never_arrives_is_named_within_its_time(records: Path) -> None:
    with (
        # The worker itself waits longer, so that the verdict reaches it.
        LiveTestbed(2, controller_options=("--join-timeout", "3")) as live,
        pytest.raises(errors.WorkerArrivalError) as info,
    ):
        live.join(0, 2, "alone", join_timeout_s=60)
    assert "worker 1 of 2 never arrived within" in str(info.value)


def test_doctor_names_the_worker_that_has_not_arrived(whole: LiveTestbed) -> None:
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(whole.join, 0, 2, "lonely", join_timeout_s=60)
        # That of another test may still be there.
        wait_until(
            lambda: [job["name"] for job in listed(whole)] == ["lonely"], "the job on the list"
        )
        code, found = whole.doctor()
        whole.command("job", "stop", "lonely")
        assert isinstance(joining.exception(60), errors.HostlibError)
    assert (code, failed(found)) == (1, {"job lonely"})
    assert "waits for worker 1 of 2" in found["job lonely"][1]


def test_worker_that_stops_is_named_within_the_timeout(whole: LiveTestbed) -> None:
    with whole.sessions(3, timeout_s=5, lease_s=60) as sessions:
        sums(sessions)
        futures = [session.allreduce(ARRAY) for session in sessions[:2]]
        found = [future.exception(60) for future in futures]
        assert all(isinstance(error, errors.AllreduceTimeoutError) for error in found), found
        # Once the first one has given up and left, the job may change when the other's time is up.
        named = [e.worker_ids for e in found if isinstance(e, errors.WorkerMissingError)]
        assert named in ([[2]], [[2], [2]]), found
        with pytest.raises(errors.SessionBrokenError):
            sessions[0].allreduce(ARRAY)


@pytest.mark.parametrize(
    ("precision", "ranges"),
    [("block", [(64, 96), (4960, 4992)]), ("exact", [(0, 5000)])],  # chunks, and groups of them
)
def test_nonfinite_value_of_one_worker_is_told_to_all(
    whole: LiveTestbed, precision: Precision, ranges: list[tuple[int, int]]
) -> None:
    arrays = [np.ones(5000, np.float32) for _ in range(3)]
    arrays[1][[70, 4990]] = np.nan, np.inf
    with whole.sessions(3) as sessions:
        futures = [
            s.allreduce(a, precision=precision) for s, a in zip(sessions, arrays, strict=True)
        ]
        found = [future.exception(60) for future in futures]
        for error in found:
            assert isinstance(error, errors.NonFiniteError)
            assert error.ranges == ranges
        sums(sessions)


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.zeros(0, np.float32), errors.EmptyTensorError),
        (np.zeros((3, 0), np.int32), errors.EmptyTensorError),
        (np.zeros(4, np.int64), errors.UnsupportedDtypeError),
        (np.zeros(4, np.complex64), errors.UnsupportedDtypeError),
        (np.array(["a"]), errors.UnsupportedDtypeError),
    ],
)
def test_refused_array_harms_nobody(
    whole: LiveTestbed, array: np.ndarray, error: type[Exception]
) -> None:
    with whole.sessions(2) as sessions:
        with pytest.raises(error):
            sessions[0].allreduce(array)
        sums(sessions)


def test_switch_killed_during_a_job_moves_it_to_the_hosts(frail: LiveTestbed) -> None:
    with frail.sessions(2) as sessions:
        sums(sessions)
        frail.kill("s1")
        sums(sessions)
        assert not sessions[0].view.is_on_switch


def test_switch_killed_during_a_job(records: Path) -> None:
    # The controller waits longer for another route than the workers do.
    waits = ("--no-route", "600", "--join-timeout", "15")
    with LiveTestbed(3, controller_options=waits) as frail:
        check_killed_switch(frail)


def check_killed_switch(frail: LiveTestbed) -> None:
    much = np.ones(10_000_000, np.int32)
    with frail.sessions(2, timeout_s=300, has_peers=False) as sessions:
        sums(sessions)
        futures = [session.allreduce(much) for session in sessions]
        frail.kill("s1")
        wait_until(
            lambda: frail.show("switch", "show", "s1")["state"] == "unreachable",
            "controller sees it",
        )
        # The job is there as long as its sums have time left.
        code, verdicts = frail.doctor()
        futures += [session.allreduce(ARRAY, timeout_s=2) for session in sessions]
        for error in [future.exception(60) for future in futures]:
            assert isinstance(error, errors.SwitchUnreachableError), error
            assert "switch" in str(error)
        assert code == 1
        testbed = f"testbed {frail.made.name}"
        assert failed(verdicts) == {testbed, "switch s1", "switch s1 control", "job train"}
        assert verdicts[testbed][1].startswith("s1 died")
        assert "nothing listens" in verdicts["switch s1"][1]
        assert "switch s1 is unreachable" in verdicts["job train"][1]
        with pytest.raises(errors.SessionBrokenError):
            sessions[0].allreduce(ARRAY)
        with pytest.raises(errors.PortTakenError, match="taken"):
            frail.join(0, 1, "beside it")
    with pytest.raises(errors.JoinError, match="s1"):
        frail.join(0, 1, "next")  # it waits for the switch to come back


def test_heavy_loss_ends_at_the_timeout(records: Path) -> None:
    impairments = ("--impair", "1:in:loss=0.9,seed=1", "--impair", "1:out:loss=0.9,seed=2")
    with (
        LiveTestbed(2, switch_options=impairments) as live,
        # Neither moved to the hosts nor evicted before the time is up.
        live.sessions(2, timeout_s=2, lease_s=60, has_peers=False) as sessions,
    ):
        futures = [session.allreduce(np.ones(500_000, np.int32)) for session in sessions]
        found = [future.exception(60) for future in futures]
        assert all(isinstance(error, errors.AllreduceTimeoutError) for error in found), found


def test_controller_killed_during_a_job(frail: LiveTestbed) -> None:
    with frail.sessions(2) as sessions:
        sums(sessions)
        frail.kill("controller")
        sums(sessions)
        code, found = frail.doctor()
        assert code == 1
        assert found["controller"][0] == "fail"
        assert "no controller answers" in found["controller"][1]
        assert found[f"testbed {frail.made.name}"][1].startswith("controller died")
        code, _, err = frail.command("job", "list")
        assert code == 3
        assert err.startswith("error: no controller answers at")
        with pytest.raises(errors.ControllerUnreachableError):
            frail.join(2, 3, "next", join_timeout_s=2)
        config = frail.made.run_directory / "controller.toml"
        frail.made.start("controller", daemons.controller_command(config), ready_timeout_s=60)
        with ThreadPoolExecutor(2) as pool:
            for wait in [pool.submit(s.barrier, "back", 60) for s in sessions]:
                wait.result()
        sums(sessions)
        code, found = frail.doctor()
        assert (code, failed(found)) == (0, set())
