# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the database, and the migrations between versions, both ways.

The statements are SQLite's; `postgres.py` translates the names of types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..errors import DatabaseError

SCHEMA_VERSION: Final = 9
_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE switches (
  name TEXT PRIMARY KEY, address TEXT NOT NULL, device_id INTEGER NOT NULL);
CREATE TABLE jobs (
  job_number INTEGER PRIMARY KEY, name TEXT NOT NULL, num_workers INTEGER NOT NULL,
  state TEXT NOT NULL, quorum INTEGER, deadline_s REAL, weight REAL NOT NULL, path TEXT NOT NULL,
  min_workers INTEGER NOT NULL, slots_wanted INTEGER NOT NULL, created_s REAL NOT NULL,
  ended_s REAL, reason TEXT NOT NULL DEFAULT '');
CREATE TABLE layouts (
  generation INTEGER PRIMARY KEY, job_number INTEGER NOT NULL REFERENCES jobs,
  state TEXT NOT NULL, layout TEXT NOT NULL);
CREATE INDEX layouts_of_jobs ON layouts (job_number);
CREATE TABLE counts (
  job_number INTEGER NOT NULL REFERENCES jobs, switch TEXT NOT NULL, outcome INTEGER NOT NULL,
  packets INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (job_number, switch, outcome));
CREATE TABLE down (name TEXT PRIMARY KEY);
CREATE TABLE released_barriers (
  job_number INTEGER NOT NULL REFERENCES jobs, name TEXT NOT NULL, use INTEGER NOT NULL,
  position INTEGER NOT NULL, PRIMARY KEY (job_number, name));
"""
_ADDED_BY_3: Final = """
CREATE TABLE resume_digests (
  job_number INTEGER NOT NULL REFERENCES jobs, worker_id INTEGER NOT NULL, digest BLOB NOT NULL,
  PRIMARY KEY (job_number, worker_id));
"""
_ADDED_BY_4: Final = """
CREATE TABLE job_tokens (
  job_number INTEGER PRIMARY KEY REFERENCES jobs, digest BLOB NOT NULL, run TEXT NOT NULL);
CREATE UNIQUE INDEX jobs_of_tokens ON job_tokens (digest, run);
"""
"""A job's token stays as long as the job, so that it opens no other one."""
_FROM_1: Final = """
ALTER TABLE jobs RENAME TO old_jobs;
ALTER TABLE final_counts RENAME TO old_counts;
DROP TABLE released_barriers;
DROP TABLE workers;
UPDATE meta SET key = 'tree_id' WHERE key = 'job_id';
"""
"""Jobs of schema 1 ran on another program, so none of them can continue."""
_COPY_FROM_1: Final = """
INSERT INTO jobs SELECT
  generation, name, num_workers, 'ended', NULL, NULL, 1.0, 'switch', num_workers, slot_count,
  created_s, COALESCE(ended_s, created_s),
  CASE state WHEN 'ended' THEN reason ELSE 'controller was replaced by a newer release' END
  FROM old_jobs;
INSERT INTO counts SELECT
  c.generation, j.switch, c.outcome, c.packets, c.bytes
  FROM old_counts c JOIN old_jobs j ON j.generation = c.generation;
INSERT INTO meta SELECT 'job_number', COALESCE(MAX(generation), 0) FROM old_jobs;
DROP TABLE old_counts;
DROP TABLE old_jobs;
"""


_ADDED_BY_5: Final = """
INSERT INTO meta VALUES ('term', 0);
"""
"""The term of the last leader: P4Runtime's election id."""
_ADDED_BY_6: Final = """
ALTER TABLE jobs ADD COLUMN tolerated_loss REAL;
ALTER TABLE jobs ADD COLUMN worker_floor REAL;
"""
"""What the sums of a job may lack; NULL: nothing."""
_ADDED_BY_7: Final = """
ALTER TABLE jobs ADD COLUMN max_priority INTEGER NOT NULL DEFAULT 0;
"""
"""Highest priority that a job asks for."""
_ADDED_BY_9: Final = """
ALTER TABLE jobs ADD COLUMN stale_results REAL NOT NULL DEFAULT 0;
"""
"""Share of results that workers of a job may do without."""
_STEPS_UP: Final = {
    2: _ADDED_BY_3,
    3: _ADDED_BY_4,
    4: _ADDED_BY_5,
    5: _ADDED_BY_6,
    6: _ADDED_BY_7,
    7: "",  # `path` of jobs may be 'transposed'
    8: _ADDED_BY_9,
}
"""Statements that make the next version of a version."""
_STEPS_DOWN: Final = {
    9: "ALTER TABLE jobs DROP COLUMN stale_results",
    8: "UPDATE jobs SET path = 'switch' WHERE path = 'transposed'",
    7: "ALTER TABLE jobs DROP COLUMN max_priority",
    6: "ALTER TABLE jobs DROP COLUMN tolerated_loss; ALTER TABLE jobs DROP COLUMN worker_floor",
    5: "DELETE FROM meta WHERE key = 'term'",
    4: "DROP TABLE job_tokens",
    3: "DROP TABLE resume_digests",
}
"""Statements that make the version before of a version."""
_LIVE: Final = "SELECT name FROM jobs WHERE state != 'ended' AND "
OLDEST_TARGET: Final = 2
"""Schema 1 belongs to another program of the switches."""
TABLES: Final = (
    "meta", "switches", "jobs", "layouts", "counts", "down", "released_barriers",
    "resume_digests", "job_tokens",
)  # fmt: skip
"""Of the newest version; what others refer to comes first."""

Execute = Callable[[str, Sequence[Any]], list[Any]]
"""Executes a statement with its parameters (`?`) within a transaction, and returns its rows."""


def migrate(execute: Execute, version: int, target: int = SCHEMA_VERSION) -> None:
    """Make the tables of version `target` out of those of `version`, 0: none, in a transaction.

    Raises DatabaseError where that is not possible; the transaction must then be rolled back.
    """
    if not OLDEST_TARGET <= target <= SCHEMA_VERSION:
        raise DatabaseError(
            f"no migration to schema version {target}: choose one from {OLDEST_TARGET} to "
            f"{SCHEMA_VERSION}"
        )
    if version == 0:
        _run(execute, _TABLES)
        _run(
            execute, "INSERT INTO meta VALUES ('generation', 0), ('tree_id', 0), ('job_number', 0)"
        )
        version = 2
    elif version == 1:
        _run(execute, _FROM_1)
        _run(execute, _TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        _run(execute, _COPY_FROM_1)
        version = 2
    if target < version and target < 4:
        _refuse_live_jobs(execute, target)
    if target < 6 <= version:
        _refuse_live(execute, target, _LIVE + "tolerated_loss IS NOT NULL", "that tolerate loss")
    if target < 8 <= version:
        _refuse_live(execute, target, _LIVE + "path = 'transposed'", "that are transposed")
    if target < 9 <= version:
        _refuse_live(execute, target, _LIVE + "stale_results > 0", "with stale results")
    for step in range(version, target):
        _run(execute, _STEPS_UP[step])
    for step in range(version, target, -1):
        _run(execute, _STEPS_DOWN[step])


def _refuse_live_jobs(execute: Execute, target: int) -> None:
    """Refuse to forget the secrets of jobs that go on: anybody could take their workers' places."""
    live = execute("SELECT name FROM jobs WHERE state != 'ended' ORDER BY job_number", ())
    if live:
        raise DatabaseError(
            f"schema version {target} keeps no secrets of jobs, and {len(live)} jobs are live, the "
            f"first {live[0][0]!r}; wait for their end, or end them with 'switchfold job stop'"
        )


def _refuse_live(execute: Execute, target: int, query: str, which: str) -> None:
    """Refuse to hand live jobs, which a query finds, to a release that does not know them."""
    live = execute(f"{query} ORDER BY job_number", ())
    if live:
        raise DatabaseError(
            f"schema version {target} knows no jobs {which}, and {len(live)} are live, "
            f"the first {live[0][0]!r}; wait for their end, or end them with 'switchfold job stop'"
        )


def _run(execute: Execute, script: str) -> None:
    """Execute statement by statement: executescript would end the transaction."""
    for statement in script.split(";"):
        if statement.strip():
            execute(statement, ())
