# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hot rows of real workers and servers in a tree of switches, and on BMv2."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hot_drill import HotDrill, drill_testbed
from switchfold.bmv2_topos import Topology, single_switch, state
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.topology.fabrics import leaf_spine

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
needs_bmv2 = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on the PATH"
    ),
]
NUM_WORKERS, NUM_SERVERS = 4, 2
NUM_PUSHES = {"softswitch": 40, "bmv2": 10}
"""Of each worker; BMv2 takes far fewer packets in a second."""


def tree() -> Topology:
    """Three workers at one leaf; the fourth is at the other, as both servers are."""
    return leaf_spine(2, 1, 3, host_rate_bits_per_s=None, uplink_rate_bits_per_s=None)


@pytest.mark.parametrize(
    ("target", "topology"),
    [
        pytest.param("softswitch", tree(), id="softswitch-tree"),
        pytest.param("bmv2", single_switch(NUM_WORKERS + NUM_SERVERS), id="bmv2", marks=needs_bmv2),
        pytest.param("bmv2", tree(), id="bmv2-tree", marks=needs_bmv2),
    ],
)
def test_sums_through_hot_rows_are_exact(
    target: Target, topology: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    testbed = drill_testbed(topology, f"test-rows-{os.getpid()}", target)
    drill = HotDrill(
        testbed, tmp_path, num_workers=NUM_WORKERS, num_servers=NUM_SERVERS, hot_keys=60
    )
    with testbed, drill:
        drill.await_hot_rows()
        drill.await_progress(NUM_PUSHES[target])
        drill.await_hot_rows()
        drill.check()
