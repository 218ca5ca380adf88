# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Desired state: switches, jobs, their views with members and slots, counters."""

from __future__ import annotations

import dataclasses
import sqlite3
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from ...hostlib.loss_tolerance import LossTolerance
from ...hostlib.slots.wire import Outcome
from ...hostlib.straggler import StragglerPolicy
from ..config import SwitchConfig
from ..errors import DatabaseError
from ..jobs.job import (
    Generation,
    Job,
    JobNumber,
    JobState,
    PathChoice,
    TreeId,
    View,
    ViewState,
    WorkerId,
    WorkerState,
)
from ..jobs.job_request import NO_TOKEN, JobRequest, JobToken
from ..tables.outcome import Count
from .durable import Durable
from .sqlite_file import SqliteFile
from .store import Statements, Store
from .view_record import dump_view, load_view

GENERATION_EPOCH_S: Final = 1767225600
"""2026-01-01 00:00:00 UTC; keeps generations ahead of those of a lost database."""
MAX_TREE_ID: Final = 24575
"""Highest id of a tree and of a multicast group of ours. Groups from 24576 to 32767 are those of
users' own P4; BMv2 keeps the ones above for clone sessions."""
"""Trees and hot rows have multicast groups of these ids; BMv2 uses those above for clones."""
KEPT_JOBS: Final = 1000
"""Number of ended jobs that are kept; older ones are forgotten."""
KEPT_VIEWS: Final = 8
"""Number of removed views that are kept for each job; older ones are forgotten."""
KEPT_BARRIERS: Final = 1024
"""Number of released barriers that are kept for each job; the least recent are forgotten."""
_NO_LIMIT: Final = 1 << 60
"""SQLite wants a limit before OFFSET."""
_STORE_DIGEST: Final = (
    "INSERT INTO resume_digests VALUES (?, ?, ?) "
    "ON CONFLICT (job_number, worker_id) DO UPDATE SET digest = excluded.digest"
)


class Database:
    """The controller's persistent state.

    Promises (numbers, jobs, views, secrets, tokens) are on the disk when their methods return;
    otherwise DatabaseError is raised, and nothing has changed. Records of what has happened (ends,
    losses, counters, barriers) are never refused: while the database cannot be written, they stay
    in memory.
    """

    def __init__(self, where: Path | Durable) -> None:
        """Open or make a SQLite file, or take another database; DatabaseError if that fails."""
        self._store = Store(where if isinstance(where, Durable) else SqliteFile(where))
        self._live = {view.generation: view for view in self._load_live()}
        """Views that hold slots; every switch session reads them often."""

    def close(self) -> None:
        """Release the lock and the file, or the connection."""
        self._store.close()

    @property
    def name(self) -> str:
        """The path of the file, or the address of the database without secrets."""
        return self._store.name

    @property
    def failure(self) -> str:
        """Why the database could not be written the last time; "" if it could."""
        return self._store.failure

    @property
    def is_behind(self) -> bool:
        """Whether something that has happened is not in the database yet."""
        return self._store.is_behind

    def check(self) -> None:
        """Test whether the database can be written, and write its missing records."""
        self._store.check()

    @property
    def term(self) -> int:
        """The term of the leader that has, or had, this database; 0 before the first."""
        rows = self._store.select("SELECT value FROM meta WHERE key = 'term'")
        return int(rows[0]["value"])

    def raise_term(self, least: int) -> int:
        """Begin a term above every earlier one, at least `least`, and return it.

        It is a record: a controller may start while the disk is full.
        """
        with self._store.change(is_record=True) as connection:
            term = max(_meta(connection, "term") + 1, least)
            _set_meta(connection, "term", term)
        return term

    def allocate_generation(self) -> Generation:
        """Return a generation above every earlier one, also of a lost database."""
        with self._store.change() as connection:
            generation = max(
                _meta(connection, "generation") + 1, int(time.time()) - GENERATION_EPOCH_S, 1
            )
            _set_meta(connection, "generation", generation)
        return generation

    def note_generation(self, generation: Generation) -> Generation:
        """Allocate only above a generation that a switch has shown; return the newest known."""
        (row,) = self._store.select("SELECT value FROM meta WHERE key = 'generation'")
        newest = int(row["value"])
        if generation <= newest:
            return newest
        with self._store.change(is_record=True) as connection:
            _set_meta(connection, "generation", generation)
        return generation

    def allocate_tree_id(self, used: Collection[TreeId]) -> TreeId:
        """Return the id after the last one given that is not in `used` (1..MAX_TREE_ID, cyclic).

        The ids name trees and, on each switch, multicast groups.
        """
        with self._store.change() as connection:
            tree_id = _meta(connection, "tree_id")
            for _ in range(MAX_TREE_ID):
                tree_id = tree_id % MAX_TREE_ID + 1
                if tree_id not in used:
                    break
            _set_meta(connection, "tree_id", tree_id)
        return tree_id

    def store_switches(self, switches: tuple[SwitchConfig, ...]) -> None:
        """Replace the known switches by those of the configuration."""
        with self._store.change(is_record=True) as connection:
            connection.execute("DELETE FROM switches")
            connection.executemany(
                "INSERT INTO switches VALUES (?, ?, ?)",
                [(switch.name, switch.address, switch.device_id) for switch in switches],
            )

    def down(self) -> list[str]:
        """Return the switches and keys of links that operators took out of use."""
        return [str(row["name"]) for row in self._store.select("SELECT name FROM down")]

    def set_down(self, name: str, *, is_down: bool) -> None:
        """Store that a switch or link is out of use, or in use again."""
        with self._store.change() as connection:
            if is_down:
                connection.execute("INSERT INTO down VALUES (?) ON CONFLICT DO NOTHING", (name,))
            else:
                connection.execute("DELETE FROM down WHERE name = ?", (name,))

    def create_job(self, request: JobRequest) -> Job:
        """Store a waiting job under a new number."""
        tolerance = request.straggler.tolerance
        with self._store.change() as connection:
            number = _meta(connection, "job_number") + 1
            _set_meta(connection, "job_number", number)
            connection.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', ?, ?, ?, ?)",
                (
                    number, request.name, request.num_workers, JobState.WAITING,
                    request.straggler.quorum, request.straggler.deadline_s, request.weight,
                    request.path, request.min_workers, request.slots_wanted, time.time(),
                    None if tolerance is None else tolerance.loss,
                    None if tolerance is None else tolerance.least_of_worker,
                    request.max_priority,
                    0.0 if tolerance is None else tolerance.stale,
                ),
            )  # fmt: skip
        return self.job(number)

    def start_job(
        self, job_number: JobNumber, digests: Mapping[WorkerId, bytes] | None = None
    ) -> Job:
        """Store that the job runs, and the digests of its workers' secrets."""
        with self._store.change() as connection:
            connection.executemany(
                _STORE_DIGEST,
                [(job_number, worker_id, digest) for worker_id, digest in (digests or {}).items()],
            )
            connection.execute(
                "UPDATE jobs SET state = ? WHERE job_number = ?", (JobState.RUNNING, job_number)
            )
        return self.job(job_number)

    def store_resume_digest(
        self, job_number: JobNumber, worker_id: WorkerId, digest: bytes
    ) -> None:
        """Store the digest of the secret of a worker that joins a running job."""
        with self._store.change() as connection:
            connection.execute(_STORE_DIGEST, (job_number, worker_id, digest))

    def resume_digests(self, job_number: JobNumber) -> dict[WorkerId, bytes]:
        """Return the digests of the workers' secrets."""
        rows = self._store.select(
            "SELECT worker_id, digest FROM resume_digests WHERE job_number = ?", (job_number,)
        )
        return {int(row["worker_id"]): bytes(row["digest"]) for row in rows}

    def store_job_token(self, job_number: JobNumber, token: JobToken) -> None:
        """Store what is kept of the job's token; it stays as long as the job is known."""
        with self._store.change() as connection:
            connection.execute(
                "INSERT INTO job_tokens VALUES (?, ?, ?)", (job_number, token.digest, token.run)
            )

    def job_token(self, job_number: JobNumber) -> JobToken:
        """Return what is kept of the job's token."""
        rows = self._store.select(
            "SELECT digest, run FROM job_tokens WHERE job_number = ?", (job_number,)
        )
        return JobToken(bytes(rows[0]["digest"]), rows[0]["run"]) if rows else NO_TOKEN

    def job_of_token(self, token: JobToken) -> Job | None:
        """Return the job, live or ended, that a token has opened; None if it has opened none."""
        rows = self._store.select(
            "SELECT job_number FROM job_tokens WHERE digest = ? AND run = ?",
            (token.digest, token.run),
        )
        return self.job(rows[0]["job_number"]) if rows else None

    def end_job(self, job_number: JobNumber, reason: str) -> Job:
        """End the job and free the slots of its views."""
        for view in self.job(job_number).live_views:
            if view.state is ViewState.PLANNED:
                self.forget_view(view.generation)
            else:
                self.store_view(dataclasses.replace(view, state=ViewState.REMOVED))
        with self._store.change(is_record=True) as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, ended_s = ?, reason = ? WHERE job_number = ?",
                (JobState.ENDED, time.time(), reason, job_number),
            )
            for table in ("released_barriers", "resume_digests"):
                connection.execute(
                    f"DELETE FROM {table} WHERE job_number = ?",  # noqa: S608
                    (job_number,),
                )
            _forget_old_jobs(connection)
        return self.job(job_number)

    def store_view(self, view: View, *, is_record: bool = False) -> None:
        """Store a view or its new state; in PLANNED and INSTALLED it holds its slots.

        The state REMOVED, and any change with `is_record`, is never refused.
        """
        is_record = is_record or view.state is ViewState.REMOVED
        with self._store.change(is_record=is_record) as connection:
            connection.execute(
                "INSERT INTO layouts VALUES (?, ?, ?, ?) ON CONFLICT (generation) DO UPDATE "
                "SET state = excluded.state, layout = excluded.layout",
                (view.generation, view.job_number, view.state, dump_view(view)),
            )
            connection.execute(
                "DELETE FROM layouts WHERE generation IN (SELECT generation FROM layouts "
                "WHERE job_number = ? AND state = ? ORDER BY generation DESC LIMIT ? OFFSET ?)",
                (view.job_number, ViewState.REMOVED, _NO_LIMIT, KEPT_VIEWS),
            )
        if view.state is ViewState.REMOVED:
            self._live.pop(view.generation, None)
        else:
            self._live[view.generation] = view

    def forget_view(self, generation: Generation) -> None:
        """Free the slots of a view that never was on a switch, and keep no record of it."""
        with self._store.change(is_record=True) as connection:
            connection.execute("DELETE FROM layouts WHERE generation = ?", (generation,))
        self._live.pop(generation, None)

    def live_views(self) -> list[View]:
        """Return every view that holds slots, oldest first."""
        return [self._live[generation] for generation in sorted(self._live)]

    def view(self, generation: Generation) -> View | None:
        """Return one view, None when it was forgotten or never made."""
        if generation in self._live:
            return self._live[generation]
        rows = self._store.select("SELECT layout FROM layouts WHERE generation = ?", (generation,))
        return load_view(rows[0]["layout"]) if rows else None

    def _load_live(self) -> list[View]:
        rows = self._store.select(
            "SELECT layout FROM layouts WHERE state != ?", (ViewState.REMOVED,)
        )
        return [load_view(row["layout"]) for row in rows]

    def mark_worker(self, job_number: JobNumber, worker_id: WorkerId, state: WorkerState) -> None:
        """Store that a worker left or was lost, in every view that has it."""
        for view in self.job(job_number).live_views:
            members = tuple(
                dataclasses.replace(member, state=state)
                if member.worker_id == worker_id
                else member
                for member in view.members
            )
            self.store_view(dataclasses.replace(view, members=members), is_record=True)

    def add_counts(
        self, job_number: JobNumber, switch: str, counts: Mapping[Outcome, Count]
    ) -> None:
        """Add what a switch counted for a tree that is being removed."""
        with self._store.change(is_record=True) as connection:
            connection.executemany(
                "INSERT INTO counts VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (job_number, switch, outcome) DO UPDATE SET "
                "packets = counts.packets + excluded.packets, "
                "bytes = counts.bytes + excluded.bytes",
                [
                    (job_number, switch, outcome, count.packets, count.num_bytes)
                    for outcome, count in counts.items()
                ],
            )

    def counts(self, job_number: JobNumber) -> dict[str, dict[Outcome, Count]]:
        """Return what each switch had counted for the job's trees when they were removed."""
        counts: dict[str, dict[Outcome, Count]] = {}
        for row in self._store.select(
            "SELECT * FROM counts WHERE job_number = ? ORDER BY switch, outcome", (job_number,)
        ):
            count = Count(row["packets"], row["bytes"])
            counts.setdefault(row["switch"], {})[Outcome(row["outcome"])] = count
        return counts

    def release_barrier(self, job_number: JobNumber, name: str, use: int) -> None:
        """Store that every worker has reached this use of the barrier."""
        with self._store.change(is_record=True) as connection:
            connection.execute(
                "INSERT INTO released_barriers VALUES (?, ?, ?, "
                "(SELECT COALESCE(MAX(position), 0) + 1 FROM released_barriers)) "
                "ON CONFLICT (job_number, name) DO UPDATE SET "
                "use = excluded.use, position = excluded.position",
                (job_number, name, use),
            )
            connection.execute(
                "DELETE FROM released_barriers WHERE job_number = ? AND name IN (SELECT name FROM "
                "released_barriers WHERE job_number = ? ORDER BY position DESC LIMIT ? OFFSET ?)",
                (job_number, job_number, _NO_LIMIT, KEPT_BARRIERS),
            )

    def released_barriers(self, job_number: JobNumber) -> dict[str, int]:
        """Return the last use that was released, by barrier."""
        rows = self._store.select(
            "SELECT name, use FROM released_barriers WHERE job_number = ? ORDER BY position",
            (job_number,),
        )
        return {str(row["name"]): int(row["use"]) for row in rows}

    def job(self, job_number: JobNumber) -> Job:
        """Return one job; DatabaseError when there is none."""
        rows = self._jobs("WHERE job_number = ?", (job_number,))
        if not rows:
            raise DatabaseError(f"no job with number {job_number} in {self._store.name}")
        return rows[0]

    def jobs(self, *, is_live_only: bool = False) -> list[Job]:
        """Return all live jobs, and those that ended last, at most KEPT_JOBS; oldest first."""
        return self._jobs("WHERE state != 'ended'" if is_live_only else "")

    def jobs_with_views(self) -> list[Job]:
        """Return the live jobs that have a view, oldest first: not those that only wait."""
        return self._jobs(
            "WHERE state != 'ended' AND job_number IN (SELECT job_number FROM layouts)"
        )

    def _jobs(self, condition: str, parameters: tuple[object, ...] = ()) -> list[Job]:
        rows = self._store.select(
            f"SELECT * FROM jobs {condition} ORDER BY job_number",  # noqa: S608
            parameters,
        )
        numbers = f"SELECT job_number FROM jobs {condition}"  # noqa: S608
        views = self._store.select(
            f"SELECT * FROM layouts WHERE job_number IN ({numbers}) ORDER BY generation",  # noqa: S608
            parameters,
        )
        views_of: defaultdict[JobNumber, list[View]] = defaultdict(list)
        for view in views:
            known = self._live.get(view["generation"])
            views_of[view["job_number"]].append(known or load_view(view["layout"]))
        return [_job(row, views_of[row["job_number"]]) for row in rows]


def _job(row: sqlite3.Row, views: Iterable[View]) -> Job:
    return Job(
        job_number=row["job_number"],
        name=row["name"],
        num_workers=row["num_workers"],
        state=JobState(row["state"]),
        straggler=StragglerPolicy(
            quorum=row["quorum"],
            deadline_s=row["deadline_s"],
            tolerance=(
                None
                if row["tolerated_loss"] is None
                else LossTolerance(
                    loss=row["tolerated_loss"],
                    worker_floor=row["worker_floor"],
                    stale=row["stale_results"],
                )
            ),
        ),
        weight=row["weight"],
        path=PathChoice(row["path"]),
        min_workers=row["min_workers"],
        slots_wanted=row["slots_wanted"],
        max_priority=row["max_priority"],
        created_s=row["created_s"],
        ended_s=row["ended_s"],
        reason=row["reason"],
        views=tuple(views),
    )


def _meta(connection: Statements, key: str) -> int:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return int(row["value"])


def _set_meta(connection: Statements, key: str, value: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))


def _forget_old_jobs(connection: Statements) -> None:
    old = connection.execute(
        "SELECT job_number FROM jobs WHERE state = 'ended' ORDER BY job_number DESC "
        "LIMIT ? OFFSET ?",
        (_NO_LIMIT, KEPT_JOBS),
    ).fetchall()
    for table in ("counts", "layouts", "released_barriers", "resume_digests", "job_tokens", "jobs"):
        connection.executemany(
            f"DELETE FROM {table} WHERE job_number = ?",  # noqa: S608
            [(row["job_number"],) for row in old],
        )
