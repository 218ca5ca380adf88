# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which pushes of each worker were applied, so that a push sent twice is applied once.

A worker numbers its pushes from 1. Its process draws a random 64-bit number, its incarnation, and
sends it with each push. A new incarnation starts a new series; pushes of the one before it are
refused from then on. So if two processes have one worker id by mistake, the newer one wins, and
the older one gets an error.

The state is a function of the calls of `add` alone. A server calls it for durable records, in the
order of the log, so a replay gives the same state. A push that comes twice before it is durable is
in the log twice; `add` then returns False for the second record, now and in a replay.

A worker sends a push that was refused again, under the same number. Otherwise the gap stays, and
its pushes end at the window.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, final

from ...errors import PushWindowError, StaleIncarnationError, StorageDamagedError

WINDOW: Final = 4096
"""How far a push may be beyond the last one before the first gap. It is part of the format."""
KEPT_INCARNATIONS: Final = 1024
"""How many replaced incarnations of a worker are known; older ones are forgotten."""
_MAX_U32: Final = (1 << 32) - 1
_MAX_U64: Final = (1 << 64) - 1
_MAGIC: Final = b"SFPUSHES"
FORMAT_VERSION: Final = 1
_HEAD: Final = struct.Struct("<8sII")
_WORKER: Final = struct.Struct("<IQQII")


@dataclass
class _Series:
    """Pushes of one incarnation."""

    incarnation: int
    contiguous: int = 0
    """All pushes up to this one were applied."""
    above: set[int] = field(default_factory=set[int])
    """Those that were applied beyond the first gap."""
    replaced: dict[int, None] = field(default_factory=dict[int, None])
    """Incarnations before this one, oldest first."""


@final
class AppliedPushes:
    """Numbers of the applied pushes of all workers; used by one thread at a time."""

    def __init__(self) -> None:
        self._workers: dict[int, _Series] = {}

    def is_applied(self, worker: int, incarnation: int, sequence: int) -> bool:
        """Return whether a push was applied; change nothing.

        A server asks this before it appends a push to its log. Raises StaleIncarnationError,
        PushWindowError, and ValueError for numbers out of range.
        """
        _check_range("worker", worker, 0, _MAX_U32)
        _check_range("incarnation", incarnation, 0, _MAX_U64)
        _check_range("push", sequence, 1, _MAX_U64)
        series = self._workers.get(worker)
        if series is not None and incarnation in series.replaced:
            raise StaleIncarnationError(
                f"worker {worker}: a newer process ({series.incarnation:#018x}) pushes under this"
                f" id; this one ({incarnation:#018x}) must end. Give each worker its own id"
            )
        contiguous = 0
        if series is not None and incarnation == series.incarnation:
            if sequence <= series.contiguous or sequence in series.above:
                return True
            contiguous = series.contiguous
        if sequence > contiguous + WINDOW:
            raise PushWindowError(
                f"worker {worker}: push {sequence} comes before push {contiguous + 1}; at most"
                f" {WINDOW} may be under way"
            )
        return False

    def add(self, worker: int, incarnation: int, sequence: int) -> bool:
        """Note a push; return False if it was applied before. Raises as `is_applied` does."""
        if self.is_applied(worker, incarnation, sequence):
            return False
        series = self._workers.get(worker)
        if series is None:
            series = self._workers[worker] = _Series(incarnation)
        elif series.incarnation != incarnation:
            replaced = {**series.replaced, series.incarnation: None}
            if len(replaced) > KEPT_INCARNATIONS:
                del replaced[next(iter(replaced))]
            series = self._workers[worker] = _Series(incarnation, replaced=replaced)
        series.above.add(sequence)
        while series.contiguous + 1 in series.above:
            series.contiguous += 1
            series.above.remove(series.contiguous)
        return True

    def to_bytes(self) -> bytes:
        """Return the state as bytes, the same ones for the same state. Little-endian:

        magic "SFPUSHES", format version u32, number of workers u32. Then for each worker, by id:
        id u32, incarnation u64, last push before the first gap u64, number of pushes beyond the gap
        u32, number of replaced incarnations u32; these pushes in order, u64 each; these
        incarnations, oldest first, u64 each.
        """
        packed = [_HEAD.pack(_MAGIC, FORMAT_VERSION, len(self._workers))]
        for worker, series in sorted(self._workers.items()):
            numbers = [*sorted(series.above), *series.replaced]
            packed.append(
                _WORKER.pack(
                    worker,
                    series.incarnation,
                    series.contiguous,
                    len(series.above),
                    len(series.replaced),
                )
            )
            packed.append(struct.pack(f"<{len(numbers)}Q", *numbers))
        return b"".join(packed)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> AppliedPushes:
        """Return the state that `to_bytes` gave. Raises StorageDamagedError for other bytes."""
        pushes = cls()
        try:
            magic, version, num_workers = _HEAD.unpack_from(data)
            if (magic, version) != (_MAGIC, FORMAT_VERSION):
                raise ValueError(f"magic {magic!r}, format version {version}")
            offset, last_worker = _HEAD.size, -1
            for _ in range(num_workers):
                worker, incarnation, contiguous, num_above, num_replaced = _WORKER.unpack_from(
                    data, offset
                )
                if worker <= last_worker:
                    raise ValueError(f"worker {worker} behind worker {last_worker}")
                offset += _WORKER.size
                numbers = struct.unpack_from(f"<{num_above + num_replaced}Q", data, offset)
                offset += 8 * len(numbers)
                above, replaced = numbers[:num_above], dict.fromkeys(numbers[num_above:])
                series = _Series(incarnation, contiguous, {*above}, replaced)
                _check_series(worker, series, above, num_replaced)
                pushes._workers[worker] = series
                last_worker = worker
            if offset != len(data):
                raise ValueError(f"{len(data) - offset} bytes too many")
        except (ValueError, struct.error) as error:
            raise StorageDamagedError(
                f"the applied pushes are damaged: {error}; restore the snapshot from a copy"
            ) from error
        return pushes


def _check_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ValueError(f"{name} {number}; give {least} to {most}")


def _check_series(worker: int, series: _Series, above: tuple[int, ...], num_replaced: int) -> None:
    """Raise ValueError for numbers that no calls of `add` can lead to."""
    if list(above) != sorted(series.above):
        raise ValueError(f"worker {worker}: pushes out of order")
    if above and not series.contiguous + 2 <= above[0] <= above[-1] <= series.contiguous + WINDOW:
        raise ValueError(f"worker {worker}: pushes {above[0]} to {above[-1]} beyond the gap")
    if not above and series.contiguous == 0:
        raise ValueError(f"worker {worker}: no pushes")
    if len(series.replaced) != num_replaced or num_replaced > KEPT_INCARNATIONS:
        raise ValueError(f"worker {worker}: {num_replaced} replaced incarnations")
    if series.incarnation in series.replaced:
        raise ValueError(f"worker {worker}: its incarnation is replaced by itself")
