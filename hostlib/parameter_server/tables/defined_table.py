# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One table of a server: its rows, and what waits for the end of an iteration."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import NonFiniteGradientError, RowTableError
from ..rows import PulledRows, RowTable
from .definition import TableDefinition


class SetRate(NamedTuple):
    """A learning rate, which waits for the end of its iteration."""

    worker_id: int
    number: int
    rate: float


class Push(NamedTuple):
    """Gradients of some keys, which wait for the end of their iteration."""

    worker_id: int
    number: int
    keys: NDArray[np.int64]
    gradients: NDArray[np.float32]


@dataclass
class DefinedTable:
    """A table, and what waits for the end of its iteration."""

    definition: TableDefinition
    rows: RowTable
    waiting: dict[int, list[Push]] = field(default_factory=dict[int, list[Push]])
    """Of a synchronous table, by iteration."""
    rates: dict[int, list[SetRate]] = field(default_factory=dict[int, list[SetRate]])
    """Likewise."""

    def set_rate(self, rate: float) -> None:
        """Let later pushes have a learning rate. Raises ConfigurationError."""
        self.rows.optimiser = self.rows.optimiser.with_rate(rate)

    def prepare(self, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> None:
        """Check a push, and make its rows. Raises RowTableError, which names the table."""
        with self._named():
            self.rows.prepare(keys, gradients)

    def wait(self, clock: int, push: Push, *, is_replay: bool) -> None:
        """Let gradients wait for the end of their iteration. Raises RowTableError in a replay."""
        self.waiting.setdefault(clock, []).append(push)
        if is_replay:
            # As `check` did: pulls must not take the room before the iteration ends.
            self.prepare(push.keys, np.zeros_like(push.gradients))

    def start(
        self, keys: NDArray[np.int64], values: NDArray[np.float32], lsn: int, *, is_replay: bool
    ) -> None:
        """Give rows their first values. Raises RowTableError, which names the table."""
        with self._named():
            self.rows.start(keys, values, lsn=lsn, is_replay=is_replay)

    def pull(self, keys: NDArray[np.int64]) -> PulledRows:
        """Return the rows of keys. Raises RowTableError, which names the table."""
        with self._named():
            return self.rows.pull(keys)

    def values(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the values of keys. Raises RowTableError."""
        return self.pull(keys).values

    def apply(
        self,
        keys: NDArray[np.int64],
        gradients: NDArray[np.float32],
        lsn: int,
        *,
        is_replay: bool,
    ) -> None:
        """Apply gradients. Raises RowTableError, which names the table."""
        with self._named():
            if is_replay:
                self.rows.replay(keys, gradients, lsn=lsn)
            else:
                self.rows.push(keys, gradients, lsn=lsn)

    @contextmanager
    def _named(self) -> Generator[None]:
        try:
            yield
        except NonFiniteGradientError as error:
            raise NonFiniteGradientError(self._text(error), error.position, error.key) from error
        except RowTableError as error:
            raise type(error)(self._text(error)) from error

    def _text(self, error: RowTableError) -> str:
        return f"table {self.definition.name!r}: {error}"
