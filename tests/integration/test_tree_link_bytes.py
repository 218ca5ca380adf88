# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes on each link of a leaf-spine: what the plan predicts is what the switches count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.support.link_check import AGREEMENT, carried_bytes, differences, predicted_bytes
from live_testbed import DEADLINE_S, LiveTestbed
from stream_clock import install_still_clock
from switchfold.bmv2_topos import leaf_spine
from switchfold.hostlib.schemes import Cluster, Layer, Scheme
from switchfold.hostlib.schemes.wire_cost import wire_bytes
from switchfold.hostlib.slots import wire

NUM_ELEMENTS = 700_000
NUM_LEAVES, HOSTS_PER_LEAF = 2, 2
NUM_WORKERS = NUM_LEAVES * HOSTS_PER_LEAF


@pytest.mark.parametrize("num_spines", [1, 2])
def test_measured_bytes_per_link_agree_with_prediction(
    monkeypatch: pytest.MonkeyPatch, num_spines: int
) -> None:
    topology = leaf_spine(NUM_LEAVES, num_spines, HOSTS_PER_LEAF)
    values = np.random.default_rng(num_spines).standard_normal(NUM_ELEMENTS).astype(np.float32)
    arrays = [np.roll(values, worker_id) for worker_id in range(NUM_WORKERS)]
    # Nothing is sent again: a busy machine delays packets but does not lose them.
    install_still_clock(monkeypatch)
    options: dict[str, Any] = {
        "timeout_s": 120.0,
        "min_rto_s": 60.0,
        "initial_rto_s": 60.0,
        "max_rto_s": 60.0,
        "window": 48,
    }
    with (
        LiveTestbed(topology, variant="wide") as testbed,
        testbed.sessions(NUM_WORKERS, **options) as sessions,
    ):
        before = carried_bytes(testbed.made)
        futures = [
            session.allreduce(array, precision="block")
            for session, array in zip(sessions, arrays, strict=True)
        ]
        for future in futures:
            np.testing.assert_allclose(future.result(DEADLINE_S), sum(arrays), atol=1e-4)
        carried = {
            link: count - before[link] for link, count in carried_bytes(testbed.made).items()
        }
        predicted = predicted_bytes(testbed.made.controller_address, "train", 4 * NUM_ELEMENTS)

    assert {link for link, count in carried.items() if count} == set(predicted)
    found = differences(carried, predicted)
    assert all(abs(difference) <= AGREEMENT for difference in found.values()), found

    # By hand: values and one exponent for every chunk, up once and down once on each link, the
    # same on a host's link as on all uplinks of its leaf together.
    chunks = -(-NUM_ELEMENTS // wire.VALUES_PER_PACKET_WIDE)
    frames = chunks + -(-chunks // wire.VALUES_PER_PACKET_WIDE)
    whole = frames * wire.frame_bytes(wire.VALUES_PER_PACKET_WIDE)
    layer = Layer(name="all", kind="other", num_values=NUM_ELEMENTS)
    assert wire_bytes(Scheme.INA, layer, Cluster(num_workers=NUM_WORKERS)).worker_sent == whole
    hosts = [f"h{n} > s{(n + 1) // HOSTS_PER_LEAF}" for n in range(1, NUM_WORKERS + 1)]
    assert [carried[link] for link in hosts] == pytest.approx([whole] * NUM_WORKERS, rel=AGREEMENT)
    spines = [f"s{NUM_LEAVES + n}" for n in range(1, num_spines + 1)]
    for leaf in ("s1", "s2"):
        up = sum(carried[f"{leaf} > {spine}"] for spine in spines)
        down = sum(carried[f"{spine} > {leaf}"] for spine in spines)
        assert (up, down) == pytest.approx((whole, whole), rel=AGREEMENT)
