# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Impairments: their text, and the loss processes of a stage, on a stepped clock."""

from __future__ import annotations

import ctypes
import itertools
import os
import re

import pytest

from stepped_link import BURST_LOST, LOST, SCRIPT_LOST, SteppedLink, compile_stepped_link
from switchfold.softswitch.compilation.compiler import RUNTIME
from switchfold.softswitch.compilation.runtime_library import ImpairmentsT
from switchfold.softswitch.switch.impairments import (
    MAX_INTERVALS,
    Impairments,
    LossInterval,
    parse_settings,
)

PACKETS = int(os.environ.get("SWITCHFOLD_IMPAIRED_PACKETS", "60000"))
US = 1000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_stepped_link(tmp_path_factory.mktemp("stepped_link"))


class Fate:
    """What becomes of packets that arrive at these times: which are lost, and why."""

    def __init__(self, library: ctypes.CDLL, settings: str, times_ns: list[int]) -> None:
        with SteppedLink(library, 1, ImpairmentsT.of(parse_settings(settings))) as link:
            self.lost = [not link.push(i, 100, 0, at_ns) for i, at_ns in enumerate(times_ns)]
            self.causes = [link.counter(cause) for cause in (LOST, BURST_LOST, SCRIPT_LOST)]
        assert sum(self.causes) == sum(self.lost)


def bursts(library: ctypes.CDLL, start: float, end: float, more: str = "") -> Fate:
    settings = f"burst_start={start},burst_end={end},seed=5{more}"
    return Fate(library, settings, list(range(PACKETS)))


@pytest.mark.parametrize(("start", "end"), [(0.02, 0.25), (0.1, 0.5), (0.005, 1.0)])
def test_bursts_have_the_length_and_the_share_of_the_formulas(
    library: ctypes.CDLL, start: float, end: float
) -> None:
    fate = bursts(library, start, end)
    runs = [(is_lost, len(list(run))) for is_lost, run in itertools.groupby(fate.lost)]
    lengths = [length for is_lost, length in runs if is_lost]
    gaps = [length for is_lost, length in runs if not is_lost]
    # The seed is fixed; the bounds are four standard errors of geometric lengths, or more.
    assert len(lengths) > 100
    error = 4 / len(lengths) ** 0.5
    assert sum(lengths) / len(lengths) == pytest.approx(1 / end, rel=error)
    assert sum(gaps) / len(gaps) == pytest.approx(1 / start, rel=error)
    wanted = parse_settings(f"burst_start={start},burst_end={end}").mean_loss
    assert wanted == pytest.approx(start / (start + end))
    assert sum(fate.lost) / PACKETS == pytest.approx(wanted, rel=2 * error)
    assert fate.causes == [0, sum(fate.lost), 0]


def test_loss_between_bursts_differs_from_loss_within(library: ctypes.CDLL) -> None:
    fate = bursts(library, 0.1, 0.3, ",burst_loss=0.6,loss=0.05")
    in_burst = 0.1 / 0.4
    shares = [count / PACKETS for count in fate.causes]
    assert shares == pytest.approx([0.05 * (1 - in_burst), 0.6 * in_burst, 0], rel=0.08)
    settings = Impairments(burst_start=0.1, burst_end=0.3, burst_loss=0.6, loss=0.05)
    assert sum(shares) == pytest.approx(settings.mean_loss, rel=0.08)


def test_seed_decides_each_fate(library: ctypes.CDLL) -> None:
    times = list(range(2000))
    settings = "loss=0.05,burst_start=0.01,burst_end=0.2,seed={}"
    first, again, other = (Fate(library, settings.format(n), times).lost for n in (1, 1, 2))
    assert first == again != other


def test_script_by_packets(library: ctypes.CDLL) -> None:
    fate = Fate(library, "script=3p:0/2p:1/repeat", [0] * 12)
    assert fate.lost == [False, False, False, True, True] * 2 + [False, False]
    once = Fate(library, "script=1p:0/2p:1,loss=1", [0] * 5)
    assert once.lost == [False, True, True, True, True]
    assert once.causes == [2, 0, 2], "what follows the script is ordinary loss"


def test_script_by_time_begins_with_the_first_packet(library: ctypes.CDLL) -> None:
    times = [at_us * US for at_us in (70, 169, 170, 219, 220, 319, 320, 100_000 + 170)]
    fate = Fate(library, "script=100us:0/50us:1/repeat", times)
    # Of each 150 us, the last 50 lose; the last packet comes 666 repetitions and 200 us later.
    assert fate.lost == [False, False, True, True, False, False, True, False]


def test_times_and_packets_mix_in_a_script(library: ctypes.CDLL) -> None:
    times = [at_us * US for at_us in (0, 500, 600, 601, 602, 700, 701, 710, 711)]
    fate = Fate(library, "script=10us:0/2p:1/100us:0/repeat", times)
    # The packets at 500 and 600 are the 2; the next interval begins with the packet after them.
    assert fate.lost == [False, True, True, False, False, False, False, False, True]


def test_new_settings_begin_the_script_again(library: ctypes.CDLL) -> None:
    settings = ImpairmentsT.of(parse_settings("script=1p:1"))
    with SteppedLink(library, 1, settings) as link:
        assert [link.push(i, 100, 0, 0) for i in range(2)] == [[], [1]]
        link.set(settings)
        assert [link.push(i, 100, 0, 0) for i in range(2, 4)] == [[], [3]]


@pytest.mark.parametrize(
    "text",
    [
        "loss=0",
        "loss=0.01,delay_s=0.002,seed=7",
        "burst_start=0.001,burst_end=0.1,burst_loss=0.9",
        "reordering=0.1,reordering_packets=3,queue_packets=10",
        "rate_bits_per_s=1000000.0,script=100p:0.5/0.05s:1.0/repeat",
    ],
)
def test_description_is_read_back(text: str) -> None:
    assert parse_settings(parse_settings(text).describe()) == parse_settings(text)


def test_lengths_of_intervals_have_units() -> None:
    assert parse_settings("script=20us:0/50ms:0.6/2s:1/9p:0.5").script == (
        LossInterval(seconds=20e-6, loss=0),
        LossInterval(seconds=0.05, loss=0.6),
        LossInterval(seconds=2, loss=1),
        LossInterval(packets=9, loss=0.5),
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no ''; there are loss, "),
        ("lost=0.1", "no 'lost'; there are loss, "),
        ("loss=0.1,loss=0.2", "loss is there twice"),
        ("loss", "loss is not a number: ''"),
        ("loss=nan", "loss is nan; it must be a probability"),
        ("loss=1.01", "loss is 1.01; it must be a probability"),
        ("burst_loss=-1", "burst_loss is -1; it must be a probability"),
        ("delay_s=-1", "delay_s is -1; it must be 0 or more"),
        ("delay_s=inf", "delay_s is inf"),
        ("delay_s=4000", "at most 3600 s"),
        ("reordering=0.1", "otherwise a held packet would never go on"),
        ("reordering_packets=1.5", "reordering_packets is not a number"),
        ("burst_start=0.1", "bursts need burst_start and burst_end"),
        ("burst_end=0.1", "bursts need burst_start and burst_end"),
        ("script_repeats=1", "no 'script_repeats'"),
        ("script=", "'' in script= is not LENGTH:LOSS"),
        ("script=repeat", "a script without intervals"),
        ("script=5:0.1", "a length is 100p (packets), 50ms, 20us or 2s"),
        ("script=1.5p:0.1", "'1.5p:0.1' in script=1.5p:0.1 is not LENGTH:LOSS"),
        ("script=0p:0.1", "lasts 1 packet or more"),
        ("script=1p:2", "loss of an interval of the script is 2; it must be a probability"),
        ("script=" + "/".join(["1p:0"] * (MAX_INTERVALS + 1)), "has 33 intervals; 32 is the most"),
    ],
)
def test_bad_settings_are_named(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=r"^impairments") as caught:
        parse_settings(text)
    assert named in str(caught.value)


def test_most_intervals_are_those_of_the_runtime() -> None:
    header = (RUNTIME / "ports" / "impairments.h").read_text("utf-8")
    assert re.findall(r"define LOSS_INTERVALS_MAX (\d+)", header) == [str(MAX_INTERVALS)]
