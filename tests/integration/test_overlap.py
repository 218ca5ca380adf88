# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The overlap benchmark runs, and compares the gradients of both arrangements."""

from __future__ import annotations

import os
from argparse import Namespace

import pytest

from benchmarks.overlap import overlap
from torch_ranks import require_torch

require_torch()
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

RATE_BITS_PER_S = 50_000_000


@pytest.mark.timeout(240)
def test_overlap_benchmark_of_the_toy_net() -> None:
    options = Namespace(workers=2, rate="50M", repeats=4, attempts=1, trace=None)
    row = overlap.measure(options, "emulated", RATE_BITS_PER_S)
    # The benchmark compares the workers' gradients; its figures are not tested here.
    assert row["compute_s"] >= overlap.LONG_S + overlap.SHORT_S
    assert all(row[label]["bytes"] > 0 for label in overlap.LABELS)
