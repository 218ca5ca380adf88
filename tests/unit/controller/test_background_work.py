# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller does beside its calls: a defect that ends it is no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller_fixtures import run, running_controller
from switchfold.controller.fabric.fabric_watch import FabricWatch
from time_bound import until


def test_work_that_a_defect_ends_is_logged_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: FabricWatch) -> None:
        raise KeyError("defect")

    monkeypatch.setattr(FabricWatch, "run", fail)

    async def scenario() -> None:
        async with running_controller(tmp_path):
            await until(lambda: "the planning of trees has failed" in caplog.text)
            assert "KeyError: 'defect'" in caplog.text

    run(scenario())


def test_work_that_ends_with_the_controller_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path):
            pass

    run(scenario())
    assert "has failed" not in caplog.text
