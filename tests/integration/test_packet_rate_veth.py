# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The packet rate benchmark's wires, load generator and contenders, a moment of each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from benchmarks.packet_rate import contenders, traffic
from benchmarks.packet_rate.load_generator import LoadError
from benchmarks.packet_rate.wires import Wires, wires
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
CORES = os.sched_getaffinity(0)
MOMENT_S = 0.05
"""A load generator that does not get to run for so long sends nothing."""


@pytest.fixture(autouse=True)
def _patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 120.0)


@pytest.fixture
def between() -> Iterator[Wires]:
    with wires() as made:
        yield made
    left = subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout
    assert made.switch_namespace not in left
    assert made.load_namespace not in left


@pytest.mark.parametrize(
    ("name", "contender"),
    [
        *((name, "softswitch") for name in ("narrow", "wide", "l3")),
        *((name, "softswitch-super") for name in ("narrow", "wide")),
    ],
)
def test_softswitch_answers_every_frame(between: Wires, name: str, contender: str) -> None:
    slots = 64
    variant = "wide" if name == "wide" else "narrow"
    of = traffic.l3_forwarding(slots) if name == "l3" else traffic.aggregation(variant, slots)
    fill = contenders.setup(name, slots)
    started = contenders.switch(contender, between, CORES, contenders.program(name), fill)
    with started as switch:

        def is_run() -> bool:
            """Run for a moment, and tell whether that was long enough for more than one round."""
            result = switch.load.run(of, MOMENT_S)
            assert result.sent == result.received
            return result.sent > slots

        for _ in range(2):  # each run goes on with the rounds of the one before
            wait_until(is_run, "a second round")
        assert switch.cpu_s() > 0


@pytest.mark.parametrize("super_frames", [False, True])
def test_load_generator_notices_a_wrong_frame(between: Wires, *, super_frames: bool) -> None:
    of = traffic.aggregation("narrow", 8)
    with contenders.bare_forwarder(between, CORES, super_frames=super_frames) as forwarder:
        same = traffic.unchanged(of)
        wait_until(lambda: forwarder.load.run(same, MOMENT_S).sent, "frames that come back")
        with pytest.raises(LoadError, match="unexpected"):
            wait_until(lambda: forwarder.load.run(of, MOMENT_S).sent, "other frames")
