# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients that leave during the backward pass hide their exchange, and cost no more bytes."""

from __future__ import annotations

import os
from argparse import Namespace

import pytest

from benchmarks import overlap
from torch_ranks import require_torch

require_torch()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

RATE_BITS_PER_S = 50_000_000


@pytest.mark.timeout(240)
def test_overlap_hides_the_exchange_of_the_toy_net() -> None:
    # A machine that others keep busy delays single iterations, so the least of three counts.
    options = Namespace(workers=2, rate="50M", repeats=4, attempts=3, trace=None)
    row = overlap.measure(options, "emulated", RATE_BITS_PER_S)
    assert row["compute_s"] >= overlap.LONG_S + overlap.SHORT_S
    assert row["sequential"]["median_s"] >= 2 * (overlap.LONG_S + overlap.SHORT_S) * 0.95
    assert row["ratio"] <= overlap.GATE, row
    assert abs(row["bytes_difference"]) <= overlap.BYTES_AGREEMENT, row
