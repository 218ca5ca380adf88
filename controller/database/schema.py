# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the database, and the migration of databases of earlier releases."""

from __future__ import annotations

import sqlite3
from typing import Final

SCHEMA_VERSION: Final = 4
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


def prepare(connection: sqlite3.Connection) -> int:
    """Make or migrate the tables within a transaction; return the version found before, 0: none.

    A database of a version that this release does not know is left unchanged.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == 0:
        _execute(connection, _TABLES + _ADDED_BY_3 + _ADDED_BY_4)
        connection.execute(
            "INSERT INTO meta VALUES ('generation', 0), ('tree_id', 0), ('job_number', 0)"
        )
    elif version == 1:
        _execute(connection, _FROM_1)
        _execute(connection, _TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        _execute(connection, _COPY_FROM_1 + _ADDED_BY_3 + _ADDED_BY_4)
    elif version == 2:
        _execute(connection, _ADDED_BY_3 + _ADDED_BY_4)
    elif version == 3:
        _execute(connection, _ADDED_BY_4)
    else:
        return version
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return version


def _execute(connection: sqlite3.Connection, script: str) -> None:
    """Execute statement by statement: executescript would end the transaction."""
    for statement in script.split(";"):
        connection.execute(statement)
