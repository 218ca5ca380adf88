# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server of a run: a process that says what it has done, on a Unix socket.

`python -m switchfold.controller.cli.hot.server PLAN SHARD ADDRESS SOCKET READY_FD`. It runs until
SIGTERM. Each line on the socket is a request, and each answer is a JSON object in a line.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ....hostlib.config import (
    job_token_from_environment,
    secret_from_environment,
    token_from_environment,
)
from ....hostlib.credentials import credentials_in
from ....hostlib.parameter_server import ParameterServer, ServerOptions
from ....hostlib.parameter_server.hot_server.options import HotRowOptions
from .plan import Offload, TablePlan

_COUNTERS: Final = ("pushes", "pushed_keys", "pulls", "pulled_keys", "hot_sums", "hot_pushes")
_PORT: Final = "port"
_READ: Final = "read"
_SUMS: Final = "sums"
_STORE: Final = "store "
_PAUSE: Final = "pause log"
_RESUME: Final = "resume log"
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class ServerReading:
    """What a server, or all of a run, have done up to some moment, or between two."""

    processor_s: float
    """Processor time of the process."""
    pushes: int
    """Pushes that came by TCP; of a push to several tables, each one."""
    pushed_keys: int
    pulls: int
    pulled_keys: int
    hot_sums: int
    """Sums of pushes to hot rows that came from the switch."""
    hot_pushes: int
    """Pushes to hot rows that are in those sums."""
    writes: int
    """Changes of rows: how often a push, or a sum of pushes, changed the row of a key."""

    def __sub__(self, earlier: ServerReading) -> ServerReading:
        before = asdict(earlier)
        return ServerReading(**{name: n - before[name] for name, n in asdict(self).items()})

    def write(self, path: Path) -> None:
        """Write the reading as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def open_server(plan: TablePlan, shard: int, address: str) -> ParameterServer:
    """Start a server, which attaches to the job if any keys are to be hot."""
    hot = HotRowOptions(
        controller=plan.controller,
        job=plan.job,
        token=token_from_environment(),
        job_token=job_token_from_environment(),
        credentials=plan.server_credentials or None,
        rows=plan.hot_rows,
        flush_s=plan.flush_s,
        refresh_s=plan.refresh_s,
    )
    options = ServerOptions(
        num_workers=plan.num_workers,
        shard=shard,
        hot=None if plan.offload is Offload.NONE else hot,
        latency_log=plan.latency_directory,
    )
    return ParameterServer(
        options,
        address=address,
        token=secret_from_environment(),
        credentials=credentials_in(plan.server_credentials) if plan.encrypts_tables else None,
        insecure=not plan.encrypts_tables,
    )


def port_of(path: Path) -> int:
    """Return the TCP port of the server that answers on a Unix socket."""
    return int(_ask(path, _PORT)["port"])


def read_servers(paths: Sequence[Path]) -> ServerReading:
    """Return what the servers that answer on Unix sockets have done together."""
    answers = [_ask(path, _READ) for path in paths]
    return ServerReading(**{name: sum(each[name] for each in answers) for name in answers[0]})


def have_hot_rows(paths: Sequence[Path]) -> bool:
    """Return whether the switch has sent sums to all servers that answer on Unix sockets."""
    return all(_ask(path, _SUMS)["sums"] > 0 for path in paths)


def pause_logs(paths: Sequence[Path], *, is_paused: bool) -> None:
    """Let the servers that answer on Unix sockets measure no request, or do so again."""
    for path in paths:
        _ask(path, _PAUSE if is_paused else _RESUME)


def store_rows(path: Path, file: Path) -> None:
    """Let the server that answers on a Unix socket write its rows, for `read_rows`."""
    _ask(path, f"{_STORE}{file}")


def read_rows(files: Sequence[Path], table: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the keys of a table, rising, and their values, from what servers have written."""
    stored: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
    for file in files:
        with np.load(file) as arrays:
            stored.append((arrays[f"{table}_keys"], arrays[f"{table}_values"]))
    keys = np.concatenate([keys for keys, _ in stored])
    order = np.argsort(keys)
    return keys[order], np.concatenate([values for _, values in stored])[order]


def _ask(path: Path, request: str) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(str(path))
        connection.sendall(f"{request}\n".encode())
        with connection.makefile() as answer:
            return json.loads(answer.readline())


def _reading(server: ParameterServer) -> ServerReading:
    counters = server.tables.state.counters
    writes: list[int] = []
    server.loop.run(
        lambda: writes.extend(int(updates.sum()) for *_, updates in server.tables.state.updates())
    )
    return ServerReading(
        processor_s=time.process_time(),
        writes=sum(writes),
        **{name: counters[name] for name in _COUNTERS},
    )


def _store(server: ParameterServer, file: Path) -> None:
    """Write the keys and the values of the rows of each table."""
    arrays: dict[str, Any] = {}

    def collect() -> None:
        for table in server.tables.state.tables.values():
            name = table.definition.name
            keys = [keys for keys, _ in table.rows.updates()]
            arrays[f"{name}_keys"] = np.concatenate([np.empty(0, np.int64), *keys])
            arrays[f"{name}_values"] = table.rows.pull(arrays[f"{name}_keys"]).values

    server.loop.run(collect)
    np.savez(file, **arrays)


def _answer(server: ParameterServer, request: str) -> dict[str, Any]:
    if request.startswith(_STORE):
        _store(server, Path(request.removeprefix(_STORE)))
        return {}
    if request in (_PAUSE, _RESUME):
        server.pause_latency_log(request == _PAUSE)
        return {}
    if request == _SUMS:
        return {"sums": server.tables.state.counters["hot_sums"]}
    return {"port": server.port} if request == _PORT else asdict(_reading(server))


def _end(_signal: int, _frame: object) -> None:
    """End the process such that the server closes its logs."""
    raise SystemExit


def main(arguments: list[str]) -> None:
    """Run one server."""
    plan, shard, address, path, ready = arguments
    signal.signal(signal.SIGTERM, _end)
    with (
        open_server(TablePlan.read(Path(plan)), int(shard), address) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener,
    ):
        listener.bind(path)
        listener.listen()
        os.write(int(ready), b"\n")
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rw") as lines:
                lines.write(json.dumps(_answer(server, lines.readline().rstrip("\n"))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
