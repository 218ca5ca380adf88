# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of links by what workers report, in simulated time, and which link is to blame."""

from __future__ import annotations

import math

import pytest

from switchfold.controller.scheduler.planning.bandwidth_estimate import TransferDirection
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.transfers.rates.link_tracking import (
    INTERVAL_S,
    KEPT,
    LEAST_HEADROOM,
    MEMORY_S,
    MOST_HEADROOM,
    PAUSE_S,
    LinkTracker,
    RateVerdict,
    SentUpdate,
)
from switchfold.controller.transfers.rates.tracked_grant import TrackedGrant
from tracked_transfers import TrackedTransfers, TrackedUpdate
from transfer_cases import MBIT

UP, DOWN = TransferDirection.UP, TransferDirection.DOWN
HOSTS = ("h0", "h1", "h2", "h3", "h9")
BITS = 100 * MBIT
"""1 s at 100 Mbit/s."""


def tracker() -> LinkTracker:
    links = {f"{host}>": (host, UP) for host in HOSTS} | {
        f">{host}": (host, DOWN) for host in HOSTS
    }
    return LinkTracker(links, dict.fromkeys(HOSTS, (100 * MBIT, 100 * MBIT)))


def grant(
    made: LinkTracker,
    transfer: int,
    worker: str = "h1",
    server: str = "h0",
    *,
    start_s: float = 0.0,
    mbits: int = 100,
) -> tuple[int, int]:
    key = (0, transfer)
    spans = [RateSpan(start_s, start_s + BITS / (mbits * MBIT), mbits * MBIT)]
    made.granted(key, (f"{worker}>", "between", f">{server}"), spans, BITS)
    return key


def send(made: LinkTracker, transfer: int, seconds: float, now_s: float, **where: str) -> None:
    """Grant an update, and report it as kept back by the network for as long as it was late."""
    key = grant(made, transfer, start_s=now_s - seconds, **where)
    made.observe(key, SentUpdate(seconds, max(0.0, seconds - 1.0)), now_s)


def estimates(made: LinkTracker) -> dict[str, tuple[float, float]]:
    return {host: (up / MBIT, down / MBIT) for host, ((up, down), _) in made.slowed().items()}


def worst(sent: list[TrackedUpdate], worker: str) -> float:
    return max(each.granted_bits_per_s for each in sent if each.worker == worker) / MBIT


def test_a_grant_over_a_slowed_link_may_be_faster_than_its_plan() -> None:
    path, other = ("h1>", "between", ">h0"), ("h2>", "between", ">h3")
    made = tracker()
    assert made.headroom(path) == made.headroom(("between",)) == made.headroom(()) == 1.0
    send(made, 0, 1.5, 10.0)
    assert estimates(made)["h1"] == pytest.approx((100 / 1.5, 100))
    assert made.headroom(path) == pytest.approx(1.5), "as fast as the whole link"
    assert made.headroom(other) == 1.0
    made = tracker()
    send(made, 0, 4.0, 10.0)
    assert made.headroom(path) == MOST_HEADROOM
    made = tracker()
    send(made, 0, 1.3, 10.0)
    assert made.headroom(path) == pytest.approx(1.3)
    key = grant(made, 1, start_s=20.0, mbits=70)
    made.observe(key, SentUpdate(100 / 70, 0.0), 20.0 + 100 / 70)
    assert estimates(made)["h1"][0] == pytest.approx(1.25 * 100 / 1.3)
    assert made.headroom(path) == LEAST_HEADROOM


def test_the_estimate_of_a_link_that_nobody_uses_grows() -> None:
    """Plans avoid a link that seems slow, as that of an idle aggregator, so nothing else shows it.

    It is not so slow any more, or was not: another one, which nobody could tell from it, was.
    """
    made = tracker()
    send(made, 0, 1.5, 10.0, worker="h1", server="h2")
    fallen = {"h1": pytest.approx((100 / 1.5, 100)), "h2": pytest.approx((100, 100 / 1.5))}
    grown = {"h1": pytest.approx((125 / 1.5, 100)), "h2": pytest.approx((100, 125 / 1.5))}
    assert estimates(made) == fallen
    used_until_s = 9.5
    others = {"worker": "h3", "server": "h9"}
    send(made, 1, 1.0, used_until_s + MEMORY_S - 0.1, **others)
    assert estimates(made) == fallen
    first_s = used_until_s + MEMORY_S + 0.1
    send(made, 2, 1.0, first_s, **others)
    assert estimates(made) == grown
    send(made, 3, 1.0, first_s + INTERVAL_S / 2, **others)
    assert estimates(made) == grown, "once in an interval"
    for number in range(2):
        send(made, 4 + number, 1.0, first_s + (1 + number) * INTERVAL_S, **others)
        assert not estimates(made)


def test_links_that_carried_nearly_all_are_not_to_blame() -> None:
    made = tracker()
    send(made, 0, 1.24, 10.0)  # 81 Mbit/s: a queue has kept it back, or headers
    assert made.slowed() == {}
    send(made, 1, 1.3, 20.0)  # 77 Mbit/s
    assert set(made.slowed()) == {"h0", "h1"}


def test_a_halved_link_is_found_and_later_grants_use_it() -> None:
    made = TrackedTransfers({"h1": "h0", "h2": "h0"}, size_bytes=10_000_000)
    assert {each.verdict for each in made.run(6.0)} == {RateVerdict.GRANT}
    assert made.tracker.slowed() == {}
    made.set_rate("h1", UP, 50)
    assert RateVerdict.NETWORK in {each.verdict for each in made.run(19.0)}
    for end_s in range(20, 50):
        sent = made.run(float(end_s))
        # An estimate is raised by a quarter, and taken back.
        assert 50 * 0.99 <= made.mbits("h1", UP) <= 50 * 1.25
        assert made.mbits("h2", UP) == made.mbits("h0", DOWN) == 100
        for each in sent:
            most = 50 * 1.26 if each.worker == "h1" else 100
            assert each.granted_bits_per_s <= most * MBIT


def test_the_first_estimate_is_within_a_tenth() -> None:
    made = TrackedTransfers({"h1": "h0"})
    made.run(2.0)
    made.set_rate("h1", UP, 50)
    while not made.tracker.slowed():
        made.run(made.fluid.now_s + 0.05)
    assert made.mbits("h1", UP) == pytest.approx(50, rel=0.1)
    planned = made.run(made.fluid.now_s + 0.6)[0]
    assert planned.ended_s == pytest.approx(planned.planned_end_s, rel=0.15)


def test_estimates_grow_back_within_ten_seconds() -> None:
    made = TrackedTransfers({"h1": "h0", "h2": "h0"})
    made.set_rate("h1", UP, 50)
    made.run(5.0)
    assert set(made.tracker.slowed()) == {"h1"}
    made.set_rate("h1", UP, 100)
    made.run(15.0)
    assert made.tracker.slowed() == {}
    assert worst(made.run(17.0), "h1") == pytest.approx(100)


def test_a_grant_that_may_be_faster_shows_at_once_what_a_link_carries() -> None:
    made = tracker()
    send(made, 0, 2.0, 10.0)
    assert estimates(made) == {"h1": (50, 100), "h0": (100, 50)}

    def send_with_headroom(transfer: int, seconds: float, now_s: float) -> None:
        key, path = (0, transfer), ("h1>", "between", ">h0")
        rate = round(estimates(made)["h1"][0] * MBIT)
        spans = [RateSpan(now_s - seconds, now_s - seconds + BITS / rate, rate)]
        made.granted(key, path, spans, BITS, made.headroom(path))
        made.observe(key, SentUpdate(seconds, 0.0), now_s)

    send_with_headroom(1, 1.25, 20.0)
    assert estimates(made) == {"h1": (80, 100), "h0": (100, 80)}
    send_with_headroom(2, 1.28, 30.0)
    assert estimates(made)["h1"][0] == pytest.approx((80 + 100 / 1.28) / 2), "a little less"
    send_with_headroom(3, 1.0, 40.0)
    assert made.slowed() == {}


def test_a_slow_server_is_found_while_its_workers_recover() -> None:
    made = TrackedTransfers({"h1": "h0", "h2": "h0", "h3": "h0"}, size_bytes=1_250_000)
    made.run(3.0)
    made.set_rate("h0", DOWN, 50)
    made.run(20.0)
    assert made.mbits("h0", DOWN) == pytest.approx(50, rel=0.3)
    made.set_rate("h0", DOWN, 100)
    made.run(60.0)
    assert made.mbits("h0", DOWN) == 100


def test_a_worker_that_is_slow_itself_blames_no_link() -> None:
    made = TrackedTransfers({"h1": "h0", "h2": "h0"})
    made.processor_bits_per_s["h1"] = 40 * MBIT
    verdicts = {(each.worker, each.verdict) for each in made.run(5.0)}
    assert ("h1", RateVerdict.WORKER) in verdicts
    assert not any(verdict is RateVerdict.NETWORK for worker, verdict in verdicts if worker == "h1")
    assert made.mbits("h1", UP) == 100


def test_a_plan_that_is_slow_says_nothing_of_a_wide_link() -> None:
    """A sender at 20 Mbit/s does not show that the server's link carries more than 50 again."""
    made = tracker()
    for transfer in range(4):
        send(made, transfer, 2.0, 3.0 * transfer, worker=f"h{transfer % 3 + 1}")
    assert estimates(made)["h0"][1] == pytest.approx(50, rel=0.1)
    for transfer in range(10, 20):
        key = grant(made, transfer, "h9", start_s=5.0 * transfer, mbits=20)
        made.observe(key, SentUpdate(5.0, 0.0), 5.0 * transfer + 5.0)
    assert estimates(made)["h0"][1] == pytest.approx(50, rel=0.1)


def test_the_network_must_have_kept_an_update_back() -> None:
    made = tracker()
    for transfer, (sent, verdict) in enumerate(
        [
            (SentUpdate(1.19, 1.0), RateVerdict.GRANT),
            (SentUpdate(2.0, 0.49), RateVerdict.WORKER),
            (SentUpdate(2.0, None), None),
            (SentUpdate(0.0, 0.0), None),
        ]
    ):
        key = grant(made, transfer, start_s=10.0 * transfer)
        assert made.observe(key, sent, 10.0 * transfer + sent.seconds) is verdict
        assert made.slowed() == {}
    key = grant(made, 9, start_s=90.0)
    assert made.observe(key, SentUpdate(2.0, 0.51), 92.0) is RateVerdict.NETWORK
    assert made.observe(key, SentUpdate(2.0, 0.51), 92.0) is None, "it comes twice"
    assert estimates(made) == {"h1": (50, 100), "h0": (100, 50)}
    assert made.observe((0, 77), SentUpdate(2.0, 1.0), 92.0) is None, "nobody knows it"


def test_both_ends_are_to_blame_until_another_update_clears_one() -> None:
    made = tracker()
    send(made, 1, 2.0, 2.0)
    assert estimates(made) == {"h1": (50, 100), "h0": (100, 50)}
    cleared = tracker()
    send(cleared, 1, 1.0, 2.0, worker="h2")
    send(cleared, 2, 2.0, 4.0)
    assert estimates(cleared) == {"h1": (50, 100)}
    other_server = tracker()
    send(other_server, 1, 1.0, 2.0, server="h9")
    send(other_server, 2, 2.0, 4.0)
    assert estimates(other_server) == {"h0": (100, 50)}
    forgotten = tracker()
    send(forgotten, 1, 1.0, 2.0, worker="h2")
    send(forgotten, 2, 2.0, 14.5)
    assert estimates(forgotten) == {"h1": (50, 100), "h0": (100, 50)}


def test_a_link_is_estimated_by_all_that_it_carried() -> None:
    """Two updates of 50 Mbit/s each through a server's link of 60."""
    made = tracker()
    keys = [grant(made, number, f"h{number}", mbits=50) for number in (1, 2)]
    for key in keys:
        made.observe(key, SentUpdate(2 * 100 / 60, 2 * 40 / 60), 2 * 100 / 60)
    up, down = estimates(made)["h0"]
    assert up == 100
    assert down == pytest.approx(60, rel=0.25)


def test_a_link_that_carried_its_estimate_is_not_to_blame() -> None:
    made = tracker()
    send(made, 1, 2.0, 2.0)
    assert estimates(made)["h0"] == (100, 50)
    first, second = (grant(made, number, f"h{number}", start_s=10.0, mbits=50) for number in (2, 3))
    made.observe(first, SentUpdate(4.0, 2.0), 14.0)
    before = estimates(made)["h0"]
    made.observe(second, SentUpdate(4.0, 2.0), 14.0)
    assert estimates(made)["h0"] == before, "both together had all of it"
    assert "h3" not in estimates(made)


def test_an_update_is_taken_to_have_kept_to_its_plan_below_one_rate() -> None:
    """10 Mbit/s for 1 s, then 100 for 1 s; it began 5 s later than planned, and took 3 s."""
    spans = [RateSpan(10.0, 11.0, 10 * MBIT), RateSpan(11.0, 12.0, 100 * MBIT)]
    sent = TrackedGrant(links=(), spans=spans, bits=110 * MBIT)
    sent.report(15.0, 18.0)
    assert sent.rate == pytest.approx(50 * MBIT)
    assert sent.late_s == pytest.approx(1.0)
    assert sent.lost_bits == pytest.approx(50 * MBIT)
    assert sent.limited == [(16.0, 17.0), (17.0, 18.0)], "not while it was to be slower"
    seconds = [sent.sent_bits(start_s, start_s + 1) / MBIT for start_s in range(13, 20)]
    assert seconds == pytest.approx([0, 0, 10, 50, 50, 0, 0])
    assert [sent.planned_bits(s, s + 1) / MBIT for s in (9, 10, 11, 12)] == [0, 10, 100, 0]
    in_time = TrackedGrant(links=(), spans=spans, bits=110 * MBIT)
    in_time.report(10.0, 12.0)
    assert in_time.rate == math.inf
    assert in_time.lost_bits == 0
    assert in_time.limited == [(10.0, 11.0), (11.0, 12.0)]
    with_gap = TrackedGrant(
        links=(), spans=[RateSpan(0, 1, 20 * MBIT), RateSpan(3, 4, 80 * MBIT)], bits=100 * MBIT
    )
    with_gap.report(0.0, 6.0)
    assert with_gap.rate == pytest.approx(80 / 3 * MBIT)
    assert with_gap.sent_bits(1.0, 3.0) == 0


def test_estimates_grow_once_in_an_interval_and_not_soon_after_a_late_update() -> None:
    made = tracker()
    send(made, 1, 2.0, 2.0)
    for number, end_s, mbits_per_s in [
        *((2, 2 + PAUSE_S - 0.1, 50.0), (3, 2 + PAUSE_S, 62.5)),
        *((4, 2 + PAUSE_S + 0.1, 62.5), (5, 2 + PAUSE_S + INTERVAL_S, 78.125)),
    ]:
        key = (0, number)
        spans = [RateSpan(end_s - 0.125, end_s, 80 * MBIT)]
        made.granted(key, ("h1>", ">h0"), spans, 10 * MBIT)
        made.observe(key, SentUpdate(0.125, 0.0), end_s)
        assert estimates(made) == {"h1": (mbits_per_s, 100), "h0": (100, mbits_per_s)}


def test_what_is_withdrawn_or_long_past_is_forgotten() -> None:
    made = tracker()
    key = grant(made, 1)
    made.withdrawn(key)
    made.withdrawn(key)
    assert made.observe(key, SentUpdate(2.0, 1.0), 2.0) is None
    late, beside = grant(made, 7), grant(made, 8, "h2", start_s=0.5)
    assert made.observe(late, SentUpdate(2.0, 1.0), 2.0) is RateVerdict.NETWORK
    made.withdrawn(late)
    made.observe(beside, SentUpdate(1.0, 0.0), 2.0)
    assert made.slowed() == {}, "nobody waits for the verdict on it"
    oldest = grant(made, 2)
    for number in range(KEPT):
        grant(made, 10 + number)
    assert made.observe(oldest, SentUpdate(2.0, 1.0), 2.0) is None
    made.granted((0, 3), ("h1>",), (), BITS)
    assert made.observe((0, 3), SentUpdate(2.0, 1.0), 2.0) is None, "it crosses no link"


def test_what_waits_and_what_is_remembered_is_bounded() -> None:
    made = tracker()
    grant(made, 0, "h9", mbits=1)  # 100 s, and nobody reports it
    for number in range(1, 41):
        send(made, number, 2.0, 2.0 + number, worker="h1")
    assert made.slowed() == {}, "the report of the first one is awaited"
    assert len(made._late) == 16
    assert len(made._granted) == 41
    send(made, 41, 1.0, 402.0)
    assert not made._late, "no longer"
    send(made, 42, 1.0, 500.0)
    assert len(made._granted) == 1
