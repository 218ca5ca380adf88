# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What servers of one run have in common: their workers' progress, tables and learning rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

from ...errors import ReshardError
from ..tables.defined_table import DefinedTable
from ..tables.definition import TableDefinition
from ..tables.state import KEPT_INCARNATIONS, TableState, WorkerProgress

_AGAIN = (
    "start the servers again with the directories that they had, let the workers go on until"
    " {what}, stop all, and repeat"
)


@final
class JoinedRun:
    """Compares the servers with each other. Raises ReshardError where they differ."""

    def __init__(self) -> None:
        self._first: list[WorkerProgress] | None = None
        self._shard = 0
        self._tables: dict[int, _Known] = {}  # by number

    def join(self, shard: int, state: TableState) -> Iterator[DefinedTable]:
        """Compare a server with those before it; yield the tables that none of them has."""
        if self._first is None:
            self._first, self._shard = state.workers, shard
        self._check_workers(shard, self._first, state.workers)
        for number, table in state.tables.items():
            rates = _rates_of(table)
            known = self._tables.get(number)
            if known is None:
                self._tables[number] = _Known(shard, table.definition, rates)
                yield table
                continue
            self._check_table(shard, table, rates, known)

    def name_of(self, table: int) -> str:
        """Return the name of a table."""
        return self._tables[table].definition.name

    @property
    def workers(self) -> list[WorkerProgress]:
        """The workers at the new servers: their processes are over, but not their iterations."""
        return [
            WorkerProgress(replaced=_processes(worker)[-KEPT_INCARNATIONS:], clock=worker.clock)
            for worker in self._first or []
        ]

    def _check_workers(
        self, shard: int, first: list[WorkerProgress], workers: list[WorkerProgress]
    ) -> None:
        have_met = False
        for worker_id, (one, other) in enumerate(zip(first, workers, strict=True)):
            mine, others = {*_processes(one)}, {*_processes(other)}
            if mine and others and not mine & others:
                have_met = False
                break
            have_met |= bool(mine & others)
            if one.clock != other.clock:
                what = "their last `advance` is done"
                raise ReshardError(
                    f"worker {worker_id} has ended {one.clock} iterations at server {self._shard},"
                    f" but {other.clock} at server {shard}: {_AGAIN.format(what=what)}"
                )
        if not have_met:
            raise ReshardError(
                f"server {self._shard} and server {shard} are of different runs: no process of a"
                " worker was at both. Give the directories of one run"
            )

    def _check_table(self, shard: int, table: DefinedTable, rates: _Rates, known: _Known) -> None:
        definition, name = table.definition, table.definition.name
        if definition != known.definition:
            raise ReshardError(
                f"table {name!r} differs: server {shard} has"
                f" {definition.differences(known.definition)} of server {known.shard}"
            )
        if rates != known.rates:
            what = f"the learning rate of {name!r} is set"
            raise ReshardError(
                f"table {name!r} has the learning rate {rates[0]} at server {shard}, but"
                f" {known.rates[0]} at server {known.shard}, or others wait for the end of an"
                f" iteration: {_AGAIN.format(what=what)}"
            )


_Rates = tuple[float | None, dict[tuple[int, int], float]]
"""Of a table: now, and that wait, by iteration and worker."""


class _Known(NamedTuple):
    """A table at the first server that has it."""

    shard: int
    definition: TableDefinition
    rates: _Rates


def _rates_of(table: DefinedTable) -> _Rates:
    waiting = {
        (clock, rate.worker_id): rate.rate
        for clock, rates in table.rates.items()
        for rate in sorted(rates)
    }
    return table.rows.optimiser.rate, waiting


def _processes(worker: WorkerProgress) -> tuple[int, ...]:
    """Return the last processes of a worker, the newest one at the end."""
    return (*worker.replaced, *((worker.incarnation,) if worker.incarnation else ()))
