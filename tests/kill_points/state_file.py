# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller's database says, read with SQLite alone: no code of the controller."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_SUFFIXES: Final = ("", "-journal")
Json = dict[str, Any]


@dataclass
class State:
    """Jobs and views of a database, as plain values."""

    generation: int = 0
    """The last one given."""
    jobs: dict[int, Json] = field(default_factory=dict[int, Json])
    """By number."""
    views: list[Json] = field(default_factory=list[Json])
    """All that are kept, oldest first."""

    down: list[str] = field(default_factory=list[str])
    """Links and switches that an operator took out of use."""

    @property
    def live_views(self) -> list[Json]:
        """Views that hold slots."""
        return [view for view in self.views if view["state"] != "removed"]

    @property
    def installed_views(self) -> list[Json]:
        """Views that switches must have."""
        return [view for view in self.views if view["state"] == "installed"]


Files = dict[str, bytes]
"""A database and its journal, by suffix."""


def read_files(database: Path) -> Files:
    """Return what is on the disk at one moment, though a living controller may write."""
    files = _files(database)
    while (again := _files(database)) != files:
        files = again
    return files


def _files(database: Path) -> Files:
    files: Files = {}
    for suffix in _SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            files[suffix] = Path(f"{database}{suffix}").read_bytes()
    return files


def read_state(files: Files, scratch: Path) -> State:
    """Return what a database says; `scratch` is a folder for a copy.

    A living controller has locked the file itself. A transaction that has not ended counts as one
    that never began.
    """
    copy = scratch / "copy.sqlite3"
    for suffix in _SUFFIXES:
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        if suffix in files:
            Path(f"{copy}{suffix}").write_bytes(files[suffix])
    with closing(sqlite3.connect(copy)) as connection:
        connection.row_factory = sqlite3.Row
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if not version:
            return State()  # it has just been deleted, and the next one is not made yet
        (check,) = connection.execute("PRAGMA integrity_check").fetchone()
        assert check == "ok", check
        (generation,) = connection.execute(
            "SELECT value FROM meta WHERE key = 'generation'"
        ).fetchone()
        jobs = {row["job_number"]: dict(row) for row in connection.execute("SELECT * FROM jobs")}
        down = [row["name"] for row in connection.execute("SELECT name FROM down")]
        views: list[Json] = []
        for row in connection.execute("SELECT * FROM layouts ORDER BY generation"):
            view = json.loads(row["layout"])
            assert (view["generation"], view["job_number"], view["state"]) == tuple(row)[:3]
            views.append(view)
    return State(generation, jobs, views, down)
