# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The ring of `switchfold calibrate` over loopback, for real.

No time is asserted: the sums are verified by the workers themselves.
"""

from __future__ import annotations

import pytest

from switchfold.controller.cli.calibrate import rig
from switchfold.controller.cli.calibrate.rig import CalibrationPlan, measure_ring


@pytest.mark.slow
def test_without_torch_the_host_allreduce_is_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig, "ring_kind", lambda: "host")
    plan = CalibrationPlan(workers=3, num_bytes=1_000_000, repeats=2, links="loopback")
    found = measure_ring(plan)
    assert {"tcp_byte_s", "ring_step_s"} <= set(found)
    assert found["tcp_byte_s"].count == 2
