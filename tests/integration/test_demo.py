# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold demo`: its proofs hold, and all of it runs over TLS without a further command."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path

import pytest

from secured_testbeds import SecuredTestbeds, secured_testbeds
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.cli.demo.perceptron import NUM_PARAMETERS
from switchfold.hostlib.slots.wire import VALUE_BYTES

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
    jobs = ["demo", "alone-switch", "alone-host"]
    secured_testbeds.check(*[f"{job}-{host}" for job in jobs for host in ("h1", "h2")])
    check_report(tmp_path / "report", mode)


def check_report(folder: Path, mode: str) -> None:
    """The report says where it ran, and compares the switch with the hosts alone."""
    results = json.loads((folder / "results.json").read_text("utf-8"))
    page = (folder / "report.html").read_text("utf-8")
    assert {"topology", "links", "time", "commit", "cpu", "cores"} <= set(results["facts"])
    for fact in results["facts"].values():
        assert html.escape(fact) in page
    assert "switchfold testbed up" in page
    assert (folder / "links.png").exists()
    assert ("run the demo as root" in page) == (mode == "udp")
    compared = results["comparison"]
    assert compared["algorithm"] == "ring"
    assert "over TCP (a ring)" in page
    for way in ("switch", "hosts"):
        assert compared[way]["median_s"] > 0
        hosts = [link["host"] for link in compared[way]["links"]]
        # Over loopback, what hosts send each other does not pass the switch.
        assert hosts == ([] if (way, mode) == ("hosts", "udp") else ["h1", "h2"])
        for link in compared[way]["links"]:
            # Two hosts: a ring sends as much as the switch gets, each value once.
            assert min(link["to_switch"], link["from_switch"]) >= NUM_PARAMETERS * VALUE_BYTES
