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
    words = ("--mode", mode, "--workers", "2", "--epochs", "4", "--rate-mbit", "1000")
    run_command(["demo", *words, "--report", str(tmp_path / "report")])
    out = capfd.readouterr().out
    failed = [line for line in out.splitlines() if "FAILED" in line]
    # How long training takes is this machine's, and no test's.
    assert all("training ends in under" in line for line in failed), out
    assert out.count("proved") >= 5, out
    secured_testbeds.check("demo-h1", "demo-h2")
