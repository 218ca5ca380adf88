# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Requirements of a benchmark, facts about its machine, and the rate that its links carry."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.support import processor
from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.network.rate_probe import probe_rate
from switchfold.controller.cli import installed_torch
from switchfold.controller.cli.demo.machine_facts import machine_facts

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def parse_rate(text: str) -> int:
    """Return bits/s of a text such as 100M."""
    unit = text[-1:] if text[-1:] in UNITS else ""
    return round(float(text.removesuffix(unit)) * UNITS.get(unit, 1))


def check_machine(*, has_torch: bool = True) -> None:
    """Raise SystemExit that names what is missing and the remedy."""
    if os.geteuid() != 0:
        raise SystemExit("the benchmark needs root: it makes network namespaces with shaped links")
    if has_torch and not installed_torch.has_torch():
        raise SystemExit(
            "the benchmark needs torch for its comparison with Gloo: `make bench` installs it, or "
            "pip install '.[bench]'"
        )


def probed_rate(rate_bits_per_s: int) -> tuple[float, float]:
    """Return the bits/s that a link of this nominal rate carries from a host and to it."""
    topology = single_switch(1, rate_bits_per_s=rate_bits_per_s)
    with Testbed(topology, has_switch=False) as testbed:
        return probe_rate(testbed, topology.hosts[0], duration_s=2.0)


def describe_machine(*, has_torch: bool = True) -> dict[str, Any]:
    """Return facts about the machine for a report; takes 2 s to measure how busy it is."""
    machine = machine_facts()
    if has_torch:
        import torch  # noqa: PLC0415 - takes seconds, so only when needed

        machine["torch"] = torch.__version__
    machine["busy_before"] = f"{100 * processor.busy_share(2.0):.0f} %"
    return machine


def machine_line(machine: dict[str, Any]) -> str:
    """Return the machine in one line."""
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items())
