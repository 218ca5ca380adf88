# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""MLfabric's AllReduce: members of a job add up vectors, at rates that a scheduler grants."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import final

import numpy as np
from numpy.typing import NDArray

from ....closable import Closable
from ....control.stations.allreduce_terms import MOST_MEMBERS
from ....control.stations.station import StationKind, TransferStation
from ....credentials import Role, require_choice
from ....errors import (
    ConfigurationError,
    EmptyTensorError,
    PeerClosedError,
    TensorError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from ....peers import PeerServer
from ....peers.frames import Purpose
from ...options import ClientOptions
from ...transfer_options import TransferOptions
from ..update_port import UpdatePort
from ..worker_door import WorkerDoor, serve
from .member_allreduces import MemberAllreduces
from .pending_allreduce import PendingAllreduce
from .vector_pieces import MOST_BYTES


@final
class FabricMember(Closable):
    """Takes part in sums of all members' vectors; safe from any thread. There are no servers.

    `counters`: allreduces, granted_allreduces, ungranted_allreduces (sent directly, since the
    scheduler gave no answer in time), refused_allreduces (the scheduler could not plan them),
    failed_allreduces.
    """

    def __init__(
        self,
        members: Sequence[tuple[str, int]],
        options: TransferOptions,
        client: ClientOptions,
    ) -> None:
        """Register as a worker, listen for the other members, and go on at once.

        `members`: dotted IPv4 address and TCP port where each member listens, by worker id, alike
        on all of them; each runs on a host of its own. Of `client`, worker_id, job, token,
        credentials, insecure, source, timeout_s (longest time without news of a call) and
        reconnect_s (longest wait for a connection) count. The job of `options` has no other
        stations. Raises ConfigurationError, CredentialsError and AddressUnreachableError.
        """
        own_id = client.worker_id
        if not (2 <= len(members) <= MOST_MEMBERS and own_id < len(members)):
            raise ConfigurationError(
                f"worker {own_id} of {len(members)} members; give the addresses of 2 to"
                f" {MOST_MEMBERS} members, in the order of their worker ids"
            )
        if options.aggregate:
            raise ConfigurationError(
                f"worker {own_id} is to aggregate updates, and has no servers: leave out"
                " TransferOptions.aggregate"
            )
        require_choice(
            client.credentials and options.credentials,
            who=f"worker {own_id}'s sums with other members",
            role=Role.WORKER,
            options=("ClientOptions.credentials and TransferOptions.credentials", "insecure=True"),
            insecure=client.insecure,
        )
        self.counters: Counter[str] = Counter()
        self._num_members = len(members)
        self._timeout_s = client.timeout_s
        self._is_closed = False
        self._station = TransferStation(
            options.station(StationKind.WORKER, own_id),
            on_event=lambda event: self._post(lambda: self._allreduces.on_event(event)),
            on_failed=lambda error: self._post(lambda: self._allreduces.on_failed(error)),
        )
        self._peers = PeerServer(
            *members[own_id], token=client.token, credentials=client.credentials
        )
        loop = self._peers.loop
        self._allreduces: MemberAllreduces = MemberAllreduces(
            loop,
            members,
            client,
            grant_wait_s=options.grant_wait_s,
            report=self._station.send,
            counters=self.counters,
        )
        receiver = self._allreduces.receiver
        door = WorkerDoor(
            Purpose.TRANSFERS,
            f"member {own_id} of allreduces",
            lambda connection, worker_id: UpdatePort(receiver, loop, worker_id, connection),
            may_enter=lambda worker_id: worker_id != own_id and worker_id < len(members),
        )
        loop.on_failure(self._allreduces.fail)
        serve(self._peers, client, door)
        loop.run(self._allreduces.dial)
        try:
            self._station.start()
        except ConfigurationError:
            self._peers.close()
            raise

    def all_reduce(self, vector: NDArray[np.float32]) -> Future[NDArray[np.float32]]:
        """Add the vectors of all members up: MLfabric's AllReduce.

        `vector` is one-dimensional and float32, of the same length on all members; it may change
        after the call. All members make the same calls in the same order; each begins when the one
        before has ended. The values of an element are added in the order of the members' ids, and
        all members get the same bytes, NaN and infinity included.

        The future's errors: MemberLostError (a member died or left), PeerMismatchError (members
        make different calls; it says who), ExchangeTimeoutError (members have not made the call, or
        nothing comes from them any more), UpdateRefusedError (the scheduler cannot plan it),
        PeerRefusedError, PeerProtocolError, PeerClosedError after `close`, and JobRefusedError,
        WorkerTakenError or VersionMismatchError if the scheduler has refused this worker. Other
        members have an error, too, or the sum.

        Raises UnsupportedDtypeError, EmptyTensorError, TensorTooLargeError, TensorError for another
        shape, and PeerClosedError.
        """
        _check(vector)
        future: Future[NDArray[np.float32]] = Future()
        future.set_running_or_notify_cancel()  # others add the values that were sent
        pending = PendingAllreduce(
            vector=vector.copy(),
            num_members=self._num_members,
            wait_s=self._timeout_s,
            future=future,
            on_refused=self._allreduces.refused,
        )
        if self._is_closed:
            raise _closed_error()
        self._peers.loop.post(lambda: self._allreduces.submit(pending))
        return future

    def close(self) -> None:
        """Leave: calls without a result fail with PeerClosedError, those of others, too, if they
        still need something of this member."""
        if self._is_closed:
            return
        self._is_closed = True
        self._station.close()
        with contextlib.suppress(PeerClosedError):  # the loop has failed, and all calls with it
            self._peers.loop.run(lambda: self._allreduces.close(_closed_error()))
        self._peers.close()

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # it is closed
            self._peers.loop.post(call)


def _check(vector: NDArray[np.float32]) -> None:
    """Raise a TensorError unless it can be added up."""
    if vector.dtype != np.float32 or not vector.dtype.isnative:
        raise UnsupportedDtypeError(
            f"a vector of {vector.dtype}; all_reduce adds float32 in the machine's byte order"
        )
    if vector.ndim != 1:
        raise TensorError(f"an array of shape {vector.shape}; give a vector, such as its ravel()")
    if not vector.size:
        raise EmptyTensorError("a vector without values has no sum")
    if vector.nbytes > MOST_BYTES:
        raise TensorTooLargeError(
            f"a vector of {vector.nbytes} bytes; at most {MOST_BYTES} are allowed: cut it, and make"
            " several calls"
        )


def _closed_error() -> PeerClosedError:
    return PeerClosedError("the member of allreduces is closed; make a new one")
