# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""examples/clusters/ray_train.py trains on a testbed, where Ray is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.processes.rendezvous import PLACES_FILE
from torch_ranks import require_torch

require_torch()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="Ray is not here: pip install 'ray[train]'"
    ),
]
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "clusters" / "ray_train.py"


def test_workers_of_ray_train_one_model_over_the_switch(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if "SWITCHFOLD" not in name}
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    with Testbed(single_switch(2), mode="udp") as testbed:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), "--workers", "2", "--steps", "20"],
            env={
                **kept,
                "PYTHONPATH": os.pathsep.join(paths),
                "SWITCHFOLD_PLACES": str(testbed.run_directory / PLACES_FILE),
                "RAY_USAGE_STATS_ENABLED": "0",
                "HOME": str(tmp_path),
            },
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=500,
        )
    assert done.returncode == 0, done.stdout
    assert "backend switchfold: loss " in done.stdout
    assert "2 workers have the same model" in done.stdout
