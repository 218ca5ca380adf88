# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transport benchmark's rig: softswitch on a host adds, over links that lose packets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.transport.conditions import parse_condition
from benchmarks.transport.contenders import contenders
from benchmarks.transport.rig import Round, Size, TransportRig
from switchfold.bmv2_topos import state

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
TOLERANCE = 0.2
ROUNDS = 3
SIZE = Size(elements=352 * 60, rate_bits_per_s=20_000_000, tolerance=TOLERANCE, timeout_s=60.0)


def test_sums_by_a_host_are_verified_and_lack_what_is_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    known = contenders(TOLERANCE, SIZE.elements)
    mine = [known["server"], known["server-tolerant"]]
    found: dict[str, list[Round]] = {each.name: [] for each in mine}
    with TransportRig(mine, SIZE) as rig:
        rig.set_condition(parse_condition("0"), seed=1)
        for each in mine:
            calm = rig.run(each.name, 0)
            assert isinstance(calm, Round), calm
            assert (calm.lost, calm.link_bytes > 0, calm.busiest_s > 0) == (0, True, True)
            assert calm.seen >= calm.sent, "every contribution came to a place of loss"
        rig.set_condition(parse_condition("0.1:up"), seed=1)
        for number in range(1, ROUNDS + 1):
            for each in mine:
                outcome = rig.run(each.name, number)
                assert isinstance(outcome, Round), outcome
                found[each.name].append(outcome)
    for name, rounds in found.items():
        assert sum(each.lost for each in rounds) > 0, name
        assert min(each.coverage for each in rounds) >= known[name].least_coverage
    assert {each.coverage for each in found["server"]} == {1.0}
    assert sum(each.sent_again for each in found["server"]) > 0
    tolerant = found["server-tolerant"]
    assert sum(each.flushed for each in tolerant) > 0
    assert min(each.coverage for each in tolerant) < 1
