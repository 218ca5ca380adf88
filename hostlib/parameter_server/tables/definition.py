# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a table is: the width of its rows, their first values, its optimiser, its consistency."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, Self, final

from ...errors import ConfigurationError, PeerProtocolError
from ...hot_rows.sketch import MAX_CAPACITY
from ...native.row_library import MOST_ROWS, MOST_WIDTH
from ..rows import (
    Adagrad,
    Adam,
    Ftrl,
    GradientSum,
    Initialiser,
    Normal,
    Optimiser,
    RowTable,
    Sgd,
    Uniform,
    Zeros,
)

MAX_NAME_CHARACTERS = 256
_COUNTERS_PER_KEY = 32
_FEWEST_COUNTERS = 1024
MOST_HOT_KEYS = MAX_CAPACITY // _COUNTERS_PER_KEY
_OPTIMISERS: dict[str, type[Optimiser]] = {
    kind.__name__: kind for kind in (GradientSum, Sgd, Adagrad, Adam, Ftrl)
}
_INITIALISERS: dict[str, type[Initialiser]] = {
    kind.__name__: kind for kind in (Zeros, Uniform, Normal)
}


@final
@dataclass(frozen=True, kw_only=True)
class TableDefinition:
    """All workers define a table alike. Raises ConfigurationError."""

    name: str
    """Printable, and the table's own."""
    width: int
    """Values of a row."""
    max_rows: int = 1 << 24
    """Most rows of the table on one server."""
    optimiser: Optimiser = field(default_factory=GradientSum)
    initialiser: Initialiser = field(default_factory=Zeros)
    seed: int = 0
    """Of the first values."""
    staleness: int | None = None
    """How many iterations a worker that pulls may be ahead of the slowest one.

    None: any number (asynchronous). 0: none (synchronous); then the pushes of an iteration are
    added up in the order of the workers, and applied as one when all workers have ended it.
    """
    is_mean: bool = False
    """Synchronous tables: divide gradients by the number of workers before they are added up."""
    hot_keys: int = 0
    """Most keys of an asynchronous table, on each server, whose rows a switch may have."""

    def __post_init__(self) -> None:
        if not (1 <= len(self.name) <= MAX_NAME_CHARACTERS and self.name.isprintable()):
            raise ConfigurationError(
                f"table {self.name[:80]!r}; give a printable name of up to {MAX_NAME_CHARACTERS}"
                " characters"
            )
        if not (1 <= self.width <= MOST_WIDTH and 1 <= self.max_rows <= MOST_ROWS):
            raise ConfigurationError(
                f"table {self.name!r} of at most {self.max_rows} rows of {self.width} values; give"
                f" 1 to {MOST_ROWS} rows and 1 to {MOST_WIDTH} values"
            )
        if not 0 <= self.seed < 1 << 64:
            raise ConfigurationError(
                f"table {self.name!r}: seed {self.seed}; give one from 0 to 2^64 - 1"
            )
        if self.staleness is not None and self.staleness < 0:
            raise ConfigurationError(
                f"table {self.name!r}: staleness {self.staleness}; give 0 for synchronous, a number"
                " of iterations, or None for asynchronous"
            )
        if self.is_mean and not self.is_synchronous:
            raise ConfigurationError(
                f"table {self.name!r}: only a synchronous table (staleness 0) has means"
            )
        if not 0 <= self.hot_keys <= MOST_HOT_KEYS:
            raise ConfigurationError(
                f"table {self.name!r}: {self.hot_keys} hot keys; give 0 to {MOST_HOT_KEYS}"
            )
        if self.hot_keys and self.staleness is not None:
            raise ConfigurationError(
                f"table {self.name!r}: hot keys and staleness {self.staleness}; only an"
                " asynchronous table (staleness None) has hot keys"
            )

    @property
    def number(self) -> int:
        """The table's number in frames: the CRC-32 of its name."""
        return zlib.crc32(self.name.encode())

    @property
    def sketch_capacity(self) -> int:
        """Counters of the sketches in which workers count keys, and a server adds them up."""
        return max(_FEWEST_COUNTERS, _COUNTERS_PER_KEY * self.hot_keys)

    @property
    def is_synchronous(self) -> bool:
        """Whether the pushes of an iteration are applied as one."""
        return self.staleness == 0

    def new_rows(self) -> RowTable:
        """Return an empty table. Raises ConfigurationError and RowMemoryError."""
        return RowTable(
            width=self.width,
            max_rows=self.max_rows,
            optimiser=self.optimiser,
            initialiser=self.initialiser,
            seed=self.seed,
        )

    def pack(self) -> bytes:
        """Return it as JSON."""
        described = {
            "name": self.name,
            "width": self.width,
            "max_rows": self.max_rows,
            "optimiser": _describe(self.optimiser),
            "initialiser": _describe(self.initialiser),
            "seed": self.seed,
            "staleness": self.staleness,
            "is_mean": self.is_mean,
            "hot_keys": self.hot_keys,
        }
        return json.dumps(described).encode()

    @classmethod
    def unpack(cls, text: bytes) -> Self:
        """Return the definition. Raises PeerProtocolError and ConfigurationError."""
        try:
            fields: dict[str, Any] = json.loads(text)
            fields["optimiser"] = _OPTIMISERS[fields["optimiser"].pop("kind")](
                **fields["optimiser"]
            )
            fields["initialiser"] = _INITIALISERS[fields["initialiser"].pop("kind")](
                **fields["initialiser"]
            )
            _check_types(fields)
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise PeerProtocolError(f"malformed definition of a table: {error!r}") from error

    def differences(self, other: TableDefinition) -> str:
        """Return what another definition says differently, for people."""
        return ", ".join(
            f"{name} {getattr(self, name)!r} instead of {getattr(other, name)!r}"
            for name in self.__dataclass_fields__
            if getattr(self, name) != getattr(other, name)
        )


def _check_types(fields: dict[str, Any]) -> None:
    """Raise TypeError if a number is none: the log must not hold what no table can be made of."""
    numbers = [fields[name] for name in ("width", "max_rows", "seed", "hot_keys")]
    numbers.append(fields["staleness"] or 0)
    if {type(number) for number in numbers} != {int} or type(fields["is_mean"]) is not bool:
        raise TypeError("a number or a flag of another type")


def _describe(part: Optimiser | Initialiser) -> dict[str, Any]:
    return {"kind": type(part).__name__, **asdict(part)}  # type: ignore[call-overload]
