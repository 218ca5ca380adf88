# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's arithmetic: limits by hand, and how workers' runs become times."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.allreduce import latency
from benchmarks.support import limits, link_check, processor, report
from benchmarks.trees import tree_report
from switchfold.bmv2_topos.network import rate_probe
from switchfold.hostlib.slots import wire


def test_limits_agree_with_hand_calculation() -> None:
    efficiency = limits.switchfold_efficiency(wire.VALUES_PER_PACKET_WIDE)
    assert efficiency == pytest.approx(1408 / 1494)
    assert rate_probe.FRAME_BYTES == 1494
    ours = limits.switchfold_limit_s(16_000_000, 100e6, wire.VALUES_PER_PACKET_WIDE)
    assert ours == pytest.approx(1.28 * 1494 / 1408)
    ring = limits.ring_limit_s(16_000_000, 100e6, 4)
    assert ring == pytest.approx(1.5 * 1.28 * 1514 / 1448)


def test_readme_states_the_largest_ratios() -> None:
    text = (Path(limits.__file__).parents[1] / "README.md").read_text()
    stated = re.search(r"is ([\d.]+) at 2 workers, ([\d.]+) at 4 and ([\d.]+) at 8", text)
    assert stated is not None
    for number, shown in zip((2, 4, 8), stated.groups(), strict=True):
        most = limits.ring_limit_s(1, 1, number) / limits.switchfold_limit_s(1, 1, 352)
        assert f"{most:.2f}" == shown


def test_stream_of_a_ring_that_crosses_the_slowest_link_limits_it() -> None:
    # One of the two streams on 60 Mbit/s has 30 of it, the one on 25 Mbit/s has less.
    found = limits.routed_ring_limit_s(1_000_000, 8, [(1, 100e6), (2, 60e6), (1, 25e6)])
    assert found == pytest.approx(limits.ring_limit_s(1_000_000, 25e6, 8))
    found = limits.routed_ring_limit_s(1_000_000, 8, [(1, 100e6), (3, 60e6), (1, 25e6)])
    assert found == pytest.approx(limits.ring_limit_s(1_000_000, 20e6, 8))


def test_sums_among_hosts_are_limited_by_the_slowest_link_or_by_all() -> None:
    for count in range(2, 9):
        equal = limits.host_allreduce_limit_s(1_000_000, [20e6] * count)
        assert equal == pytest.approx(limits.ring_limit_s(1_000_000, 20e6, count))
        slow = limits.host_allreduce_limit_s(1_000_000, [5e6] + [20e6] * (count - 1))
        assert slow == pytest.approx(8 / 5 * 1514 / 1448), "the vector once over the slow link"


def tree_row(measured: int) -> dict[str, Any]:
    """Return a fabric of one link, on which 1000 bytes are predicted."""
    return {
        "fabric": "2-spines",
        "switchfold": contender(1.0, 0.9),
        "gloo_switch": contender(4.0, 3.0),
        "ratio": 4.0,
        "ratio_of_limits": 3.33,
        "spread_ring_limit_s": 1.8,
        "trees": 2,
        "slots": 128,
        "window": 112,
        "links": [{"link": "s1 > s5", "predicted": 1000.0, "measured": measured}],
        "largest_difference": measured / 1000 - 1,
        "gloo_bytes": {"s1 > s5": 1750},
    }


@pytest.mark.parametrize(("measured", "verdict"), [(1019, "met"), (981, "met"), (979, "MISSED")])
def test_tree_report_states_ratio_limits_and_bytes(measured: int, verdict: str) -> None:
    text = tree_report.describe_row(tree_row(measured))
    assert "4.00 times Gloo; 3.33 if both were at their limits (2.00 if" in text
    assert "2 trees, 128 slots, window 112" in text
    lines = tree_report.describe_links(tree_row(measured)).splitlines()
    assert [lines[1].split()[i] for i in (-5, -4, -1)] == ["1000", str(measured), "1750"]
    assert lines[2].endswith(verdict)


def test_differences_leave_out_links_without_prediction() -> None:
    carried = {"h1 > s1": 1010, "s1 > h1": 70}
    found = link_check.differences(carried, {"h1 > s1": 1000.0})
    assert found == {"h1 > s1": pytest.approx(0.01)}


def times(busy_s: float, total_s: float, switch_s: float) -> dict[str, Any]:
    """The second switch does half of what the first one does."""
    return {"busy_s": busy_s, "total_s": total_s, "switches_s": [switch_s, switch_s / 2]}


def worker(began_s: float, ended_s: float, checksum: int = 7) -> dict[str, Any]:
    """A worker on two cores that are busy all the time; the switch takes a tenth of one."""
    run = {
        "label": "x",
        "repeat": 1,
        "began_s": began_s,
        "ended_s": ended_s,
        "cpu_s": 0.25,
        "processor_before": times(2 * began_s, 2 * began_s, 0.1 * began_s),
        "processor_after": times(2 * ended_s, 2 * ended_s, 0.1 * ended_s),
        "checksum": checksum,
    }
    warm_up = {**run, "repeat": 0, "began_s": 0.0, "ended_s": 99.0, "checksum": 1}
    return {"runs": [warm_up, run]}


def test_series_lasts_from_first_start_to_last_end_without_warm_up() -> None:
    series = limits.collect_series("x", [worker(10.0, 11.0), worker(10.5, 12.0)], 1.0)
    assert series.times_s == (2.0,)
    assert series.share_of_limit == 0.5


def test_series_tells_what_kept_the_processor_busy() -> None:
    series = limits.collect_series("x", [worker(10.0, 11.0), worker(10.5, 12.0)], 1.0)
    assert series.worker_cpu_s == (0.5,)
    assert series.switch_cpu_s == (pytest.approx(0.3),)
    assert series.busiest_switch_s == (pytest.approx(0.2),)
    assert series.busy_share == 1.0
    assert series.is_cpu_bound


def test_series_refuses_results_that_differ() -> None:
    with pytest.raises(ValueError, match="different results"):
        limits.collect_series("x", [worker(0.0, 1.0), worker(0.0, 1.0, checksum=8)], 1.0)


def test_processor_counters_are_read_from_the_kernels_text() -> None:
    #               user nice system idle iowait irq softirq steal guest
    stat = "cpu  100 10 50 700 40 5 15 80 60 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
    assert processor.parse_machine(stat) == (260, 1000)
    fields = "S 1 2 3 4 5 6 7 8 9 10 123 45 6 7"
    assert processor.parse_process(f"42 (odd) name) {fields}") == 168


def contender(median_s: float, limit_s: float, *, is_cpu_bound: bool = False) -> dict[str, Any]:
    return {
        "median_s": median_s,
        "min_s": median_s,
        "max_s": median_s,
        "limit_s": limit_s,
        "share_of_limit": limit_s / median_s,
        "busy_share": 0.95 if is_cpu_bound else 0.5,
        "is_cpu_bound": is_cpu_bound,
        "worker_cpu_s": 1.0,
        "switch_cpu_s": 0.5,
    }


@pytest.mark.parametrize("faster", report.PEERS)
def test_quoted_ratio_is_against_the_faster_gloo(faster: str) -> None:
    row = {
        "num_workers": 4,
        "switchfold": contender(1.0, 1.0),
        **{peer: contender(1.5 if peer == faster else 3.0, 1.4) for peer in report.PEERS},
    }
    compared = report.compare(row)
    assert compared["faster_gloo"] == faster
    assert compared["ratio"] == 1.5
    assert sorted(compared["ratios"].values()) == [1.5, 3.0]
    text = report.describe_row({**row, **compared})
    assert "1.50 times the faster Gloo" in text
    assert "3.00 times the other; 1.40 if all" in text
    assert "CPU-bound" not in text


def test_report_says_who_is_bound_by_the_processor() -> None:
    row = {
        "num_workers": 8,
        "switchfold": contender(1.0, 1.0),
        "gloo_switch": contender(3.0, 1.4, is_cpu_bound=True),
        "gloo_bridge": contender(1.5, 1.4),
    }
    text = report.describe_row({**row, **report.compare(row)})
    assert "all cores busy, or the switch over 75 % of one): Gloo, same switch:" in text
    assert (limits.CPU_BOUND_SHARE, limits.SWITCH_BOUND_SHARE) == (0.9, 0.75)


@pytest.mark.parametrize(("switch_s", "is_bound"), [(1.4, False), (1.6, True)])
def test_switch_that_fills_its_core_binds_while_others_idle(
    switch_s: float, *, is_bound: bool
) -> None:
    series = limits.Series(
        label="x",
        limit_s=1.0,
        times_s=(2.0,),
        busy_shares=(0.6,),
        worker_cpu_s=(0.5,),
        switch_cpu_s=(switch_s + 1.0,),
        busiest_switch_s=(switch_s,),
    )
    assert series.is_cpu_bound == is_bound


def test_processor_time_of_a_chunk_counts_every_worker() -> None:
    row = {
        "num_workers": 4,
        "num_chunks": 100,
        "switchfold": {"worker_cpu_s": 0.002, "switch_cpu_s": 0.001},
    }
    assert report.chunk_costs(row) == pytest.approx({"worker_us": 5.0, "switch_us": 2.5})


def test_latency_is_over_the_sums_of_all_workers() -> None:
    workers = [
        {"times_s": {label: [0.001 * i for i in part] for label in report.NAMES}}
        for part in (range(1, 51), range(51, 102))
    ]
    found = latency.describe(workers)["switchfold"]
    assert found["sums"] == 101
    assert found["p50_us"] == pytest.approx(51_000)
    assert found["p99_us"] == pytest.approx(100_000)
