# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A transposed job whose links lose packets, half of whose workers have dynamic incast."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from benchmarks.transport.conditions import parse_condition
from benchmarks.transport.fabrics import (
    WORKERS,
    PlainFabric,
    fabric,
    impair_workers,
    module_environment,
)
from switchfold.bmv2_topos import state
from switchfold.bmv2_topos.processes.worker_runs import WorkerEndpoint

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
WORKER = """
import hashlib
import json
import os
import sys
import time
import numpy as np
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment

SIZE = 352 * 300 - 5
END_S = time.monotonic() + 200
worker, num_workers = map(int, sys.argv[1:])
variables = {
    **os.environ,
    "SWITCHFOLD_WORKER_ID": str(worker),
    "SWITCHFOLD_NUM_WORKERS": str(num_workers),
    "SWITCHFOLD_PATH": "transposed",
    "SWITCHFOLD_DYNAMIC_INCAST": str(worker % 2),
}
for name in ("SWITCHFOLD_INGRESS_PORT", "SWITCHFOLD_MAC"):
    del variables[name]  # the switch beside the host does not add
options = SessionOptions(timeout_s=200.0, precision="block", min_workers=num_workers)
digests = []
with join_from_environment(options, variables=variables) as session:
    assert session.view.is_transposed
    num_trying = num_late = 0
    while num_trying < num_workers // 2 and not num_late:
        arrays = [
            np.random.default_rng((len(digests), each)).integers(-99, 100, SIZE).astype(np.float32)
            for each in range(num_workers)
        ]
        total = session.allreduce(arrays[worker]).result(200)
        np.testing.assert_array_equal(total, np.sum(arrays, axis=0))
        digests.append(hashlib.sha256(total.tobytes()).hexdigest())
        state = session.statistics["incast_trials"] > 0, time.monotonic() > END_S
        num_trying, num_late = session.allreduce(np.array(state, np.int32)).result(200)
    session.barrier("end")
    trials = session.statistics["incast_trials"]
    print(json.dumps({"digests": digests, "trials": trials}))
"""


def worker_command(endpoint: WorkerEndpoint) -> list[str]:
    """Return what a host runs: a worker, or nothing."""
    name = endpoint.host.name
    if name not in WORKERS:
        return ["true"]
    return [sys.executable, "-c", WORKER, str(WORKERS.index(name)), str(len(WORKERS))]


def test_workers_with_and_without_dynamic_incast_have_the_same_exact_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    with PlainFabric(fabric(20_000_000), WORKERS, name=f"di{os.getpid()}") as plain:
        impair_workers(plain.testbed, parse_condition("0.1"), seed=1)
        results = plain.testbed.run_workers(
            worker_command, timeout_s=250, environment=module_environment()
        )
    told: list[tuple[list[str], int]] = []
    for result, host in zip(results, plain.testbed.topology.hosts, strict=True):
        assert result.exit_status == 0, f"{host.name}:\n{result.output}"
        if host.name in WORKERS:
            said = json.loads(result.output.splitlines()[-1])
            told.append((said["digests"], said["trials"]))
    assert {str(digests) for digests, _ in told} == {str(told[0][0])}
    assert told[0][0], "there were sums"
    assert [trials > 0 for _, trials in told] == [False, True, False, True]
