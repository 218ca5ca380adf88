# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of the C library over UDP: all right to the bit, every datagram counted once.

The fuzzer itself checks each schedule; see schedule.c.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.datagram_fuzzer import build, run
from sanitized_program import missing_reason

FAITHFUL, HOSTILE = 500, 500


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzzer")
    reason = missing_reason(folder)
    if reason is not None:
        pytest.skip(reason)
    return build(folder)


def test_sums_are_right_with_split_merged_truncated_and_reordered_super_frames(
    fuzzer: Path,
) -> None:
    counts = run(fuzzer, "faithful", FAITHFUL, 1)
    assert counts["schedules"] == FAITHFUL
    # Otherwise the weather was fair.
    for name in ("damaged", "messages of several", "blocks", "refused", "dropped", "sent again"):
        assert counts[name] > FAITHFUL, counts


def test_no_datagram_does_harm(fuzzer: Path) -> None:
    counts = run(fuzzer, "hostile", HOSTILE, 1)
    assert counts["schedules"] == HOSTILE
    ends = ("results", "refused", "blocks", "dropped")
    assert all(counts[name] > 0 for name in ends), counts
    assert sum(counts[name] for name in ends) == counts["datagrams"]
