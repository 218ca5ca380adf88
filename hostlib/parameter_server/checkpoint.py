# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A shard's parameters on disk: the two newest checkpoints, each a complete file."""

from __future__ import annotations

import logging
import os
import re
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError
from .rules import PairParameters

KEPT_FILES = 2
"""A shard that is killed may be one checkpoint behind; then the others need their older one."""
_logger = logging.getLogger(__name__)
PairName = tuple[int, int]
"""Numbers of key and pair."""


@dataclass(frozen=True, kw_only=True)
class CheckpointPlan:
    """Where and how often a shard saves. All shards need the same `every`."""

    directory: Path
    every: int = 1
    """It saves after the iterations every - 1, 2 every - 1 and so on that all keys took part in."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ConfigurationError(f"a checkpoint every {self.every} iterations; give 1 or more")


@dataclass(frozen=True)
class Checkpoint:
    """The content of a file."""

    iteration: int
    layout: bytes
    """The keys as workers declared them, in JSON."""
    pairs: dict[PairName, PairParameters]


@final
class CheckpointStore:
    """Collects the pairs of an iteration, and writes them in its own thread.

    A file is written under another name and renamed when it is on the disk, so a file with its
    final name is complete. Raises ConfigurationError if the directory cannot be written to.
    """

    def __init__(self, plan: CheckpointPlan, shard: int) -> None:
        self._plan = plan
        self._shard = shard
        self._pattern = re.compile(rf"shard{shard}-(\d+)\.npz")
        self._collected: dict[int, dict[PairName, PairParameters]] = {}
        try:
            plan.directory.mkdir(parents=True, exist_ok=True)
            self._iterations()
        except OSError as error:
            raise ConfigurationError(
                f"cannot keep checkpoints in {plan.directory}: {error}; choose another directory"
            ) from error
        if not os.access(plan.directory, os.W_OK):
            raise ConfigurationError(f"cannot write checkpoints to {plan.directory}")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="switchfold-checkpoint")

    def is_due(self, iteration: int) -> bool:
        """Return whether this iteration's parameters are to be saved."""
        return (iteration + 1) % self._plan.every == 0

    def collect(
        self, name: PairName, kept: PairParameters, *, num_pairs: int, layout: Callable[[], bytes]
    ) -> None:
        """Copy a pair's parameters; write the file when all pairs of the shard are there."""
        iteration = kept.applied
        collected = self._collected.setdefault(iteration, {})
        velocity = None if kept.velocity is None else kept.velocity.copy()
        collected[name] = PairParameters(kept.values.copy(), velocity, iteration)
        if len(collected) < num_pairs:
            return
        for older in [i for i in self._collected if i <= iteration]:
            del self._collected[older]
        checkpoint = Checkpoint(iteration, layout(), collected)
        self._writer.submit(self._write, checkpoint)

    def forget(self) -> None:
        """Forget the collected pairs that are not written."""
        self._collected.clear()

    def list_iterations(self, then: Callable[[list[int]], None]) -> None:
        """Call `then` in the writer's thread, after all writing, with the iterations on disk."""

        def look() -> None:
            try:
                found = self._iterations()
            except (
                OSError
            ) as error:  # the same as none; the workers learn which iteration they go back to
                _logger.error("cannot list the checkpoints in %s: %s", self._plan.directory, error)
                found = []
            then(found)

        self._writer.submit(look)

    def load(self, iteration: int) -> Checkpoint:
        """Read a file. Raises OSError and ValueError."""
        try:
            with (
                self._path(iteration).open("rb") as file,
                np.load(file, allow_pickle=False) as arrays,
            ):
                pairs: dict[PairName, PairParameters] = {}
                for name in arrays.files:
                    kind, _, rest = name.partition("-")
                    if kind == "values":
                        key, pair = (int(number) for number in rest.split("-"))
                        velocity: NDArray[np.float32] | None = None
                        if f"velocity-{rest}" in arrays.files:
                            velocity = arrays[f"velocity-{rest}"]
                        pairs[key, pair] = PairParameters(arrays[name], velocity, iteration)
                return Checkpoint(iteration, arrays["layout"].tobytes(), pairs)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise ValueError(f"{self._path(iteration)} is damaged: {error}") from error

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that can be read."""
        for iteration in reversed(self._iterations()):
            try:
                return self.load(iteration)
            except (OSError, ValueError) as error:
                _logger.warning("ignored the checkpoint of iteration %d: %s", iteration, error)
        return None

    def close(self) -> None:
        """Wait until all files are written."""
        self._writer.shutdown()

    def _path(self, iteration: int) -> Path:
        return self._plan.directory / f"shard{self._shard}-{iteration}.npz"

    def _iterations(self) -> list[int]:
        names = (self._pattern.fullmatch(path.name) for path in self._plan.directory.iterdir())
        return sorted(int(match[1]) for match in names if match)

    def _write(self, checkpoint: Checkpoint) -> None:
        path = self._path(checkpoint.iteration)
        arrays = {"layout": np.frombuffer(checkpoint.layout, np.uint8)}
        content: dict[str, NDArray[np.float32]] = {}
        for (key, pair), kept in checkpoint.pairs.items():
            content[f"values-{key}-{pair}"] = kept.values
            if kept.velocity is not None:
                content[f"velocity-{key}-{pair}"] = kept.velocity
        beside = path.with_suffix(".tmp")
        try:
            with beside.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays, **content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            for old in self._iterations()[:-KEPT_FILES]:
                self._path(old).unlink()
        except Exception as error:  # training goes on; the next checkpoint may succeed
            _logger.error("cannot write the checkpoint %s: %s", path, error)
