# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How a replica gets the updates before its first place: it reads its server's log, or a copy.

What it reads goes through its own log, which begins as a copy of the server's, with the numbers
that it has there. So a replica that is killed meanwhile goes on where it was.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from ....control.stations.replica_terms import CatchUpWanted, StateReported
from ....errors import ConfigurationError, ForeignLogError, HostlibError, LogCopyError, StorageError
from ....guarded_thread import thread_failure
from ....peers.event_loop import EventLoop, Timer
from ...storage.log_reader import LogReader, ReadRecord
from ...tables.recovery import RecordReplay
from ...tables.service import TableService
from .model_checksum import stored_state

BATCH_BYTES: Final = 16 << 20
"""Most payload that is read at a time, but for the last record of it."""
POLL_S: Final = 0.05
"""Pause until a copy that lacks records is looked at again."""
_logger = logging.getLogger(__name__)


@final
class LogFollower:
    """Reads to the log's present end at first, and up to a record when the scheduler names one.

    Runs in the loop's thread, but for the constructor and `await_end`. No worker may have been let
    in: what it changes would come between the server's records.
    """

    def __init__(
        self,
        tables: TableService,
        loop: EventLoop,
        shard: int,
        server_log: Path,
        *,
        report: Callable[[StateReported], None],
        on_failed: Callable[[HostlibError], None],
    ) -> None:
        """`server_log`: what the server has for --log, or a copy.

        `report(state)`: the replica has all up to the record that was named. `on_failed(error)`: it
        cannot follow its server.

        Raises ConfigurationError without a log of its own, and what `WriteAheadLog.last_mark` does.
        """
        if tables.log is None:
            raise ConfigurationError(
                "a replica that reads its server's log needs a copy of it to begin with: give log"
                " (--log), too"
            )
        self.is_over = False
        """The replica has joined, and has all else from the workers."""
        self.problem: HostlibError | None = None
        """Why it cannot follow its server."""
        self._tables = tables
        self._loop = loop
        self._log = tables.log
        self._report = report
        self._on_failed = on_failed
        directory = server_log / "log"
        self._reader = LogReader(directory, self._log.identity, self._log.last_mark())
        self._replay = RecordReplay(tables.state, directory, shard)
        self._wanted: CatchUpWanted | None = None
        self._in_log: list[ReadRecord] = []
        """Read, and not durable in the replica's own log."""
        self._is_near = False
        """What is in the log was all that there was."""
        self._has_ended = threading.Event()
        self._timer: Timer | None = None
        self._on_over: Callable[[], None] | None = None

    def await_end(self) -> None:
        """Apply all that is there now, from another thread than the loop's.

        Raises what `LogReader.read` and `RecordReplay.apply` do, what the own log does,
        ThreadFailedError after a defect, and PeerClosedError if the loop fails.
        """
        self._loop.on_failure(self._wait_no_longer)
        self._loop.run(self._read)
        self._has_ended.wait()
        if self.problem is not None:
            raise self.problem
        _logger.info("read the server's log up to record %d", self._reader.position)

    def when_over(self, call: Callable[[], None]) -> None:
        """Call when workers may be let in."""
        self._on_over = call

    def follow(self, wanted: CatchUpWanted) -> None:
        """Read up to a record, and report the state with it."""
        identity, position = self._log.identity, self._reader.position
        if wanted.log != identity.bytes:
            self._fail(
                ForeignLogError(
                    f"this replica's own log is a copy of {identity}, and the log of its server is"
                    f" {wanted.log.hex()}: copy the directory of that server, and start the replica"
                    " again"
                )
            )
        elif wanted.lsn < position:
            self._fail(
                LogCopyError(
                    f"this replica's own log has record {position}, and its server's ends with"
                    f" {wanted.lsn}: the server has lost records. Remove the own log, copy the"
                    " server's directory once more, and start the replica again"
                )
            )
        else:
            self._wanted = wanted
            if not self._in_log:
                self._look() if wanted.lsn == position else self._read()

    def on_logged(self, error: HostlibError | None) -> None:
        """Apply what is durable in the own log; then go on."""
        records = self._in_log
        if not records:
            return
        if error is not None:
            self._fail(error)
        elif self._log.durable_lsn >= records[-1].lsn:
            self._apply(records)

    def end(self) -> None:
        """Read nothing more, and let workers in: the replica has joined."""
        call, self._on_over = self._on_over, None
        self.is_over = True
        if call is not None:
            call()

    def _read(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_over or self.problem is not None:
            return
        wanted = self._wanted
        try:
            records = self._reader.read(BATCH_BYTES, None if wanted is None else wanted.lsn)
            for lsn, payload in records:
                self._log.append([payload], lsn=lsn)
        except StorageError as error:
            self._fail(error)
            return
        except Exception as cause:  # a defect: whoever waits for the end would wait for ever
            self._fail(thread_failure(cause))
            return
        self._is_near = sum(len(each.payload) for each in records) < BATCH_BYTES
        self._in_log = records  # `on_logged` goes on
        if not records:
            self._look()

    def _apply(self, records: list[ReadRecord]) -> None:
        try:
            for lsn, payload in records:
                self._replay.apply(lsn, payload)
        except HostlibError as error:
            self._fail(error)
            return
        except Exception as cause:  # likewise
            self._fail(thread_failure(cause))
            return
        self._in_log = []
        self._tables.resume(records[-1].lsn, self._replay.reasons)
        self._look()

    def _look(self) -> None:
        """Read on, or see whether this is all."""
        wanted = self._wanted
        if wanted is not None and self._reader.position == wanted.lsn:
            self._report(stored_state(self._tables, wanted.next_sequence))
        elif wanted is not None and self._is_near:
            self._timer = self._loop.call_later(POLL_S, self._read)
        elif self._is_near:
            self._has_ended.set()
        else:
            self._read()

    def _wait_no_longer(self, error: HostlibError) -> None:
        self.problem = error
        self._has_ended.set()

    def _fail(self, error: HostlibError) -> None:
        self.problem, self._in_log = error, []
        self._has_ended.set()
        self._on_failed(error)
