# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes by pytest-xdist (`pytest -n 2`): who gets which, and who runs alone.

Tests that measure times or rates are marked `alone`. They wait until no other test runs, and others
wait for them.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_TARGET = re.compile(r"\[(?P<target>(?:softswitch|bmv2)-(?:narrow|wide))\b")


def unit_of(nodeid: str) -> str:
    """Return the name of the unit that a test belongs to: its file, or its switch.

    The packet tests share each switch over all their files: one process has it, for all of them.
    """
    file, _, test = nodeid.partition("::")
    folder, _, _ = file.rpartition("/")
    target = _TARGET.search(test)
    if folder == "tests/packet" and target:
        return f"{folder} on {target['target']}"
    return file


def make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that deals out units in the order of collection.

    So the small files of tests/unit come last, and all processes end at about the same time.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 (only where it is installed)

    class UnitScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return UnitScheduling(config, log)


def shorten_folder(config: pytest.Config) -> None:
    """Keep the paths of this process's temporary files short enough for sockets.

    pytest-xdist puts them below .../popen-gw0, where without it they are below .../ itself.
    """
    if _is_one_of_many():
        base = Path(config.option.basetemp)
        config.option.basetemp = str(base.with_name(base.name.removeprefix("popen-gw")))


@contextmanager
def turn(item: pytest.Item) -> Generator[None]:
    """Run a test together with other processes' tests, or alone."""
    if not _is_one_of_many():
        yield
        return
    factory: Any = getattr(item.config, "_tmp_path_factory")  # noqa: B009
    # All processes of a run have their folders in one.
    folder: Path = factory.getbasetemp().parent
    with in_room(folder, is_alone=item.get_closest_marker("alone") is not None):
        yield


def _is_one_of_many() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@contextmanager
def in_room(folder: Path, *, is_alone: bool) -> Generator[None]:
    """Be in a room with others, or alone; the room is known by its folder."""
    with _Lock(folder / "room") as room:
        # Who wants to be alone waits within the door: else those who share would keep him out.
        with _Lock(folder / "door") as door:
            door.take(fcntl.LOCK_EX)
            room.take(fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield


class _Lock:
    """A file lock, which ends with its process at the latest."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def __enter__(self) -> _Lock:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing is not enough where a test forked: its child has the file, too.
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()

    def take(self, how: int) -> None:
        fcntl.flock(self._file, how)
