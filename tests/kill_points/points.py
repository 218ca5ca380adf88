# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Kill points of a controller's process: before and after each commit and each P4Runtime message.

Only sqlite3 and finsy's client are wrapped, from outside: no code of the controller knows of it.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

from finsy import P4Client
from finsy.proto import p4r

from kill_points.trigger import POINTS_FILE, REFUSED, Trigger

_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP")


class KillPoints:
    """Notes each point in a file, and kills its process at the one that the trigger names."""

    def __init__(self, folder: Path) -> None:
        self.trigger = Trigger(folder)
        self._log = os.open(folder / POINTS_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def check_disk(self) -> None:
        """Refuse a write to a full disk."""
        if self.trigger.is_disk_full:
            self._note(REFUSED)
            raise sqlite3.OperationalError("database or disk is full")

    def reach(self, name: str) -> None:
        """Note the point; die here if that is planned."""
        self._note(name)
        left = self.trigger.points_left
        if left:
            self.trigger.points_left = left - 1
            if left == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, name: str) -> None:
        os.write(self._log, f"{name}\n".encode())


def install(folder: Path) -> None:
    """Give this process its points; before it opens the database."""
    points = KillPoints(folder)
    _wrap_database(points)
    _wrap_switches(points)


def _wrap_database(points: KillPoints) -> None:
    connect = sqlite3.connect

    class File(sqlite3.Connection):
        """What is about to be committed is named by its first statement."""

        what = ""

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql.startswith(_WRITES):
                points.check_disk()
                self.what = self.what or " ".join(sql.split()[:3])
            if sql != "COMMIT":
                return super().execute(sql, parameters)
            what, self.what = self.what or "nothing", ""
            points.reach(f"before the commit of {what}")
            cursor = super().execute(sql)
            points.reach(f"after the commit of {what}")
            return cursor

    class Memory(sqlite3.Connection):
        """The copy, which is written to the file as a whole after a full disk."""

        def backup(self, target: sqlite3.Connection, **options: Any) -> None:
            points.check_disk()
            points.reach("before the whole copy")
            super().backup(target, **options)
            points.reach("after the whole copy")

    def connect_with_points(path: str | Path, **options: Any) -> sqlite3.Connection:
        factory = Memory if path == ":memory:" else File
        return connect(path, factory=factory, **options)

    sqlite3.connect = connect_with_points


def _wrap_switches(points: KillPoints) -> None:
    request: Any = P4Client.request
    send = P4Client.send

    async def request_with_points(self: P4Client, message: Any) -> Any:
        if not isinstance(message, p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest):
            return await request(self, message)
        what = type(message).__name__
        points.reach(f"before a {what}")
        reply = await request(self, message)
        points.reach(f"after a {what}")
        return reply

    async def send_with_points(self: P4Client, message: p4r.StreamMessageRequest) -> None:
        what = message.WhichOneof("update")
        points.reach(f"before a stream message with {what}")
        await send(self, message)
        points.reach(f"after a stream message with {what}")

    for name, function in (("request", request_with_points), ("send", send_with_points)):
        setattr(P4Client, name, function)
