# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where ranks' calls differ, and what keeps others from being added up."""

from __future__ import annotations

from switchfold.hostlib.engine.allreduce_task import wire_id
from switchfold.hostlib.options import Summation
from switchfold.hostlib.torch.process_group.call_log import (
    LOGGED_CALLS,
    CallLog,
    difference,
    from_text,
    to_text,
)


def log_of(*calls: tuple[str, str]) -> CallLog:
    log = CallLog()
    for kind, what in calls:
        log.add(kind, what, what)
    return log


def test_the_first_call_that_differs_is_named_with_its_ranks() -> None:
    same = [("all_reduce", "sum of 4"), ("barrier", "by Gloo")]
    logs = [log_of(*same, ("broadcast", "of 3")), log_of(*same, ("gather", "by Gloo"))]
    logs += [log_of(*same), log_of(*same, ("broadcast", "of 3"), ("barrier", "by Gloo"))]
    calls = {rank: from_text(to_text(log.latest())) for rank, log in enumerate(logs)}
    expected = "ranks [0, 3] broadcast 3, of 3; rank 1 gather 3, by Gloo"
    assert difference(calls) == expected
    # A rank that has not come so far yet is late; it does not disagree.
    assert difference({rank: calls[rank] for rank in (0, 2, 3)}) == ""


def test_ranks_of_which_one_is_far_ahead_are_compared_where_both_remember() -> None:
    ahead, behind = CallLog(), CallLog()
    for number in range(LOGGED_CALLS + 10):
        ahead.add("all_reduce", f"sum of {number}", str(number))
    for number in range(12):
        behind.add("all_reduce", f"sum of {number}", str(number if number != 11 else 0))
    assert "all_reduce 12, sum of 11" in difference({0: ahead.latest(), 1: behind.latest()})
    assert len(ahead.latest()) == LOGGED_CALLS


def test_headers_tell_means_and_labels_from_plain_sums() -> None:
    plain, mean = Summation(), Summation(operation="mean")
    assert wire_id(2, plain) == 3
    kinds = [mean, Summation(label="a"), Summation(operation="mean", label="a"), plain]
    ids = {wire_id(2, kind, is_exact=is_exact) for kind in kinds for is_exact in (False, True)}
    assert len(ids) == 8
    assert {number & 0xFFFFF for number in ids} == {3}
    assert wire_id((1 << 20) + 2, mean) == wire_id(2, mean)
    assert wire_id(2, mean) == 0x2270_0003  # the example of docs/wire_format.md
