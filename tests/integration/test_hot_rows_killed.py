# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Servers, switch, workers and controller are killed while workers push: every push counts once.

SWITCHFOLD_KILLS=200 makes it a long drill.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from hot_drill import HotDrill, Victim, drill_testbed
from switchfold.bmv2_topos import single_switch, state

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
NUM_WORKERS = 3
NUM_SERVERS = 2
TWO_AT_ONCE = 0.3
"""Share of the times at which something else is killed before all have recovered."""
NUM_KILLS = int(os.environ.get("SWITCHFOLD_KILLS", "4"))


@pytest.mark.timeout(300 + 20 * NUM_KILLS)
def test_every_push_counts_once_whatever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    rng = np.random.default_rng(NUM_KILLS)
    testbed = drill_testbed(single_switch(NUM_WORKERS + NUM_SERVERS), f"test-hot-{os.getpid()}")
    drill = HotDrill(
        testbed, tmp_path, num_workers=NUM_WORKERS, num_servers=NUM_SERVERS, hot_keys=60
    )
    with testbed, drill:
        for number in range(NUM_KILLS):
            drill.await_hot_rows()
            victims = [list(Victim)[number % len(Victim)]]
            if rng.random() < TWO_AT_ONCE:
                victims.append(list(Victim)[rng.integers(len(Victim))])
            for victim in victims:
                drill.kill(victim, int(rng.integers(drill.num_of(victim))))
            drill.await_progress(int(rng.integers(1, 30)))
        drill.check()
