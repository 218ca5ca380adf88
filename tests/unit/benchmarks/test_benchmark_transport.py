# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transport benchmark: conditions, statistics, verification, its report and its options."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.transport import (
    congestion,
    contenders,
    evaluation,
    fabrics,
    figures,
    readings,
    report,
    rig,
)
from benchmarks.transport.conditions import LOSSLESS, parse_condition, parse_conditions
from benchmarks.transport.dropping import DroppedChunks
from benchmarks.transport.figures import figures_of, ratios_of, rows_of
from benchmarks.transport.worker import (
    Contributions,
    SessionPlan,
    Summed,
    WorkerPlan,
)
from switchfold.bmv2_topos.impairment.relay import COUNTERS
from switchfold.hostlib.loss_tolerance import Delivery, LossTolerance
from switchfold.softswitch.switch.impairments import parse_settings

ROUND = rig.Round(
    seconds=1.0,
    coverage=1.0,
    link_bytes=1000,
    busiest_s=0.5,
    seen=100,
    lost=0,
    sent=50,
    sent_again=0,
    flushed=0,
    busy_share=0.25,
    traffic_bits_per_s=0.0,
)


def rounds(*seconds: float, **changed: Any) -> list[rig.Round]:
    return [replace(ROUND, seconds=each, **changed) for each in seconds]


@pytest.mark.parametrize(
    ("text", "up", "down", "mean"),
    [
        ("0.05", 0.05, 0.05, 0.05),
        ("0.05:up", 0.05, 0.0, 0.05),
        ("0.2:down:traffic", 0.0, 0.2, 0.2),
        ("burst75", 1.0, 1.0, 0.75 / 21),
        ("0:traffic", 0.0, 0.0, 0.0),
    ],
)
def test_condition_says_what_each_direction_loses(
    text: str, up: float, down: float, mean: float
) -> None:
    condition = parse_condition(text)
    assert condition.has_traffic == text.endswith("traffic")
    for is_up, share in ((True, up), (False, down)):
        settings = parse_settings(condition.settings_of(is_up=is_up, seed=3))
        assert not share or settings.seed == 3
        assert settings.mean_loss == pytest.approx(mean if share else 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("much", "neither a share of packets such as 0.01 nor bursts"),
        ("1", "0 or above, below 1"),
        ("burst100", "0 or above, below 1"),
        ("0.1:left", "for one direction"),
        ("0.1:up:down", "for one direction"),
        ("0.1,0.1", "there twice"),
    ],
)
def test_conditions_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_conditions(text)


def test_pulse_is_a_part_of_every_half_second() -> None:
    settings = parse_settings(parse_condition("pulse60").settings_of(is_up=True, seed=2))
    assert [(each.seconds, each.loss) for each in settings.script] == [(0.45, 0), (0.05, 0.6)]
    assert settings.script_repeats


def test_all_losses_on_purpose_are_counted() -> None:
    on_purpose = {name for name in COUNTERS if name == "lost" or name.endswith("_lost")}
    assert set(readings.LOSSES) == on_purpose


def test_lossless_condition_comes_first_and_once() -> None:
    assert parse_conditions("0.01,0") == [LOSSLESS, parse_condition("0.01")]


def test_figures_are_those_of_the_rounds() -> None:
    found = figures_of(
        [
            *rounds(*range(1, 100), lost=10, sent_again=5),
            *rounds(200.0, coverage=0.9, link_bytes=2000),
        ]
    )
    assert (found.rounds, found.p50_s, found.most_s) == (100, 50.5, 200.0)
    assert found.p99_s == pytest.approx(np.percentile([*range(1, 100), 200], 99))
    assert found.mean_s == pytest.approx(51.5)
    assert found.link_bytes == 1010
    assert (found.coverage, found.least_coverage) == (pytest.approx(0.999), 0.9)
    assert found.lost_share == pytest.approx(0.099)
    assert found.sent_again == pytest.approx(0.099)


def test_ratios_are_those_under_the_same_condition() -> None:
    here = {
        "repair": figures_of(rounds(4.0)),
        "tolerant": figures_of(rounds(2.0)),
        "ring": figures_of(rounds(12.0)),
    }
    calm = {"tolerant": figures_of(rounds(1.6, busiest_s=0.8))}
    found = ratios_of("tolerant", here, calm)
    assert (found.repair_p50, found.repair_p99, found.ring_p50) == (2.0, 2.0, 6.0)
    assert (found.lossless_p50, found.limit_p50) == (1.25, 2.5)
    alone = ratios_of("repair", {"repair": here["repair"]}, calm)
    assert (alone.repair_p50, alone.ring_p50, alone.lossless_p50) == (1.0, None, None)
    assert alone.limit_p50 == 8.0, "without a lossless run, the bytes are its own"


def test_contender_without_rounds_has_no_row() -> None:
    rows = rows_of({"0": {"repair": rounds(1.0), "ring": []}}, "0")
    assert list(rows["0"]) == ["repair"]
    assert rows["0"]["repair"]["ratios"]["lossless_p99"] == 1.0


def test_line_begins_with_the_gain_over_selective_repair() -> None:
    rows = rows_of(
        {
            "0": {"repair": rounds(1.0), "tolerant": rounds(1.0)},
            "0.05": {
                "repair": rounds(3.0, sent_again=5),
                "tolerant": rounds(2.0, coverage=0.95, lost=5),
            },
        },
        "0",
    )
    cells = report.line_of("ours", rows["0.05"]["tolerant"]).split(" | ")
    assert cells[:4] == ["| ours", "1.50, 1.50", "-, -", "2.00, 2.00"]
    assert len(cells) == report.HEADING.splitlines()[0].count(" | ") + 1
    assert cells[9] == "0.950, 0.950"
    title = report.title_of("0.05", rows["0.05"], has_traffic=False)
    assert title == "condition 0.05: 0.00 to 5.00 % of packets were lost"
    assert report.aims(rows) == [
        "aim: p99 with tolerance at loss 0.05 at most 1.1 of the lossless one: 2.00, missed"
    ]


def test_aim_against_tcp_needs_tcp() -> None:
    found = {"repair": rounds(1.0), "tolerant": rounds(1.0)}
    assert report.aims(rows_of({"0": found, "0.01": found}, "0")) == []
    with_tcp = {**found, "ring": rounds(2.5)}
    assert report.aims(rows_of({"0": with_tcp, "0.01": with_tcp}, "0")) == [
        "aim: p99 with tolerance at loss 0.01 at least twice better than TCP's: 2.50, met"
    ]


def test_drawing_has_a_curve_for_each_contender(tmp_path: Path) -> None:
    places, share = report.shares([3.0, 1.0, 2.0, 2.0])
    assert (places.tolist(), share.tolist()) == ([1, 2, 2, 3], [0.25, 0.5, 0.75, 1])
    titles = {name: each.title for name, each in contenders.contenders(0.1, 1000).items()}
    times = {"0": {name: [0.1, 0.2] for name in titles}, "0.1": {"repair": [0.3], "ring": []}}
    report.draw(times, titles, tmp_path / "cdf.png")
    assert (tmp_path / "cdf.png").stat().st_size > 10_000


def test_expected_sum_leaves_out_what_is_said_to_be_missing() -> None:
    given = Contributions(2, 8)
    arrays = [given.of(3, worker) for worker in range(2)]
    assert arrays[0].tolist() != given.of(4, 0).tolist()
    assert arrays[0].tolist() != arrays[1].tolist()
    delivery = Delivery(
        (0, 1),
        8,
        2,
        np.array([2, 2, 2, 1], np.uint16),
        np.array([0b11, 0b11, 0b11, 0b01], np.uint32),
        tolerance=LossTolerance(loss=0.5),
    )
    summed = Summed(arrays[0], delivery)
    expected = arrays[0] + arrays[1]
    expected[6:] = arrays[0][6:]
    np.testing.assert_array_equal(given.expected(3, summed), expected)
    assert summed.coverage == pytest.approx(0.875)
    assert summed.excess == 0
    few = LossTolerance(loss=0.1)
    counts, bitmaps = np.array([0, 1], np.uint16), np.array([0, 0b01], np.uint32)
    lacking = Delivery((0, 1), 4, 2, counts, bitmaps, tolerance=few)
    assert Summed(arrays[0], lacking).excess == 3
    whole = Summed(arrays[0])
    assert (whole.coverage, whole.excess) == (1.0, 0)
    np.testing.assert_array_equal(given.expected(3, whole), arrays[0] + arrays[1])


@pytest.mark.parametrize(("elements", "dropped"), [(352 * 40, 4), (352 * 39 + 1, 4), (352 * 9, 0)])
def test_senders_leave_out_the_same_share_of_chunks(elements: int, dropped: int) -> None:
    given = Contributions(3, elements)
    arrays = [given.of(2, worker) for worker in range(3)]
    mine = [DroppedChunks(0.1, 3, elements, 7) for _ in arrays]
    sent = [each.pack(array) for each, array in zip(mine, arrays, strict=True)]
    total = mine[0].unpack(np.stack(sent).sum(axis=0, dtype=np.float32))
    summed = Summed(total, mine[2].delivery)
    np.testing.assert_array_equal(total, given.expected(2, summed))
    missing = mine[1].delivery.missing
    assert mine[1].delivery.num_missing == 3 * dropped
    assert len(set(missing.values())) == (1 if dropped else 0), "all leave out the same"
    assert 0.9 <= summed.coverage <= 1
    assert sum(each.size for each in sent) == pytest.approx(summed.coverage * 3 * elements)


def test_senders_leave_out_others_in_the_next_sum() -> None:
    first, again, other = (DroppedChunks(0.2, 2, 352 * 100, number) for number in (1, 1, 2))
    assert first.is_kept.tolist() == again.is_kept.tolist() != other.is_kept.tolist()


def test_congestion_control_that_is_absent_or_the_default_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = contenders.contenders(0.1, 1000)
    absent = replace(known["ring"], name="ring-x", congestion_control="no-such-control")
    monkeypatch.setattr(congestion, "default_control", lambda: "cubic")
    mine = [known["ring"], known["ring-cubic"], absent]
    assert evaluation.measurable(mine) == mine[:1]
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "ring-cubic is skipped: cubic is what TCP uses here by default"
    assert shown[1].startswith(
        "ring-x is skipped: this kernel does not let TCP use no-such-control"
    )


def test_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    session = SessionPlan(job="server-repair", token="x", tolerance=None, controller="unix:/c")
    plan = WorkerPlan(
        socket="/s",
        workers=("10.0.1.1",),
        server="10.0.1.3",
        elements=9,
        timeout_s=1.5,
        sessions=(
            replace(session, switch="on-h3"),
            replace(session, job="j", tolerance=0.1, path="transposed"),
        ),
        contenders={"server": "server-repair", "ring": ""},
        places={"server": "server", "ring": "hosts"},
        tolerances={"server": None},
    )
    plan.write(tmp_path / "plan.json")
    read = WorkerPlan.read(tmp_path / "plan.json")
    assert read.sessions == plan.sessions
    assert read.among_hosts == ["ring"]
    assert read.contenders == plan.contenders
    assert (read.elements, list(read.workers), read.tolerances) == (
        9,
        ["10.0.1.1"],
        {"server": None},
    )


def test_contender_has_its_job() -> None:
    known = contenders.contenders(0.1, 1000)
    names = ("repair", "tolerant", "all", "shards", "shards-tolerant", "server-tolerant", "ring")
    assert [rig.job_of(known[name]) for name in names] == [
        "switches-repair", "switches-tolerant", "switches-tolerant",
        "shards-repair", "shards-tolerant", "server-tolerant", "",
    ]  # fmt: skip


def test_routers_reach_every_host_and_what_adds_there() -> None:
    topology = fabrics.fabric(100_000_000)
    assert Counter(link.rate_bits_per_s for link in topology.links) == {100_000_000: 8}
    assert {link.rate_bits_per_s for link in topology.switch_links} == {50_000_000}
    leaf, _, spine = topology.switches
    at_leaf = {address: (port, mac) for address, port, mac in fabrics.routes(topology, leaf)}
    assert len(at_leaf) == 16
    assert at_leaf["10.0.1.2"] == ("s1-eth2", "02:00:00:00:01:02")
    assert at_leaf["10.9.0.2"] == at_leaf["10.0.1.2"]
    assert at_leaf["10.0.2.1"] == at_leaf["10.9.0.5"] == ("s1-eth5", spine.mac)
    at_spine = {address: (port, mac) for address, port, mac in fabrics.routes(topology, spine)}
    assert at_spine["10.0.1.2"] == ("s3-eth1", leaf.mac)


class Rig:
    """A rig whose sums take a time by contender, or fail."""

    def __init__(self, outcomes: dict[str, float | str]) -> None:
        self._outcomes = outcomes
        self.names: list[str] = []
        self.conditions: list[str] = []

    def set_condition(self, condition: Any, *, seed: int) -> None:
        self.conditions.append(f"{condition.name} {seed}")

    def run(self, name: str, number: int) -> rig.Round | str:
        self.names.append(name)
        assert number == len(self.names)
        outcome = self._outcomes[name]
        return outcome if isinstance(outcome, str) else replace(ROUND, seconds=outcome)


def test_contenders_take_turns_until_their_budget_is_spent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = evaluation.parse_options(
        ["--contenders", "repair,tolerant,ring", "--rounds", "6", "--budget", "2.5", "--least", "4"]
    )
    fake: Any = Rig({"repair": 0.5, "tolerant": 1.0, "ring": "SessionTimeoutError: late"})
    run = evaluation.Evaluation(fake, options)
    run.measure(LOSSLESS)
    assert fake.conditions == ["0 1"]
    assert fake.names[:5] == ["repair", "tolerant", "ring", "repair", "tolerant"]
    counts = {name: len(found) for name, found in run.found["0"].items()}
    assert counts == {"repair": 6, "tolerant": 4, "ring": 0}
    assert run.failures == {"0": {"ring": "SessionTimeoutError: late"}}
    assert "condition 0: ring failed: SessionTimeoutError: late" in capsys.readouterr().out


def test_only_contenders_without_a_job_take_part_again_after_a_failure() -> None:
    options = evaluation.parse_options(["--contenders", "repair,tolerant,ring", "--rounds", "2"])
    fake: Any = Rig({"repair": 0.5, "tolerant": "JobEndedError: over", "ring": "PeerLostError: x"})
    run = evaluation.Evaluation(fake, options)
    for condition in parse_conditions("0.1"):
        run.measure(condition)
    assert Counter(fake.names) == {"repair": 2 + 2 + 1 + 2, "tolerant": 1, "ring": 2}
    assert list(run.failures["0.1"]) == ["ring"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--conditions", "much"], "neither a share of packets"),
        (["--contenders", "tolerant"], "repair must be among the contenders"),
        (["--contenders", "repair,carrier"], "no contender carrier; choose from repair, tolerant"),
        (["--tolerance", "1"], "a share above 0 and below 1"),
        (["--rounds", "0"], "less than 1"),
        (["--budget", "0"], "times above 0"),
        (["--rate", "fast"], "argument --rate"),
    ],
)
def test_wrong_options_are_explained(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluation.parse_options(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_help_has_an_example_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluation.parse_options(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "switchfold bench transport --conditions 0.01" in shown
    assert "exit status: 0 when" in shown


def test_default_conditions_can_be_read() -> None:
    options = evaluation.parse_options([])
    assert [each.name for each in options.conditions] == ["0", *evaluation.CONDITIONS.split(",")]
    assert [each.name for each in options.contenders] == list(contenders.contenders(0.1, 9))
    assert figures.REPAIR == "repair"
