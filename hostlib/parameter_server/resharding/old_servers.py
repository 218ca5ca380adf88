# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The directories of the servers that tables are moved from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...errors import ReshardError
from ...peers.frames import FrameKind
from ..storage import LogEvents, ServerStorage
from ..tables.change import ShardPlace, TableChange
from ..tables.recovery import recover
from ..tables.snapshot import PLACEMENT, placement_of
from ..tables.state import TableState


def _ignore(*_: object) -> None:
    """Nothing is appended."""


_NO_EVENTS = LogEvents(on_durable=_ignore, on_failed=_ignore, on_room=_ignore)


@final
@dataclass(frozen=True)
class OldServer:
    """A server that is stopped; its directory is locked."""

    directory: Path
    storage: ServerStorage
    place: ShardPlace
    num_workers: int

    def load(self) -> TableState:
        """Return its tables, which take as much memory as in the server. Raises StorageError."""
        state = TableState(self.num_workers)
        recover(state, self.storage, self.place.shard)
        return state


def open_servers(directories: Sequence[Path], stack: ExitStack) -> list[OldServer]:
    """Return the servers by shard; `stack` closes them.

    Raises ReshardError unless they are all servers of one number, LogLockedError for one that runs,
    and other StorageErrors.
    """
    servers = [_open(directory, stack) for directory in directories]
    by_shard: dict[int, OldServer] = {}
    for server in servers:
        first = servers[0]
        if server.place.num_servers != first.place.num_servers:
            raise ReshardError(
                f"{server.directory} is that of {server.place}, but {first.directory} that of"
                f" {first.place}: give the directories of one run"
            )
        if server.num_workers != first.num_workers:
            raise ReshardError(
                f"{server.directory} has {server.num_workers} workers, but {first.directory}"
                f" {first.num_workers}: give the directories of one run"
            )
        twin = by_shard.setdefault(server.place.shard, server)
        if twin is not server:
            raise ReshardError(
                f"{server.directory} and {twin.directory} are both those of {server.place}"
            )
    missing = sorted({*range(servers[0].place.num_servers)} - by_shard.keys())
    if missing:
        raise ReshardError(
            f"no directory of server {', '.join(map(str, missing))} of"
            f" {servers[0].place.num_servers}: give those of all servers"
        )
    return [by_shard[shard] for shard in sorted(by_shard)]


def _open(directory: Path, stack: ExitStack) -> OldServer:
    if not (directory / "log").is_dir():
        raise ReshardError(f"{directory} has no log of a server; give what its --log named")
    storage = stack.enter_context(ServerStorage(directory, _NO_EVENTS))
    try:
        return OldServer(directory, storage, *_stored_place(storage))
    except (ValueError, TypeError, StopIteration) as error:
        raise ReshardError(
            f"{directory} does not say whose log it is: no worker has entered, or it is of another"
            " release"
        ) from error


def _stored_place(storage: ServerStorage) -> tuple[ShardPlace, int]:
    if storage.snapshot is not None:
        name, payload = next(storage.snapshot.chunks())
        if name != PLACEMENT:
            raise ValueError(f"a chunk {name!r}")
        return placement_of(payload)
    _, record = next(storage.records())
    request, payload = TableChange.unpack(record)
    if request.kind is not FrameKind.ENTER or not payload:
        raise ValueError(f"a first record {request}")
    return ShardPlace.unpack(payload), request.num_keys
