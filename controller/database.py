# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Desired state in SQLite: switches, jobs, workers, slot leases, generations.

The database is opened with an exclusive lock, so that two controllers cannot share one by mistake.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.config import SwitchConfig
from controller.errors import DatabaseError
from controller.job import Job, JobState, Worker, WorkerState
from controller.outcome import Count
from hostlib.wire import Outcome

SCHEMA_VERSION: Final = 1
GENERATION_EPOCH_S: Final = 1767225600
"""2026-01-01 00:00:00 UTC; keeps generations ahead of those of a lost database."""
_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE switches (
  name TEXT PRIMARY KEY, address TEXT NOT NULL, device_id INTEGER NOT NULL);
CREATE TABLE jobs (
  generation INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, name TEXT NOT NULL,
  switch TEXT NOT NULL, state TEXT NOT NULL, slot_base INTEGER NOT NULL,
  slot_count INTEGER NOT NULL, num_workers INTEGER NOT NULL, allow_partial INTEGER NOT NULL,
  created_s REAL NOT NULL, ended_s REAL, reason TEXT NOT NULL DEFAULT '');
CREATE TABLE workers (
  generation INTEGER NOT NULL REFERENCES jobs, worker_id INTEGER NOT NULL, address TEXT NOT NULL,
  mac TEXT NOT NULL, udp_port INTEGER NOT NULL, port INTEGER NOT NULL, state TEXT NOT NULL,
  PRIMARY KEY (generation, worker_id));
CREATE TABLE final_counts (
  generation INTEGER NOT NULL REFERENCES jobs, outcome INTEGER NOT NULL, packets INTEGER NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (generation, outcome));
CREATE TABLE released_barriers (
  generation INTEGER NOT NULL REFERENCES jobs, name TEXT NOT NULL,
  PRIMARY KEY (generation, name));
"""


class Database:
    """The controller's only memory; every method commits before it returns."""

    def __init__(self, path: Path) -> None:
        """Open or make the database file; DatabaseError when it cannot be used."""
        self._path = path
        try:
            self._connection = sqlite3.connect(path, timeout=2.0, isolation_level=None)
        except sqlite3.Error as exc:
            raise _database_error(path, exc) from exc
        try:
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._prepare()
        except sqlite3.Error as exc:
            self._connection.close()
            raise _database_error(path, exc) from exc
        except DatabaseError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Release the lock and the file."""
        self._connection.close()

    def allocate_generation(self) -> int:
        """Return a generation above every earlier one, also of a lost database."""
        with self._transaction() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
            generation = max(int(row["value"]) + 1, int(time.time()) - GENERATION_EPOCH_S, 1)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'generation'", (generation,))
        return generation

    def allocate_job_id(self, used: set[int]) -> int:
        """Return the job id after the last one given that is not in `used` (1..65535, cyclic)."""
        with self._transaction() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'job_id'").fetchone()
            job_id = int(row["value"])
            for _ in range(65535):
                job_id = job_id % 65535 + 1
                if job_id not in used:
                    break
            connection.execute("UPDATE meta SET value = ? WHERE key = 'job_id'", (job_id,))
        return job_id

    def store_switches(self, switches: tuple[SwitchConfig, ...]) -> None:
        """Replace the known switches by those of the configuration."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM switches")
            connection.executemany(
                "INSERT INTO switches VALUES (?, ?, ?)",
                [(switch.name, switch.address, switch.device_id) for switch in switches],
            )

    def insert_job(self, job: Job) -> None:
        """Store a new job; its slots are leased from here on."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    job.generation, job.job_id, job.name, job.switch, job.state, job.slot_base,
                    job.slot_count, job.num_workers, job.allow_partial, job.created_s,
                    job.ended_s, job.reason,
                ),
            )  # fmt: skip

    def start_job(self, generation: int, workers: tuple[Worker, ...]) -> Job:
        """Store the workers and make the job run."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO workers VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (generation, w.worker_id, w.address, w.mac, w.udp_port, w.port, w.state)
                    for w in workers
                ],
            )
            connection.execute(
                "UPDATE jobs SET state = ? WHERE generation = ?", (JobState.RUNNING, generation)
            )
        return self.job(generation)

    def end_job(self, generation: int, reason: str) -> Job:
        """End the job and free its slots."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, ended_s = ?, reason = ? WHERE generation = ?",
                (JobState.ENDED, time.time(), reason, generation),
            )
            connection.execute("DELETE FROM released_barriers WHERE generation = ?", (generation,))
        return self.job(generation)

    def store_counts(self, generation: int, counts: dict[Outcome, Count]) -> None:
        """Keep what the switch counted for a job, for after its end."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO final_counts VALUES (?, ?, ?, ?)",
                [(generation, o, count.packets, count.num_bytes) for o, count in counts.items()],
            )

    def counts(self, generation: int) -> dict[Outcome, Count]:
        """Return what the switch had counted for a job when it ended."""
        rows = self._connection.execute(
            "SELECT * FROM final_counts WHERE generation = ?", (generation,)
        )
        return {Outcome(row["outcome"]): Count(row["packets"], row["bytes"]) for row in rows}

    def mark_worker(self, generation: int, worker_id: int, state: WorkerState) -> None:
        """Store that a worker left or was lost."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE workers SET state = ? WHERE generation = ? AND worker_id = ?",
                (state, generation, worker_id),
            )

    def release_barrier(self, generation: int, name: str) -> None:
        """Store that every worker has reached the barrier."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO released_barriers VALUES (?, ?)", (generation, name)
            )

    def released_barriers(self, generation: int) -> set[str]:
        """Return the names of the barriers that every worker has reached."""
        rows = self._connection.execute(
            "SELECT name FROM released_barriers WHERE generation = ?", (generation,)
        )
        return {str(row["name"]) for row in rows}

    def job(self, generation: int) -> Job:
        """Return one job; DatabaseError when there is none."""
        rows = self._jobs("WHERE generation = ?", (generation,))
        if not rows:
            raise DatabaseError(f"no job with generation {generation} in {self._path}")
        return rows[0]

    def jobs(self, *, is_live_only: bool = False, limit: int = 1000) -> list[Job]:
        """Return jobs, oldest first; the newest `limit` ones."""
        where = "WHERE state != 'ended'" if is_live_only else ""
        return self._jobs(f"{where} ORDER BY generation DESC LIMIT ?", (limit,))[::-1]

    def _jobs(self, condition: str, parameters: tuple[object, ...]) -> list[Job]:
        rows = self._connection.execute(f"SELECT * FROM jobs {condition}", parameters)  # noqa: S608
        return [self._job(row) for row in rows.fetchall()]

    def _job(self, row: sqlite3.Row) -> Job:
        workers = self._connection.execute(
            "SELECT * FROM workers WHERE generation = ? ORDER BY worker_id", (row["generation"],)
        )
        return Job(
            generation=row["generation"],
            job_id=row["job_id"],
            name=row["name"],
            switch=row["switch"],
            state=JobState(row["state"]),
            slot_base=row["slot_base"],
            slot_count=row["slot_count"],
            num_workers=row["num_workers"],
            allow_partial=bool(row["allow_partial"]),
            created_s=row["created_s"],
            ended_s=row["ended_s"],
            reason=row["reason"],
            workers=tuple(
                Worker(
                    worker_id=worker["worker_id"],
                    address=worker["address"],
                    mac=worker["mac"],
                    udp_port=worker["udp_port"],
                    port=worker["port"],
                    state=WorkerState(worker["state"]),
                )
                for worker in workers
            ),
        )

    def _prepare(self) -> None:
        with self._transaction() as connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version == 0:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO meta VALUES ('generation', 0), ('job_id', 0)")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif version != SCHEMA_VERSION:
                raise DatabaseError(
                    f"database {self._path} has schema version {version}, this controller knows "
                    f"{SCHEMA_VERSION}; use the controller that made it, or another --database"
                )

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as exc:
            raise _database_error(self._path, exc) from exc


def _database_error(path: Path, exc: sqlite3.Error) -> DatabaseError:
    if "locked" in str(exc):
        return DatabaseError(
            f"database {path} is in use by another controller; stop that one or use --database"
        )
    return DatabaseError(f"database {path}: {exc}; check the path, its rights and the disk")
