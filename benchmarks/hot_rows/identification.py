# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How well a sample finds the hot keys, against the truth and an LRU cache; how rows are filled."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.hot_rows.lru import LruCache  # noqa: E402
from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.controller.cli.workloads.key_stream import (  # noqa: E402
    RECOMMENDATION,
    SEARCH,
    KeyStream,
)
from switchfold.hostlib.hot_rows import (  # noqa: E402
    EMPTY,
    BatchSampler,
    FrequencySketch,
    HotSet,
    HotSetOptions,
    HotSetTracker,
    LaneLayout,
    RowShape,
    plan_layout,
    refresh_layout,
)

Keys = NDArray[np.int64]
Figures = dict[str, Any]
_T = TypeVar("_T")
BATCH: Final = 4096
"""Updates of a mini-batch."""
SKEWS: Final = {"0.9 M keys": RECOMMENDATION, "150 M keys": SEARCH}
SIZES: Final = (1024, 20_000)
SHARES: Final = (0.01, 0.05, 0.10)
WIDTH: Final = 16
NUM_FIELDS: Final = 26
CLICKS: Final = replace(RECOMMENDATION, num_fields=NUM_FIELDS)
LOADS: Final = {
    "0.9 M keys": (RECOMMENDATION, BATCH),
    "150 M keys": (SEARCH, BATCH),
    "26 fields": (CLICKS, 64),
    "64 topics, 30%": (replace(CLICKS, num_topics=64, affinity=0.3), 64),
    "512 topics, 30%": (replace(CLICKS, num_topics=512, affinity=0.3), 64),
    "512 topics, 80%": (replace(CLICKS, num_topics=512, affinity=0.8), 64),
}
"""Popularity, and samples of a mini-batch."""


def timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return what the work returns, and its seconds of the processor."""
    start_s = time.process_time()
    result = work()
    return result, time.process_time() - start_s


def show(title: str, rows: Iterable[Figures]) -> list[Figures]:
    """Print a table row by row as it is measured; return its rows."""
    print(f"\n{title}", flush=True)
    shown: list[Figures] = []
    for row in rows:
        if not shown:
            print("  ".join(f"{name:>14}" for name in row))
        print("  ".join(f"{text(value):>14}" for value in row.values()), flush=True)
        shown.append(row)
    return shown


def text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def count(batches: Sequence[Keys]) -> tuple[FrequencySketch, int]:
    """Return a sketch of mini-batches and the most bytes that it had."""
    sketch, most_bytes = FrequencySketch(), 0
    for batch in batches:
        sketch.update(batch)
        most_bytes = max(most_bytes, sketch.memory_bytes)
    assert sketch.total == sum(batch.size for batch in batches)
    return sketch, most_bytes


def choose(sketch: FrequencySketch, size: int) -> HotSet:
    tracker = HotSetTracker(HotSetOptions(size=size, sketch_capacity=sketch.capacity))
    return tracker.refresh([sketch]).hot_set


def identify(updates: int, seed: int) -> Iterable[Figures]:
    """Choose hot sets from samples of a stream, and compare them with the true ones."""
    for skew, popularity in SKEWS.items():
        stream = KeyStream(popularity, seed)
        for share in SHARES:
            sampler = BatchSampler(share, seed)
            sampled = sum(sampler.takes_next() for _ in range(updates // BATCH))
            batches = [stream.draw(BATCH).ravel() for _ in range(sampled)]
            (sketch, most_bytes), seconds = timed(lambda drawn=batches: count(drawn))
            for size in SIZES:
                hot_set = choose(sketch, size)
                true, coverage = stream.hottest(size), hot_set.coverage
                assert coverage.low <= stream.share(hot_set.keys) <= coverage.high
                yield {
                    "load": skew,
                    "hot keys": size,
                    "sample": f"{share:.0%}",
                    "precision": float(np.isin(hot_set.keys, true).mean()),
                    "best coverage": stream.share(true),
                    "coverage": stream.share(hot_set.keys),
                    "estimate": coverage.estimate,
                    "low": coverage.low,
                    "high": coverage.high,
                    "MiB": most_bytes / 2**20,
                    "M keys/s": sampled * BATCH / seconds / 1e6,
                }


def refresh(updates: int, seed: int) -> Iterable[Figures]:
    """Move popularity to other keys between the third refresh and the fourth."""
    stream = KeyStream(RECOMMENDATION, seed)
    sampler = BatchSampler(0.05, seed)
    tracker = HotSetTracker(HotSetOptions(size=20_000))
    shape = RowShape(num_lanes=352, width=WIDTH)
    layout = plan_layout(np.empty(0, np.int64), shape, num_rows=shape.num_rows(20_000)).layout
    before = np.empty(0, np.int64)
    for number in range(1, 7):
        if number == 4:
            stream.permute(seed + 1)
        sampled = sum(sampler.takes_next() for _ in range(updates // BATCH))
        sketch, _ = count([stream.draw(BATCH).ravel() for _ in range(sampled)])
        change, seconds = timed(lambda counted=sketch: tracker.refresh([counted]))
        refreshed = refresh_layout(layout, change)
        layout = refreshed.layout
        batches = [stream.draw(BATCH).ravel() for _ in range(16)]
        yield {
            "refresh": number,
            "coverage before": stream.share(before),
            "coverage after": stream.share(change.hot_set.keys),
            "estimate": change.hot_set.coverage.estimate,
            "best coverage": stream.share(stream.hottest(20_000)),
            "kept": change.kept.size,
            "added": change.added.size,
            "shift seen": change.is_shift,
            "changed rows": refreshed.changed_rows.size,
            "fill": layout.fill(batches).ratio,
            "fill if new": plan_layout(change.hot_set.keys, shape).layout.fill(batches).ratio,
            "ms": f"{1e3 * seconds:.0f}",
        }
        before = change.hot_set.keys


def push(seed: int) -> Iterable[Figures]:
    """Count the keys of a mini-batch once each, as a worker pushes them."""
    for skew, popularity in SKEWS.items():
        stream = KeyStream(popularity, seed)
        hot = stream.hottest(20_000)
        for samples in (256, 4096, 65_536):
            pushed = [np.unique(stream.draw(samples)) for _ in range(1 + 400_000 // samples)]
            num_pushed = sum(keys.size for keys in pushed)
            yield {
                "load": skew,
                "mini-batch": samples,
                "pushed keys": num_pushed // len(pushed),
                "hot updates": stream.share(hot),
                "hot pushes": sum(int(np.isin(keys, hot).sum()) for keys in pushed) / num_pushed,
            }


def compare_lru(updates: int, lru_updates: int, seed: int) -> Iterable[Figures]:
    """Give the same updates to a static hot set of a 5 % sample and to a warm LRU cache."""
    for skew, popularity in SKEWS.items():
        stream = KeyStream(popularity, seed)
        sampler = BatchSampler(0.05, seed)
        sampled = sum(sampler.takes_next() for _ in range(updates // BATCH))
        sketch, _ = count([stream.draw(BATCH).ravel() for _ in range(sampled)])
        warming, measured = stream.draw(lru_updates).ravel(), stream.draw(lru_updates).ravel()
        for size in SIZES:
            cache = LruCache(size)
            cache.use(warming)
            assert len(cache) == size
            yield {
                "load": skew,
                "entries": size,
                "static hits": float(np.isin(measured, choose(sketch, size).keys).mean()),
                "LRU hits": cache.use(measured) / measured.size,
                "best": stream.share(stream.hottest(size)),
            }


def ranks_down_the_rows(keys: Keys, shape: RowShape) -> LaneLayout:
    """Return the layout with consecutive ranks on the same lanes of consecutive rows."""
    rows = shape.num_rows(keys.size)
    cells = np.full(rows * shape.keys_per_row, EMPTY, np.int64)
    cells[: keys.size] = keys
    cells = cells.reshape(shape.keys_per_row, rows).T.ravel()
    return LaneLayout(shape, cells, np.ones(rows, np.uint32))


def fill_by_key_number(hot: Keys, batches: Sequence[Keys], shape: RowShape) -> float:
    """Return the fill ratio of rows that hold consecutive keys, as a table lies in memory."""
    rising = np.sort(hot)
    touched = [np.intersect1d(batch, rising) for batch in batches]
    rows = sum(np.unique(keys // shape.keys_per_row).size for keys in touched)
    return sum(keys.size for keys in touched) * shape.width / (rows * shape.num_lanes)


def fill_rows(num_batches: int, seed: int) -> Iterable[Figures]:
    """Plan rows with some mini-batches, and fill them with others."""
    for load, (popularity, samples) in LOADS.items():
        stream = KeyStream(popularity, seed)
        batches = [stream.draw(samples).ravel() for _ in range(num_batches)]
        others = [stream.draw(samples).ravel() for _ in range(64)]
        for size in (2048, 20_000):
            sketch, _ = count(batches)
            keys = choose(sketch, size).keys
            shuffled = np.random.default_rng(seed).permutation(keys)
            for lanes in (32, 352):
                shape = RowShape(num_lanes=lanes, width=WIDTH)
                planned, seconds = timed(lambda k=keys, s=shape, b=batches: plan_layout(k, s, b))
                fill = planned.layout.fill(others)
                by_heat = plan_layout(keys, shape).layout.fill(others)
                yield {
                    "load": load,
                    "hot keys": size,
                    "lanes": lanes,
                    "touched keys": fill.values // WIDTH // len(others),
                    "planned": fill.ratio,
                    "by": "co-occurrence" if planned.is_by_cooccurrence else "heat",
                    "by heat": by_heat.ratio,
                    "random": plan_layout(shuffled, shape).layout.fill(others).ratio,
                    "down the rows": ranks_down_the_rows(keys, shape).fill(others).ratio,
                    "by key number": fill_by_key_number(keys, others, shape),
                    "plan s": f"{seconds:.1f}",
                }


def look_up(seed: int) -> Iterable[Figures]:
    """Look up a stream's keys in layouts."""
    for skew, popularity in SKEWS.items():
        stream = KeyStream(popularity, seed)
        keys = stream.draw(1 << 20).ravel()
        for size in SIZES:
            layout = plan_layout(stream.hottest(size), RowShape(num_lanes=352, width=WIDTH)).layout
            places, seconds = min(
                (timed(lambda wanted=keys, found=layout: found.places(wanted)) for _ in range(5)),
                key=lambda result: result[1],
            )
            assert np.array_equal(places.row != EMPTY, np.isin(keys, stream.hottest(size)))
            yield {
                "load": skew,
                "hot keys": size,
                "M keys/s": keys.size / seconds / 1e6,
                "layout bytes": len(layout.pack()),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20_000_000, help="a sample is taken of")
    parser.add_argument("--lru-updates", type=int, default=2_000_000, help="of both rivals")
    parser.add_argument("--batches", type=int, default=768, help="mini-batches to plan rows with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(f"mini-batches of {BATCH} updates where nothing else is said; seed {options.seed}")
    results: Figures = {"machine": machine, "parameters": parameters_of(options)}
    results["identification"] = show(
        f"Hot keys from a sample of {options.updates} updates",
        identify(options.updates, options.seed),
    )
    results["push"] = show("Share of the hottest 20,000 keys", push(options.seed))
    results["refresh"] = show(
        "Refreshes, 5 % samples, 0.9 M keys; popularity moves before the fourth",
        refresh(options.updates, options.seed),
    )
    results["lru"] = show(
        f"A static hot set (5 % sample) against a warm LRU cache, {options.lru_updates} updates",
        compare_lru(options.updates, options.lru_updates, options.seed),
    )
    results["fill"] = show(
        f"Fill ratio of packets with {WIDTH} values per key; planned with {options.batches}"
        " mini-batches, measured with 64 others",
        fill_rows(options.batches, options.seed),
    )
    results["places"] = show("Places of keys", look_up(options.seed))
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
