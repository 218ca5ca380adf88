# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller drops the update of a worker behind a slow link; the others commit."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.support.transfers import restart_controller
from fabric_job import LIMIT_S, FabricJob
from frames_to import FramesTo
from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed, Topology, single_switch, state
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from time_bound import wait_until

NUM_WORKERS = 5
FIRST, SLOW = 0, NUM_WORKERS - 1
FAST = range(1, SLOW)
TAU_MAX = len(FAST)
"""Behind the first update, there is a place for each fast worker, and none for the slow one."""
NUM_VALUES = 1 << 19
UPDATE_BYTES = 4 * NUM_VALUES
RATE = 100_000_000
FIRST_RATE = 1_000_000
"""The first update is on its path for over 16 s, in which all others ask for their grants."""
SLOW_RATE = 2_000_000
"""8 s; the other updates take less than 0.2 s each."""
TRANSFERS = {
    "batch_max": str(NUM_WORKERS - 1),
    "batch_wait_s": str(LIMIT_S),
    "grant_wait_s": str(LIMIT_S),
    "server_wait_s": str(LIMIT_S),
    "overdue_least_s": str(LIMIT_S),
}
"""A batch closes when all have asked, however slow the machine is; nothing is given up."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


def topology() -> Topology:
    """Return hosts around a switch: of the first worker, fast ones, the slow one, the server."""
    made = single_switch(NUM_WORKERS + 1, rate_bits_per_s=RATE)
    links = list(made.links)
    for worker, rate in (FIRST, FIRST_RATE), (SLOW, SLOW_RATE):
        links[worker] = dataclasses.replace(links[worker], rate_bits_per_s=rate)
    return dataclasses.replace(made, links=tuple(links))


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    with Testbed(topology(), name=f"test-drops-{os.getpid()}") as testbed:
        restart_controller(testbed, TRANSFERS)
        yield testbed


def tallies(report: dict[str, Any], name: str) -> list[int]:
    """Return a count of each worker."""
    return [each[name] for each in report["workers"]]


def test_slow_workers_update_is_dropped_before_its_bytes_leave(testbed: Testbed) -> None:
    fabric = Fabric(testbed)
    definition = TensorDefinition(name="w", num_values=NUM_VALUES)
    with FabricJob(testbed, definition, tau_max=TAU_MAX, grant_wait_s=LIMIT_S) as job:
        updates = [
            np.random.default_rng(number).integers(-9, 10, NUM_VALUES).astype(np.float32)
            for number in range(NUM_WORKERS)
        ]
        before = [sent for sent, _ in fabric.carried()]
        interface, address = testbed.topology.hosts[SLOW].interface, fabric.addresses[NUM_WORKERS]
        stream = fabric.at(SLOW, lambda: FramesTo(interface, address))
        first = job.workers[FIRST].push(updates[FIRST])
        wait_until(lambda: tallies(job.report(), "grants")[FIRST] == 1, "the first grant", LIMIT_S)
        others = [job.workers[number].push(updates[number]) for number in (*FAST, SLOW)]
        dropped = others[-1].result(LIMIT_S)
        outcomes = [future.result(LIMIT_S) for future in (first, *others[:-1])]
        sent = [after - was for (after, _), was in zip(fabric.carried(), before, strict=True)]

        assert dropped.drop_reasons == ("no order fits",), dropped.drop_reasons
        assert all(outcome.is_committed and outcome.parts[0].is_granted for outcome in outcomes)
        with closing(stream):
            # Control frames are counted; receipts of the model are not, as they have no payload.
            assert 0 < stream.num_payload_bytes < UPDATE_BYTES // 20
        assert min(sent[number] for number in (FIRST, *FAST)) >= UPDATE_BYTES
        # The newest model, when the drop was known, has the first so many of the commits.
        order = sorted(range(SLOW), key=lambda number: outcomes[number].parts[0].version)
        got = int(job.workers[SLOW].commits[0])
        assert dropped.model is not None
        zeros = np.zeros(NUM_VALUES, np.float32)
        assert np.array_equal(dropped.model, sum((updates[each] for each in order[:got]), zeros))

        # The model that it has got may be older than what was under way: it takes the newest one.
        total = sum(updates[:SLOW], zeros)
        assert np.array_equal(job.workers[SLOW].get().result(LIMIT_S), total)
        again = job.workers[SLOW].push(updates[SLOW]).result(LIMIT_S)
        assert again.is_committed
        assert np.array_equal(job.workers[1].get().result(LIMIT_S), total + updates[SLOW])
        report = job.report()
        assert tallies(report, "pushes") == [1] * SLOW + [2]
        assert tallies(report, "commits") == [1] * NUM_WORKERS
        assert tallies(report, "drops") == [0] * SLOW + [1]
        assert not any(
            count
            for name in ("withdrawn", "ungranted", "refused")
            for count in tallies(report, name)
        )
