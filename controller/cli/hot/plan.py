# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does: its workload, its size, and what of it the switch takes over."""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from ....hostlib.parameter_server import HotRowUse
from ....hostlib.parameter_server.rows import Optimiser
from ....hostlib.parameter_server.tables import TableDefinition


class Offload(enum.StrEnum):
    """Which keys live in the switch."""

    NONE = "none"
    """None: servers get all pushes and pulls."""
    HOT = "hot"
    """Those that take most updates."""
    LRU = "lru"
    """As many others: those that were used last."""
    RANDOM = "random"
    """As many others: any of those that were used."""


class TableWorkload(enum.StrEnum):
    """Where the keys of mini-batches come from."""

    ZIPF_845 = "zipf-0.845"
    """Zipf's law with the skew of the study's recommendation (0.9 million keys)."""
    ZIPF_1070 = "zipf-1.070"
    """Zipf's law with the skew of the study's search engine (150 million keys)."""
    ZIPF_1500 = "zipf-1.500"
    """A steeper law, with which most workers push each hot key in the same round."""
    GLOSSES = "wordnet"
    """Words and pairs of words of WordNet's definitions."""


class BlockDifference(enum.StrEnum):
    """What some blocks of a run have, and the others do without."""

    LOG = "log"
    """All latency logs are at work, not paused."""
    HOT_KEYS = "hot-keys"
    """Workers push to a table with hot keys and pull from it, not from one without."""


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """One run. All its processes read it from a file."""

    workload: TableWorkload
    is_training: bool = False
    """Train a classifier of the glosses. Otherwise, push whole numbers by the workload's keys."""
    offload: Offload = Offload.NONE
    hot_keys: int = 1024
    """Most hot keys of a table on each server."""
    hot_rows: int = 256
    """Most hot rows of all tables of a server."""
    use: HotRowUse = HotRowUse.ALWAYS
    """Whether workers push and pull hot keys through the switch even where that is slower."""
    flush_s: float = 0.03
    """How long workers and servers wait for the other workers' pushes to a row."""
    refresh_s: float = 5.0
    """Time between two choices of the hot keys."""
    num_workers: int = 4
    num_servers: int = 1
    batch: int = 256
    """Samples of a worker's mini-batch."""
    warm_up_s: float = 0.0
    """Time in which workers take steps before the measurement.

    If it is not 0, they also take steps until all servers have hot rows, if any keys are to be hot.
    """
    width: int = 1
    """Values of a key, of runs without a training."""
    steps: int = 200
    """Measured mini-batches of each worker."""
    pause_s: float = 0.0
    """Time for which a worker does nothing after each mini-batch, as if it trained on it."""
    seed: int = 1
    latency_log: str = ""
    """Directory for what `switchfold report latency` reads; empty: nothing is logged."""
    num_blocks: int = 0
    """Blocks of equal length of the measurement, which workers begin together; 0: none."""
    blocks_differ_in: BlockDifference = BlockDifference.LOG
    """What blocks have, or do without, in the order of `has_difference`."""
    samples: str = ""
    """File with the samples of the glosses."""
    controller: str = ""
    """Address of the controller; for servers."""
    job: str = ""
    """Name of the workers' job; for servers."""
    server_credentials: str = ""
    """Folder of the servers' certificate; empty: nothing is encrypted."""
    encrypts_tables: bool = False
    """Whether workers reach servers by TLS. It costs time that other systems do not spend, so
    benchmarks do without."""
    servers: tuple[tuple[str, int], ...] = ()
    """Addresses of the servers by shard; for workers."""

    def __post_init__(self) -> None:
        if (
            min(self.num_workers, self.num_servers, self.batch, self.width, self.steps) < 1
            or min(self.warm_up_s, self.pause_s) < 0
        ):
            raise ValueError(
                f"{self.num_workers} workers, {self.num_servers} servers, mini-batches of"
                f" {self.batch}, {self.steps} after {self.warm_up_s} s, pauses of {self.pause_s} s;"
                " give positive numbers"
            )
        if self.num_blocks and (self.num_blocks % 4 or self.steps % self.num_blocks):
            raise ValueError(
                f"{self.num_blocks} blocks of {self.steps} steps; give a multiple of 4 blocks, and"
                " a multiple of that as steps"
            )
        compares_logs = self.blocks_differ_in is BlockDifference.LOG
        if self.num_blocks and compares_logs and not self.latency_log:
            raise ValueError("blocks with and without a log; give a latency log")
        if self.has_plain_table and (self.is_training or self.offload is Offload.NONE):
            raise ValueError("blocks with and without hot keys; give an offload, and no training")
        if self.is_training and self.workload is not TableWorkload.GLOSSES:
            raise ValueError(f"only workload {TableWorkload.GLOSSES} can be trained with")

    @property
    def needs_samples(self) -> bool:
        """Whether the samples of the glosses have to be in a file."""
        return self.workload is TableWorkload.GLOSSES

    @property
    def has_plain_table(self) -> bool:
        """Whether there is a second table of sums, without hot keys."""
        return self.num_blocks > 0 and self.blocks_differ_in is BlockDifference.HOT_KEYS

    @staticmethod
    def has_difference(block: int) -> bool:
        """Return whether a block has it: no, yes, yes, no, ..., so that a drift cancels."""
        return block % 4 in (1, 2)

    def with_offload(self, offload: Offload) -> Self:
        """Return the same plan with another part of it in the switch."""
        return replace(self, offload=offload)

    @property
    def latency_directory(self) -> Path | None:
        """Where the processes log their requests."""
        return Path(self.latency_log) if self.latency_log else None

    def table(self, name: str, width: int, optimiser: Optimiser) -> TableDefinition:
        """Define an asynchronous table; this is where its keys become hot."""
        return TableDefinition(
            name=name,
            width=width,
            optimiser=optimiser,
            hot_keys=0 if self.offload is Offload.NONE else self.hot_keys,
        )

    def write(self, path: Path) -> None:
        """Write the plan as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; unknown keys are an error."""
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if unknown := set(raw) - {field.name for field in fields(cls)}:
            raise ValueError(f"{path}: unknown keys {sorted(unknown)}")
        raw["workload"] = TableWorkload(raw["workload"])
        raw["offload"] = Offload(raw["offload"])
        raw["use"] = HotRowUse(raw["use"])
        raw["blocks_differ_in"] = BlockDifference(raw["blocks_differ_in"])
        raw["servers"] = tuple((str(host), int(port)) for host, port in raw["servers"])
        return cls(**raw)
