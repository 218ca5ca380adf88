# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that tolerate loss, over links that lose packets: results say what is in them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from live_testbed import LiveTestbed
from switchfold.bmv2_topos import Testbed, Topology, state
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.topology.fabrics import leaf_spine
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.hostlib import ConfigurationError, JobEndedError, JoinError
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.loss_tolerance import CompletionReason, Delivery, LossTolerance
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_NARROW
from switchfold.hostlib.straggler import StragglerPolicy
from time_bound import wait_until

NUM_WORKERS = 4
WAIT_S = 60.0
TOLERANCE = LossTolerance(loss=0.1)
POLICY = StragglerPolicy(tolerance=TOLERANCE)
SIZE = 32 * 400 - 5
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
WORKER = """
import hashlib
import json
import numpy as np
from switchfold.hostlib import LossTolerance, SessionOptions, StragglerPolicy
from switchfold.hostlib.config import join_from_environment

SIZE = 32 * 200 - 5
policy = StragglerPolicy(tolerance=LossTolerance(loss=0.1))
lines = []
with join_from_environment(SessionOptions(timeout_s=200.0, straggler=policy)) as session:
    view = session.view
    for number in range(4):
        arrays = [
            np.random.default_rng((number, worker)).integers(-99, 100, SIZE).astype(np.float32)
            for worker in range(view.num_workers)
        ]
        future = session.allreduce(arrays[view.worker_id], precision="block")
        total, delivery = future.result(200), future.delivery
        for worker, ranges in delivery.missing.items():
            for start, end in ranges:
                arrays[worker][start:end] = 0
        np.testing.assert_array_equal(total, np.sum(arrays, axis=0))
        lines.append(
            {
                "digest": hashlib.sha256(total.tobytes()).hexdigest(),
                "missing": dict(delivery.missing),
                "coverage": delivery.coverage,
                "least": min(delivery.delivered.values()),
            }
        )
    session.barrier("end")
    print(json.dumps({"sums": lines, "statistics": session.statistics}))
"""


def impaired(topology: Topology, switch: str) -> list[str]:
    """Return options that let a switch lose contributions of its hosts, and results to them."""
    options: list[str] = []
    for link in topology.links:
        if link.switch == switch:
            for direction, loss in (("in", 0.05), ("out", 0.01)):
                options += ["--impair", f"{link.port}:{direction}:loss={loss},seed={link.port}"]
    return options


@pytest.fixture(scope="module", params=["one switch", "leaves"])
def testbed(request: pytest.FixtureRequest) -> Generator[LiveTestbed]:
    topology = single_switch(NUM_WORKERS) if request.param == "one switch" else leaf_spine(2, 1, 2)
    with LiveTestbed(topology, switch_options=impaired(topology, "s1")) as made:
        yield made


def delivery_of(future: AllreduceFuture) -> Delivery:
    future.result(WAIT_S)
    assert future.delivery is not None
    return future.delivery


def arrays(seed: int) -> list[NDArray[np.float32]]:
    """Whole numbers, which a block sum has to the bit."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-99, 100, SIZE).astype(np.float32) for _ in range(NUM_WORKERS)]


def present(delivery: Delivery) -> NDArray[np.bool_]:
    """Return by worker which of its values are said to be in the result."""
    is_in = np.ones((NUM_WORKERS, SIZE), bool)
    for worker, ranges in delivery.missing.items():
        for start, end in ranges:
            is_in[worker, start:end] = False
    return is_in


def expected_mean(given: list[NDArray[np.float32]], delivery: Delivery) -> NDArray[np.float32]:
    """Return the mean of what is said to be in the result."""
    is_in = present(delivery)
    sums = np.where(is_in, np.array(given), 0).sum(axis=0)
    return (sums / is_in.sum(axis=0)).astype(np.float32)


def reduce_all(
    workers: list[Session], given: list[NDArray[Any]], **options: Any
) -> list[AllreduceFuture]:
    return [w.allreduce(a, **options) for w, a in zip(workers, given, strict=True)]


def test_result_is_the_mean_of_what_it_says(testbed: LiveTestbed) -> None:
    with testbed.sessions(NUM_WORKERS, "mean", straggler=POLICY) as workers:
        reasons: set[CompletionReason] = set()
        for number in range(10):
            given = arrays(number)
            futures = reduce_all(workers, given, op="mean", precision="block")
            results = [future.result(WAIT_S) for future in futures]
            assert len({result.tobytes() for result in results}) == 1, "all have the same bytes"
            delivery = delivery_of(futures[0])
            assert {str(delivery_of(each).missing) for each in futures} == {str(delivery.missing)}
            assert delivery.coverage >= 1 - TOLERANCE.loss
            assert min(delivery.delivered.values()) >= TOLERANCE.least_of_worker
            np.testing.assert_allclose(results[0], expected_mean(given, delivery), rtol=2e-6)
            counts = {each.contributors for each in delivery.contributors}
            assert min(counts) == futures[0].num_contributors
            reasons.add(delivery.reason)
        assert CompletionReason.TOLERATED in reasons
        assert sum(w.statistics["value_packets_flushed"] for w in workers) > 0
        # The exponents of blocks come whole: a lost one is sent again.
        assert sum(w.statistics["exponent_packets_flushed"] for w in workers) == 0


def test_large_packets_lack_nothing_over_lossy_links(testbed: LiveTestbed) -> None:
    """Every other packet has values 1,024 times as large, and the mask is exact to the value."""
    is_large = np.arange(SIZE) // VALUES_PER_PACKET_NARROW % 2 == 1
    scale = np.where(is_large, np.float32(1024), np.float32(1))
    num_missing = 0
    with testbed.sessions(NUM_WORKERS, "large", straggler=POLICY) as workers:
        for number in range(10):
            given = [array * scale for array in arrays(number)]
            futures = reduce_all(workers, given, precision="block", large_first=True)
            results = [future.result(WAIT_S) for future in futures]
            delivery = delivery_of(futures[0])
            assert {str(delivery_of(each).missing) for each in futures} == {str(delivery.missing)}
            is_in = present(delivery)
            assert is_in[:, is_large].all(), "large packets have everybody"
            assert is_in.mean() >= 1 - TOLERANCE.loss
            num_missing += int((~is_in).sum())
            for result in results:
                np.testing.assert_array_equal(result, np.where(is_in, given, 0).sum(axis=0))
        assert num_missing > 0, "some of the small ones were let go"


def test_tensor_may_want_all_or_have_its_own_tolerance(testbed: LiveTestbed) -> None:
    with testbed.sessions(NUM_WORKERS, "own", straggler=POLICY) as workers:
        given: list[NDArray[Any]] = [np.full(SIZE, 1 << w, np.int32) for w in range(NUM_WORKERS)]
        for _ in range(3):
            for tolerance, share in ((LossTolerance(loss=0), 1.0), (LossTolerance(loss=0.3), 0.7)):
                futures = reduce_all(workers, given, tolerance=tolerance)
                deliveries = [delivery_of(future) for future in futures]
                assert min(each.coverage for each in deliveries) >= share
                values = futures[0].result(WAIT_S)
                in_none = ((values >> w & 1) == 0 for w in range(NUM_WORKERS))
                missing = [int(each.sum()) for each in in_none]
                assert missing == [
                    sum(end - start for start, end in deliveries[0].missing.get(worker, ()))
                    for worker in range(NUM_WORKERS)
                ]
        exact = reduce_all(workers, [np.full(99, 0.1, np.float32)] * NUM_WORKERS)
        assert {future.result(WAIT_S).tobytes() for future in exact} == {
            np.full(99, np.float32(4 * np.float64(np.float32(0.1)))).tobytes()
        }
        assert {future.num_contributors for future in exact} == {NUM_WORKERS}
        with pytest.raises(ConfigurationError, match="an exact sum of float32 lacks nothing"):
            workers[0].allreduce(np.ones(9, np.float32), tolerance=TOLERANCE)


def test_job_shows_its_tolerance_and_refuses_another_one(testbed: LiveTestbed) -> None:
    with testbed.sessions(NUM_WORKERS, "shown", straggler=POLICY) as workers:
        assert {worker.view.straggler for worker in workers} == {
            StragglerPolicy(tolerance=LossTolerance(loss=0.1, worker_floor=0.8))
        }
        code, out, _ = testbed.command("job", "show", "shown")
        assert code == 0
        assert "may lack 10 % of all contributions, and has at least 80 % of each worker's" in out
        shown = testbed.show("job", "show", "shown")
        expected = {"loss": 0.1, "worker_floor": 0.8, "stale": 0.0}
        assert shown["tolerance"] == expected, json.dumps(shown)


def test_workers_that_disagree_are_told(testbed: LiveTestbed) -> None:
    other = StragglerPolicy(tolerance=LossTolerance(loss=0.2))

    def is_waiting() -> bool:
        return testbed.command("job", "show", "two")[0] == 0

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(testbed.join, 0, 2, "two", straggler=POLICY)
        wait_until(is_waiting, "the first worker's job")
        with pytest.raises(JoinError, match=r"may lack 0\.2 .*the first worker said.* 0\.1"):
            testbed.join(1, 2, "two", straggler=other)
        assert testbed.command("job", "stop", "two")[0] == 0
        with pytest.raises(JobEndedError):
            first.result(WAIT_S)


def test_tolerance_needs_a_job_that_has_one(testbed: LiveTestbed) -> None:
    with (
        testbed.sessions(1, "whole") as (worker,),
        pytest.raises(ConfigurationError, match="this job waits for all contributions"),
    ):
        worker.allreduce(np.ones(9, np.int32), tolerance=TOLERANCE)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("softswitch", marks=needs_root),
        pytest.param("bmv2", marks=[*needs_root, *needs_bmv2]),
    ],
)
def test_link_that_loses_a_fifth_is_tolerated_within_the_bounds(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what one host sends; another one does not get some of the results."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    name = f"loss-{os.getpid()}"
    with Testbed(single_switch(NUM_WORKERS), name=name, target=target, variant="narrow") as testbed:
        testbed.impair_link("h1", "s1", "loss=0.2", sender="h1")
        testbed.impair_link("s1", "h2", "loss=0.05", sender="s1")
        results = testbed.run_workers([sys.executable, "-c", WORKER], timeout_s=250)
    for result in results:
        assert result.exit_status == 0, f"worker {result.worker_id}:\n{result.output}"
    told = [json.loads(result.output.splitlines()[-1]) for result in results]
    for number, each in enumerate(told[0]["sums"]):
        assert {str(worker["sums"][number]) for worker in told} == {str(each)}, "all have the same"
        assert each["coverage"] >= 1 - TOLERANCE.loss
        assert each["least"] >= TOLERANCE.least_of_worker
    counts = [worker["statistics"] for worker in told]
    assert sum(each["value_packets_flushed"] for each in counts) > 0
    assert sum(each["exponent_packets_flushed"] for each in counts) == 0
    assert min(each["coverage"] for each in told[0]["sums"]) < 1
