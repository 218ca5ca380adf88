# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every contribution counts exactly once over veth links that lose, duplicate and reorder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from switchfold.bmv2_topos import Testbed, state
from switchfold.bmv2_topos.topology.topology import single_switch

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

NUM_WORKERS = 3
LOSS = "loss=0.05"
DUPLICATION = "duplication=0.05"
# With 16 slots a round takes about a millisecond here: held packets come many rounds late.
REORDERING = "reordering=0.05,reordering_delay_s=0.05"

WORKER = """
import json
import numpy as np
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment

with join_from_environment(SessionOptions(timeout_s=200.0, slots_wanted=16)) as session:
    view = session.view
    for number, length in enumerate((1, 5000, 100_000)):
        arrays = [
            np.random.default_rng((number, worker)).integers(-2**29, 2**29, length, np.int32)
            for worker in range(view.num_workers)
        ]
        total = session.allreduce(arrays[view.worker_id]).result(200)
        np.testing.assert_array_equal(total, np.sum(arrays, axis=0))
    session.barrier("end")
    print(json.dumps(session.statistics))
"""


@pytest.mark.parametrize(
    "impairments",
    [LOSS, DUPLICATION, REORDERING, f"{LOSS},{DUPLICATION},{REORDERING}"],
    ids=["loss", "duplication", "reordering", "all"],
)
def test_sums_exact_on_veth(
    impairments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    options: list[str] = []
    for port in range(1, NUM_WORKERS + 1):
        for direction in ("in", "out"):
            options += ["--impair", f"{port}:{direction}:{impairments},seed={port}"]
    topology = single_switch(NUM_WORKERS, rate_bits_per_s=None)
    with Testbed(topology, name=f"once-{os.getpid()}", switch_options=options) as testbed:
        results = testbed.run_workers([sys.executable, "-c", WORKER], timeout_s=250)
    for result in results:
        assert result.exit_status == 0, f"worker {result.worker_id}:\n{result.output}"
    statistics = [json.loads(result.output.splitlines()[-1]) for result in results]
    retransmitted = sum(s["value_packets_retransmitted"] for s in statistics)
    duplicates = sum(s.get("refused_duplicate", 0) for s in statistics)
    # The network was impaired as requested: both would be zero on a good network.
    if "loss" in impairments:
        assert retransmitted > 0
    if "duplication" in impairments:
        assert duplicates > 0
