# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time that sums over lossy links take, with and without tolerance: in simulated time.

The program checks each sum, and what it lacks.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.allreduce.simulated_loss import SimulatedRun, compile_simulation, tolerated_row

NOISE = 1.02
"""As much may a mean over a few seeds be larger by chance."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulation") / "loss_simulation"
    compile_simulation(path)
    return path


def options_of(*, tolerated: float | None = None, stale: float | None = None) -> Namespace:
    """Return what the command gets, for a second of one seed."""
    return Namespace(
        chunks=400,
        seeds=1,
        seconds=1,
        tolerated=tolerated,
        stale=stale,
        late_wait="silence",
        nap=0.0,
        awake=0.2,
        rate=8000.0,
        uplink=None,
        transposed=False,
    )


def mean_s(program: Path, num_chunks: int, **settings: float) -> float:
    """Return the mean time of the sums of two seeds."""
    runs = [
        SimulatedRun(program, chunks=num_chunks, seconds=2, seed=seed, **settings)
        for seed in (1, 2)
    ]
    return float(np.mean([time for run in runs for time in run.times]))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.2])
@pytest.mark.parametrize("of", ["up", "down", "loss"])
def test_tolerance_is_never_slower_than_repair(program: Path, of: str, share: float) -> None:
    """Contributions, results or both are lost: as many as a tenth that is tolerated, or more."""
    repair_s = mean_s(program, 2000, **{of: share})
    assert mean_s(program, 2000, tolerated=0.1, stale=None, **{of: share}) <= repair_s * NOISE


@pytest.mark.parametrize("of", ["up", "down", "loss"])
def test_small_tensors_do_not_wait_for_closers(program: Path, of: str) -> None:
    """Of 20 chunks: nothing else is to be sent while the last ones wait."""
    repair_s = mean_s(program, 20, **{of: 0.05})
    assert mean_s(program, 20, tolerated=0.1, stale=None, **{of: 0.05}) <= repair_s * NOISE


def test_lost_contributions_cost_a_tenth_of_the_time_at_most(program: Path) -> None:
    lossless_s = mean_s(program, 2000)
    assert mean_s(program, 2000, tolerated=0.1, stale=None, up=0.05) <= 1.1 * lossless_s


def test_timers_do_not_send_what_waits_for_its_closer(program: Path) -> None:
    """Round trips of 10 ms: a chunk that is late and then waits for one may reach its timer."""
    link = {"rate": 2090, "chunks": 455, "seconds": 10, "seed": 1}
    sent, again, *_ = SimulatedRun(program, **link, tolerated=0.1, up=0.05).packets
    assert again / sent < 0.07


def test_row_tells_what_is_lacking(program: Path) -> None:
    options = options_of(tolerated=0.1, stale=None)
    cells = tolerated_row(program, options, 4, "0.05:up").split("|")
    assert cells[3].strip() == "contributions"
    assert 0.94 < float(cells[-2]) < 0.97


def test_row_of_an_unknown_direction_is_refused(program: Path) -> None:
    options = options_of(tolerated=0.1, stale=None)
    with pytest.raises(
        SystemExit, match=r"--loss 0\.05:left with --tolerated or --stale: give SHARE"
    ):
        tolerated_row(program, options, 4, "0.05:left")


def test_workers_that_sleep_now_and_then_are_not_let_go_by_the_tail(program: Path) -> None:
    """Without any loss, by silence they are."""
    sleep = {"chunks": 2000, "seconds": 4, "nap": 0.02, "awake": 0.2, "tolerated": 0.1}
    silence = SimulatedRun(program, **sleep)
    adaptive = SimulatedRun(program, **sleep, adaptive=1)
    assert silence.coverage < 0.995
    assert adaptive.coverage > 0.999
    assert np.mean(adaptive.times) < np.mean(silence.times)


def test_large_chunks_lack_nothing(program: Path, tmp_path: Path) -> None:
    """A fifth of all packets is lost, of which the other chunks may lack a tenth."""
    is_large = np.arange(400) % 3 == 0
    is_large.astype(np.uint8).tofile(tmp_path / "large")
    files = {"large": tmp_path / "large", "bitmaps": tmp_path / "bitmaps"}
    run = SimulatedRun(program, chunks=400, seconds=1, tolerated=0.1, loss=0.2, **files)
    bitmaps = np.fromfile(tmp_path / "bitmaps", np.uint32).reshape(-1, 400)
    assert len(bitmaps) == len(run.times) > 0
    assert (bitmaps[:, is_large] == 0b1111).all()
    assert (bitmaps[:, ~is_large] != 0b1111).any()


@pytest.mark.parametrize("num_workers", [2, 4])
def test_window_paces_datagrams_at_10_mbit_s(program: Path, num_workers: int) -> None:
    """Links carry 837 datagrams of 1,494 bytes a second, mark beyond 20 and drop beyond 64.

    Without marks, the same window overflows the same queue.
    """
    link = {"workers": num_workers, "chunks": 400, "seconds": 5, "rate": 837, "delay": 0.001}
    paced = SimulatedRun(program, **link, mark=20, queue=64)
    assert paced.times
    assert paced.marked > 0
    assert paced.dropped == 0
    assert SimulatedRun(program, **link, queue=64).dropped > 0


def test_queue_that_fills_at_10_mbit_s_makes_nobody_send_again(program: Path) -> None:
    """A window of 112 chunks waits for 134 ms: longer than the timers knew."""
    run = SimulatedRun(program, workers=4, chunks=400, seconds=5, rate=837)
    assert run.packets[0] > 0
    assert run.packets[1] == 0


def test_transposed_sums_send_again_what_is_lost_and_little_more(program: Path) -> None:
    """Two workers are on a leaf, and share an uplink of half the rate of each.

    Three of four contributions to a chunk, and as many results, cross two links that lose 5 %.
    So four workers over one switch whose links lose as much together send no less again.
    """
    fabric = {"transposed": 1, "rate": 2090, "uplink": 1045, "seconds": 20, "chunks": 455}
    lossless = SimulatedRun(program, **fabric)
    assert lossless.packets[1] == 0
    lossy = SimulatedRun(program, **fabric, loss=0.05)
    one_switch = SimulatedRun(program, chunks=455, seconds=20, rate=2090, loss=1 - 0.95**2)
    shares = [run.packets[1] / run.packets[0] for run in (lossy, one_switch)]
    assert 0.2 < shares[0] < shares[1]
    assert np.mean(lossy.times) < 2 * np.mean(lossless.times)


def test_row_of_stale_results_compares_them_with_repair(program: Path) -> None:
    options = options_of(tolerated=None, stale=0.1)
    cells = tolerated_row(program, options, 4, "0.05:down").strip("| ").split(" | ")
    assert cells[:3] == ["4", "5 %", "results"]
    repaired, stale, kept = (float(cells[i].removesuffix(" %")) for i in (5, 8, 9))
    assert stale < repaired / 2
    assert 2.5 < kept <= 10


def test_transposed_sums_end_where_links_lose_a_fifth(program: Path) -> None:
    """A chunk crosses two such links each way. Without answers to repetitions, a sum takes 35 s."""
    fabric = {"transposed": 1, "rate": 2090, "uplink": 1045, "chunks": 455}
    lossless = SimulatedRun(program, **fabric, seconds=5)
    lossy = SimulatedRun(program, **fabric, seconds=20, loss=0.2)
    assert np.mean(lossy.times) < 4 * np.mean(lossless.times)
    assert lossy.packets[1] < 3 * lossy.packets[0]


def test_eight_transposed_workers_bound_round_trips_by_the_fastest_results(program: Path) -> None:
    """A twentieth of their chunks needs no repair. Without that bound, a sum takes 7 s."""
    lossless = SimulatedRun(program, workers=8, transposed=1, seconds=2)
    lossy = SimulatedRun(program, workers=8, transposed=1, seconds=10, loss=0.2)
    assert np.mean(lossy.times) < 15 * np.mean(lossless.times)
    assert lossy.packets[1] < 4 * lossy.packets[0]


def test_sixteen_workers_learn_no_round_trips_from_each_others_repairs(program: Path) -> None:
    """Each waits for the repairs of 15: once, nearly all round trips were of these, and grew."""
    lossless = SimulatedRun(program, workers=16, seconds=2)
    lossy = SimulatedRun(program, workers=16, seconds=10, loss=0.2)
    assert np.mean(lossy.times) < 10 * np.mean(lossless.times)
    assert lossy.packets[1] < 2.5 * lossy.packets[0]
