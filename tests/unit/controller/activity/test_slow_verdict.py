# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What limits a job: each verdict from figures that show it, and none from figures that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from activity_looks import LookFigures, window_of
from switchfold.controller.cli.activity.looks import LEAST_LOOKS
from switchfold.controller.cli.activity.processors import ProcessorFigures, ProcessorMeter
from switchfold.controller.cli.activity.verdict import Limit, SlowVerdict, judge

BYTES_OF_A_FULL_SECOND = 1_000_000


def figures(busy_share: float = 0.2) -> ProcessorFigures:
    cores = {"s1": 0.9, "controller": 0.1}
    return ProcessorFigures(busy_share=busy_share, num_cores=2, cores_by_process=cores)


def streaming(use: float = 0.5, **fields: object) -> list[LookFigures]:
    """Rounds complete all the time, and worker 1's link is used so much."""
    chosen: dict[str, object] = {
        "waiting": [[0], [1], [2]], "is_stuck": False, "recent_bytes": (9000, 9000, 9000), **fields,
    }  # fmt: skip
    sent = [round(use * BYTES_OF_A_FULL_SECOND * t) for t in range(11)]
    return [
        LookFigures(time_s=t, rounds=50 * t, sent_bytes=(0, sent[t], 0), **chosen)  # pyright: ignore
        for t in range(11)
    ]


def verdict(looks: list[LookFigures], processors: ProcessorFigures | None = None) -> SlowVerdict:
    return judge(window_of(looks), processors)


def assert_unknown(found: SlowVerdict, *reasons: str) -> None:
    assert found.limit is Limit.UNKNOWN
    assert found.text.startswith("cannot tell: ")
    assert found.remedy
    for reason in reasons:
        assert reason in found.text


def test_full_link_is_named_with_its_rate() -> None:
    found = verdict(streaming(use=0.97), figures(1.0))  # what waits for a link may spin
    assert (found.limit, found.name) == (Limit.LINK, "h2-s1")
    assert "the link from h2 to s1 was 97 % full, at 7.76 Mbit/s on average of 8" in found.text


def test_worker_that_sends_nothing_while_all_wait_is_named() -> None:
    stalled = [LookFigures(time_s=t, rounds=t // 3, waiting=[[2], [2]]) for t in range(12)]
    found = verdict(stalled, figures(1.0))
    assert (found.limit, found.name) == (Limit.WORKER, "2")
    assert "for 100 % of 11.0 s, the others waited for worker 2 alone" in found.text


def test_workers_that_compute_most_of_the_time_are_the_limit() -> None:
    rounds = [0, 0, 0, 0, 9, 9, 9, 9, 9, 18]
    found = verdict([LookFigures(time_s=t, rounds=rounds[t]) for t in range(10)], figures(1.0))
    assert found.limit is Limit.WORKERS
    assert "no round was under way for 78 % of 9.0 s" in found.text


def test_busy_machine_is_named_with_its_busiest_process() -> None:
    found = verdict(streaming(), figures(0.95))
    assert (found.limit, found.name) == (Limit.PROCESSOR, "s1")
    assert "95 % of this machine's 2 cores were busy" in found.text
    assert "s1 used most: 0.90; other processes, as workers are, used 0.90" in found.text
    assert found.remedy.startswith("use more cores")


def test_what_else_runs_on_a_busy_machine_is_named() -> None:
    cores = {"s1": 0.1, "controller": 0.05}
    others = ProcessorFigures(busy_share=1.0, num_cores=2, cores_by_process=cores)
    found = verdict(streaming(), others)
    assert "other processes, as workers are, used 1.85" in found.text
    assert found.remedy.startswith("end what else runs here ('ps aux --sort=-%cpu' lists it)")


def test_nothing_full_and_nobody_late_is_unknown() -> None:
    found = verdict(streaming(), figures())
    assert_unknown(found, "h2 to s1, was 50 % full", "no worker was waited for alone", "20 %")
    assert_unknown(verdict(streaming()), "processor times of its machines are not known here")


def test_worker_that_is_late_but_sends_is_a_hint_and_no_verdict() -> None:
    late = streaming(waiting=[[1], [1]])
    assert_unknown(verdict(late, figures()), "worker 1, which kept sending: it, its host or its")


def test_link_of_unknown_rate_is_never_full() -> None:
    found = verdict(streaming(use=5.0, rate_bits_per_s=0.0), figures())
    assert_unknown(found, "3 directions of links have no stated rate")


def test_switch_that_shows_no_slots_is_a_reason() -> None:
    found = verdict(streaming(waiting=[], slot_error="switch s1: registers: UNIMPLEMENTED"))
    assert_unknown(found, "not read: switch s1: registers: UNIMPLEMENTED")
    assert "no worker was waited for" not in found.text


def test_job_that_sums_nothing_is_unknown() -> None:
    found = verdict([LookFigures(time_s=t, rounds=7) for t in range(6)], figures(1.0))
    assert_unknown(found, "it has summed nothing for 5.0 s")


def test_job_between_hosts_is_unknown() -> None:
    found = verdict([LookFigures(time_s=t, path="host") for t in range(6)], figures(1.0))
    assert_unknown(found, "its hosts sum without a switch")


@pytest.mark.parametrize("number", [1, LEAST_LOOKS - 1])
def test_few_looks_are_not_enough(number: int) -> None:
    assert_unknown(verdict(streaming(use=1.0)[:number]), "too few looks")


def write_proc(folder: Path, *, idle: int, busy: int, own: int | None) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(
        f"cpu {busy} 0 0 {idle // 2} {idle - idle // 2} 0 0 0 0 0\ncpu0 1\n", "ascii"
    )
    process = folder / "42"
    process.mkdir(exist_ok=True)
    (process / "stat").unlink(missing_ok=True)
    if own is not None:
        words = ["0"] * 50
        words[0], words[11], words[12] = "S", str(own), str(own)
        (process / "stat").write_text(f"42 (a) b) {' '.join(words)}\n", "utf-8")


def test_processor_meter_compares_two_readings(tmp_path: Path) -> None:
    write_proc(tmp_path, idle=1000, busy=500, own=10)
    meter = ProcessorMeter({"s1": 42, "gone": 43}, proc=tmp_path)
    write_proc(tmp_path, idle=1025, busy=575, own=60)
    found = meter.figures()
    assert found.busy_share == 0.75
    assert set(found.cores_by_process) == {"s1"}
    assert found.cores_by_process["s1"] > 0
    write_proc(tmp_path, idle=1025, busy=575, own=None)
    assert not meter.figures().cores_by_process
