# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Chain replication: a server passes each update on to its replica, and applies it after that.

The head of the chain is the workers' parameter server; the tail is another one, on a host of its
own, whose only worker is the head. So a worker hears of its update when both have it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.errors import HostlibError, PeerClosedError
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse, ParameterServer
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.tables.state import KEY_BYTES
from switchfold.hostlib.parameter_server.transfers import (
    FabricWorker,
    PushOutcome,
    TransferOptions,
)
from switchfold.hostlib.parameter_server.transfers.arrivals.known_updates import UpdateName, name_of
from switchfold.hostlib.parameter_server.transfers.fabric_worker import MOST_OPEN_PUSHES
from switchfold.hostlib.parameter_server.transfers.update_port import IncomingUpdate, UpdatePort

Floats = NDArray[np.float32]


@final
class ChainHead:
    """Sees the updates of a server's workers before the server does.

    `counters`: passed_updates, passed_bytes (values and keys that left for the tail).
    """

    def __init__(
        self,
        server: ParameterServer,
        tail: tuple[str, int],
        definition: TensorDefinition,
        transfers: TransferOptions,
        *,
        source: str,
        timeout_s: float,
    ) -> None:
        """Connect to the tail. Make it before workers connect to `server`, whose only tensor is
        that of the definition. At most 64 updates are on their path to the tail.
        """
        self.counters: Counter[str] = Counter()
        self._server = server
        self._service = server.updates
        self._under_way: set[UpdateName] = set()
        """Not at the tail yet."""
        self._definition = definition
        self._timeout_s: Final = timeout_s
        self._stack = ExitStack()
        options = ClientOptions(
            worker_id=0,
            source=source,
            timeout_s=timeout_s,
            use_hot_rows=HotRowUse.NEVER,
            insecure=True,
        )
        with ExitStack() as stack:
            client = stack.enter_context(TableClient([tail], options))
            self._tensor = DenseTensor(client, definition)
            worker = FabricWorker(self._tensor, transfers, most_open=MOST_OPEN_PUSHES)
            self._tail = stack.enter_context(worker)
            self._stack = stack.pop_all()
        server.update_receiver = self

    def start(self, values: Floats) -> None:
        """Give the tail the first values."""
        self._tensor.start(values).result(self._timeout_s)

    def tail_model(self) -> Floats:
        """Return the values at the tail."""
        return self._tail.get().result(self._timeout_s)

    def close(self) -> None:
        """Close the connection to the tail; updates that are not there are not applied."""
        self._stack.close()

    # The methods below run in the thread of the server's loop.

    def enter(self, port: UpdatePort, incarnation: int) -> None:
        """Answer a worker's process."""
        self._service.enter(port, incarnation)

    def is_known(self, worker_id: int, incarnation: int, number: int) -> bool:
        """Return whether an update is on its path through the chain, or applied."""
        is_here = UpdateName(worker_id, incarnation, number) in self._under_way
        return is_here or self._service.is_known(worker_id, incarnation, number)

    def reserve(self, update: IncomingUpdate) -> bool:
        """Return whether there is memory for an update."""
        return self._service.reserve(update)

    def release(self, update: IncomingUpdate) -> None:
        """Free the memory of an update that does not come."""
        self._service.release(update)

    def detach(self, port: UpdatePort) -> None:
        """Learn that a connection is gone."""
        self._service.detach(port)

    def arrive(self, update: IncomingUpdate) -> None:
        """Pass an update on to the tail; it has come before if its bytes were thrown away."""
        name = name_of(update)
        if update.is_repeated or name in self._under_way:
            self._service.arrive(update)
            return
        self._under_way.add(name)
        self.counters["passed_updates"] += 1
        self.counters["passed_bytes"] += update.head.num_bytes

        def take(outcome: Future[PushOutcome]) -> None:
            with contextlib.suppress(PeerClosedError):  # the server is closed
                self._server.loop.post(lambda: self._end(update, outcome.exception()))

        try:
            self._tail.push(self._values(update)).add_done_callback(take)
        except HostlibError as error:  # the connection to the tail is closed
            self._end(update, error)

    def _end(self, update: IncomingUpdate, error: BaseException | None) -> None:
        """Have the server apply what the tail has; tell the worker what has not come to it."""
        self._under_way.discard(name_of(update))
        if error is None:
            self._service.arrive(update)
            return
        if not isinstance(error, HostlibError):
            raise error
        update.port.on_denied(update.head.number, error)
        self._service.release(update)

    def _values(self, update: IncomingUpdate) -> Floats:
        """Return the tensor of an update, which has all blocks."""
        payload, num_keys = update.payload, update.head.num_keys
        assert payload is not None
        assert num_keys == self._definition.num_blocks, "a push of FabricWorker"
        values = np.frombuffer(payload, np.float32, offset=update.head_bytes + KEY_BYTES * num_keys)
        return values[: self._definition.num_values]
