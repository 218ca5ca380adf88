# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Delays of threads: where they fall, that they repeat and end, and that they find a race."""

from __future__ import annotations

import threading

import pytest

import thread_delays
from thread_delays import ROOT, make_trace, new_threads_delayed, this_thread_delayed

WAIT_S = 60.0


def delays_of(filename: str, lines: int, seed: int = 1) -> list[float]:
    """Return the delays of a file of so many lines that a thread of its own runs."""
    delays: list[float] = []
    code = compile("a = 1\n" * lines, filename, "exec")

    def run() -> None:
        with this_thread_delayed(make_trace(seed, delays.append)):
            exec(code, {})

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return delays


@pytest.mark.parametrize(
    ("filename", "are_any"),
    [
        (f"{ROOT}/src/switchfold/hostlib/session.py", True),
        (f"{ROOT}/tests/unit/tests/test_tree.py", True),
        (f"{ROOT}/.venv/lib/python3.11/site-packages/numpy/__init__.py", False),
        ("/usr/lib/python3.11/queue.py", False),
        (f"{ROOT}-beside/hostlib/session.py", False),
    ],
)
def test_only_lines_of_the_project_are_delayed(filename: str, are_any: bool) -> None:
    # This file's own call makes a few.
    assert (len(delays_of(filename, 1000)) > 10) == are_any


def test_a_seed_repeats_its_delays() -> None:
    first, again, other = (delays_of(f"{ROOT}/a.py", 1000, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_delays_of_many_lines_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_delays, "MOST_DELAY_S", 1.0)
    delays = delays_of(f"{ROOT}/a.py", 30_000)
    assert 0.9 < sum(delays) <= 1.0 + max(delays)


def asserts_too_much(seed: int) -> bool:
    """Tell whether a test that asserts more than it waits for would fail with this seed."""
    done, looked = threading.Event(), threading.Event()
    results: list[int] = []

    def work() -> None:
        done.set()
        results.append(1)

    def stop(_delay_s: float) -> None:
        if done.is_set():
            assert looked.wait(WAIT_S)

    with new_threads_delayed(make_trace(seed, stop)):
        thread = threading.Thread(target=work)
        thread.start()
    assert done.wait(WAIT_S)
    found = not results
    looked.set()
    thread.join()
    return found


def test_delays_find_what_a_test_does_not_wait_for() -> None:
    assert any(asserts_too_much(seed) for seed in range(200))
