# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How tests are shared out among processes: by file, by switch, and some of them alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from side_by_side import in_room, unit_of
from time_bound import BusyTime, check_time


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/unit/test_wire.py::test_bytes[bmv2-narrow]", "tests/unit/test_wire.py"),
        ("tests/packet/test_lanes.py::test_a[3-bmv2-wide]", "tests/packet/test_lanes.py"),
        ("tests/packet/test_lanes.py::test_a[bmv2-wide-3]", "tests/packet on bmv2-wide"),
        ("tests/packet/test_io.py::test_b[bmv2-wide]", "tests/packet on bmv2-wide"),
        ("tests/packet/test_io.py::test_b", "tests/packet/test_io.py"),
    ],
)
def test_unit_is_the_file_or_the_switch(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


def test_who_is_alone_waits_for_others_and_they_for_him(tmp_path: Path) -> None:
    seen: list[str] = []
    entered = threading.Event()

    def enter(name: str, *, is_alone: bool) -> threading.Thread:
        def stay() -> None:
            with in_room(tmp_path, is_alone=is_alone):
                seen.append(name)
                entered.set()

        thread = threading.Thread(target=stay)
        thread.start()
        return thread

    with in_room(tmp_path, is_alone=False):
        enter("beside", is_alone=False).join(10)
        assert seen == ["beside"]
        entered.clear()
        waiting = [enter("alone", is_alone=True)]
        assert not entered.wait(0.1)
    waiting[0].join(10)
    with in_room(tmp_path, is_alone=True):
        entered.clear()
        waiting.append(enter("after", is_alone=False))
        assert not entered.wait(0.1)
    waiting[1].join(10)
    assert seen == ["beside", "alone", "after"]


def test_promise_is_held_but_for_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = BusyTime()
    monkeypatch.setattr(BusyTime, "so_far_s", 0.5)
    check_time(2.4, 2.0, busy, "it")
    with pytest.raises(AssertionError, match=r"it took 2.6 s, 0.5 s of them on a busy machine"):
        check_time(2.6, 2.0, busy, "it")
