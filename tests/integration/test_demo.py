# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold demo`: its proofs hold, and all of it runs over TLS without a further command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secured_testbeds import SecuredTestbeds, secured_testbeds
from switchfold.controller.__main__ import run as run_command

__all__ = ["secured_testbeds"]


@pytest.mark.parametrize("mode", ["udp", "veth"])
def test_demo_is_secured(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    secured_testbeds: SecuredTestbeds,
    mode: str,
) -> None:
    if mode == "veth" and os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    report = tmp_path / "report.html"
    words = ("demo", "--mode", mode, "--workers", "2", "--epochs", "1", "--report", str(report))
    code = run_command([*words, "--rate-mbit", "1000"])
    out = capfd.readouterr().out
    assert "proved" in out, out
    print(code, out)
    secured_testbeds.check("demo-h1", "demo-h2")
