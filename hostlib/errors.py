# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the host library.

Our exception hierarchy:

HostlibError
|- ConfigurationError (also ValueError): worker id, number of workers, slots, addresses
|  |- ToleranceFileError: a file of measured tolerances that is damaged, or lacks the model
|  `- CredentialsError: certificates and keys that are missing, damaged, or refused by either end
|     |- UnknownCallerError: a caller without a certificate, or with a revoked one
|     `- CallerRoleError: a caller whose certificate is for something else
|- TensorError (also ValueError)
|  |- EmptyTensorError
|  |- TensorTooLargeError
|  |- UnsupportedDtypeError (also TypeError)
|  |- NonFiniteError: NaN or infinity in some worker's tensor; every worker raises it
|  `- SaturationError (also OverflowError): an int32 sum left its range; every worker raises it
|- AllreduceTimeoutError (also TimeoutError)
|  |- SwitchUnreachableError: not even probes are answered
|  `- WorkerMissingError: the switch answers and names workers that have not contributed
|- AllgatherTimeoutError (also TimeoutError): names workers whose blocks or receipts did not come
|- MulticastUnavailableError: no switch can copy blocks in the job's present view
|- RoundClosedError: the job went on without this worker
|- ThreadFailedError: a defect ended a thread of this library; names the thread and the cause
|- SessionError
|  |- SessionClosedError
|  |- SessionBrokenError: an earlier failure left the slots out of step
|  |- BarrierTimeoutError (also TimeoutError)
|  `- JobEndedError
|- JoinError
|  |- ControllerUnreachableError
|  |- JobRefusedError: no room, disagreeing workers, wrong token
|  |  `- WorkerTakenError: the job runs, with another process in this worker's place
|  |- WorkerArrivalError (also TimeoutError): a worker never joined
|  `- VersionMismatchError
|- PeerError: between two workers
|  |- PeerUnreachableError: no answer at the other worker's address
|  |- PeerRefusedError: wrong secret, another job, or a view that is over
|  |- PeerProtocolError: bytes that are no frames, or frames out of place
|  |- PeerMismatchError: the workers submitted different sequences of tensors
|  |- PeerClosedError: the peer server, or a host allreduce, was closed
|  |- MemberError: names a member of the view
|  |  |- MemberLostError: it died or fell silent
|  |  `- MemberLeftError: it gave up the view, but lives
|  |- ExchangeTimeoutError (also TimeoutError): names workers that did not send their part
|  |- ServerLostError: a parameter server is away for longer than clients wait
|  |- ServerRestartedError: a parameter server was killed, and a sum is impossible
|  |- StaleUpdateError: an update that is older than tau_max allows; it was not applied
|  |- UpdateRefusedError: an update that the scheduler cannot plan; it was not sent
|  |- UnplannedUpdateError: a server with a replica did not apply an update without a place
|  |- ResultForgottenError: the result was completed too long ago
|  `- ResultTimeoutError (also TimeoutError): the result did not complete in time
|- RowTableError: a sparse table of a parameter server
|  |- RowShapeError (also ValueError): keys, gradients or values of another dtype or shape
|  |- NonFiniteGradientError (also ValueError): names position and key of NaN or infinity
|  |- LogOrderError (also ValueError): a push that is not in the order of the log
|  |- RowFormatError (also ValueError): bytes that are no rows of such a table
|  |- RowTableFullError: no room for the rows of new keys
|  `- RowMemoryError (also MemoryError)
|- SchemeError (also ValueError): a layer, a cluster or a scheme that do not fit together
|  |- CalibrationError: a file of measured capacities that is damaged or missing
|  `- InformationBookError: a book that is damaged, inconsistent or of another epoch
|- StorageError: the log or the snapshots of a parameter server
|  |- LogLockedError: another process has the directory
|  |- LogBusyError: too many bytes wait to become durable
|  |- LogClosedError
|  |- LogBrokenError: the disk failed, and what it holds is unknown until the log is opened again
|  |- DiskFullError: nothing of what did not fit was kept
|  |- StorageDamagedError: names file and offset
|  |- ForeignLogError: the log of another server
|  |- LogCopyError: a replica's copy of its server's log, which that log does not continue
|  |- UnfinishedReshardError: a directory into which `switchfold ps reshard` was writing
|  `- ReshardError: directories whose tables cannot be moved together
|- HotRowError (also ValueError): a sketch or a lane layout that is damaged, or keys that do not fit
|- TraceError: a file of a timeline cannot be written or read
|- LatencyLogError: a latency log that cannot be written, or pyarrow is missing
|- MetricsError: an address for metrics that cannot be used, or prometheus-client is missing
`- TransportError
   |- TransportPermissionError (also PermissionError)
   |- InterfaceMissingError
   |- PortTakenError
   |- AddressUnreachableError
   |- MtuTooSmallError: an interface that does not carry our datagrams
   `- TransportClosedError
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class HostlibError(Exception):
    """Base of every error that the host library raises on purpose."""


class ConfigurationError(HostlibError, ValueError):
    """An option is out of its range."""


class ToleranceFileError(ConfigurationError):
    """A file of measured tolerances cannot be read or written, or lacks the model."""


class CredentialsError(ConfigurationError):
    """Certificates or keys that are missing, damaged, expired, or refused by either end."""


class UnknownCallerError(CredentialsError):
    """A caller has shown no certificate, or a revoked one."""


class CallerRoleError(CredentialsError):
    """A caller's certificate is for something else."""


class TensorError(HostlibError, ValueError):
    """A tensor cannot be summed."""


class EmptyTensorError(TensorError):
    """The array has no elements."""


class TensorTooLargeError(TensorError):
    """The array has more elements than 32-bit ranges can count."""


class UnsupportedDtypeError(TensorError, TypeError):
    """The array's dtype, or the operation on this dtype, is not supported."""


class NonFiniteError(TensorError):
    """Some worker's tensor holds NaN or infinity; all workers of the job raise this."""

    def __init__(
        self, tensor_id: int, ranges: list[tuple[int, int]], what: str = "NaN or infinity"
    ) -> None:
        """Name the element ranges (start, end) that have NaN or infinity; `what` says which."""
        shown = ", ".join(f"[{start}, {end})" for start, end in ranges[:8])
        more = ""
        if len(ranges) > 8:
            more = f" and {len(ranges) - 8} more ranges"
        super().__init__(
            f"tensor {tensor_id}: {what} in elements {shown}{more} on at least one worker;"
            " clean the values, or pass nonfinite='propagate' to get NaN for these ranges"
        )
        self.ranges = ranges


class SaturationError(TensorError, OverflowError):
    """A sum left the int32 range in the switch; all workers of the job raise this."""


class AllreduceTimeoutError(HostlibError, TimeoutError):
    """No result within the allreduce's timeout."""


class SwitchUnreachableError(AllreduceTimeoutError):
    """Neither results nor answers to probes arrived."""


class WorkerMissingError(AllreduceTimeoutError):
    """Switches wait for workers that have not contributed.

    `worker_ids` are those that certainly have not. On a tree it may be empty: a worker below
    another switch is missing, and the message names the candidates.
    """

    def __init__(self, message: str, worker_ids: list[int]) -> None:
        super().__init__(message)
        self.worker_ids = worker_ids


class AllgatherTimeoutError(HostlibError, TimeoutError):
    """Some worker's block, or receipt, did not come within the allgather's timeout.

    `worker_ids` are the workers that are missing, as far as this one can tell.
    """

    def __init__(self, message: str, worker_ids: list[int] | None = None) -> None:
        super().__init__(message)
        self.worker_ids = worker_ids or []


class MulticastUnavailableError(HostlibError):
    """The job's view has no switch that could copy a block to all of its workers."""


class RoundClosedError(HostlibError):
    """The job closed a round without this worker, which is now behind."""


class ThreadFailedError(HostlibError):
    """A thread of this library ended by an exception that nobody expected: a defect."""


class SessionError(HostlibError):
    """Base of errors in the life of a session."""


class SessionClosedError(SessionError):
    """The session was closed."""


class SessionBrokenError(SessionError):
    """An earlier failure left this worker's slots out of step; the job must be joined again."""


class BarrierTimeoutError(SessionError, TimeoutError):
    """A barrier was not released in time."""


class JobEndedError(SessionError):
    """The controller ended the job."""


class JoinError(HostlibError):
    """A job could not be joined."""


class ControllerUnreachableError(JoinError):
    """No controller answers at the address."""


class JobRefusedError(JoinError):
    """The controller refused this worker or its job."""


class WorkerTakenError(JobRefusedError):
    """The job runs already, and another process is, or was, this worker of it."""


class WorkerArrivalError(JoinError, TimeoutError):
    """The other workers of the job did not all arrive in time."""


class VersionMismatchError(JoinError):
    """Host library, controller and switch do not speak the same wire version or variant."""


class PeerError(HostlibError):
    """Something went wrong between two workers."""


class PeerUnreachableError(PeerError):
    """Nobody answers at the other worker's address."""


class PeerRefusedError(PeerError):
    """The other worker refused: wrong secret, another job, or a view that is over."""


class PeerProtocolError(PeerError):
    """The other end sent bytes that are no frames, or frames out of place."""


class PeerMismatchError(PeerError):
    """The workers submitted different sequences of tensors."""


class PeerClosedError(PeerError):
    """The peer server, or a host allreduce, was closed."""


class MemberError(PeerError):
    """Base of errors that name a member of the view."""

    def __init__(self, message: str, worker_id: int) -> None:
        super().__init__(message)
        self.worker_id = worker_id


class MemberLostError(MemberError):
    """A member of the view died or fell silent."""


class MemberLeftError(MemberError):
    """A member gave up the view, but lives: a change of view is probably under way."""


class ExchangeTimeoutError(PeerError, TimeoutError):
    """Parameters or factors did not come in time; `worker_ids` are those that did not send."""

    def __init__(self, message: str, worker_ids: list[int]) -> None:
        super().__init__(message)
        self.worker_ids = worker_ids


class ServerLostError(PeerError):
    """A parameter server cannot be reached for longer than the client waits; `shard` names it."""

    def __init__(self, message: str, shard: int) -> None:
        super().__init__(message)
        self.shard = shard


class ServerRestartedError(PeerError):
    """A parameter server came back without updates that are needed for a sum.

    Some worker has the answer, and does not send its update again.
    """


class StaleUpdateError(PeerError):
    """A server did not apply an update: its delay exceeds the bound tau_max."""

    def __init__(self, message: str, delay: int, tau_max: int) -> None:
        super().__init__(message)
        self.delay = delay
        self.tau_max = tau_max


class UpdateRefusedError(PeerError):
    """The scheduler cannot plan a part of an update, which was not sent; later ones are asked for.

    Other servers may have applied their parts.
    """


class UnplannedUpdateError(PeerError):
    """A server did not apply an update: the scheduler has no place for it, and a replica follows.

    Also of updates for a server that is gone, at the replica that has taken its place.
    """


class ResultForgottenError(PeerError):
    """The result was completed too long ago and is no longer retained."""


class ResultTimeoutError(PeerError, TimeoutError):
    """The result did not complete at the other worker in time."""


class RowTableError(HostlibError):
    """Base of errors of sparse tables."""


class RowShapeError(RowTableError, ValueError):
    """An array has another dtype or shape, or does not lie in memory as the C code needs it."""


class NonFiniteGradientError(RowTableError, ValueError):
    """A pushed gradient, or the sum of those of a key, holds NaN or infinity."""

    def __init__(self, message: str, position: int, key: int) -> None:
        """Name the position in the batch and the key that is there."""
        super().__init__(message)
        self.position = position
        self.key = key


class LogOrderError(RowTableError, ValueError):
    """A push does not come in the order of its log."""


class RowFormatError(RowTableError, ValueError):
    """Bytes are no rows, or those of a table of another kind."""


class RowTableFullError(RowTableError):
    """A table has as many rows as it may have."""


class RowMemoryError(RowTableError, MemoryError):
    """The system has no memory for a table or for more of its rows."""


class SchemeError(HostlibError, ValueError):
    """A layer, a cluster or a scheme is described wrongly, or they do not fit together."""


class CalibrationError(SchemeError):
    """A file of measured capacities is damaged or missing, or cannot be written."""


class InformationBookError(SchemeError):
    """An information book is damaged, inconsistent or of another epoch."""


class StorageError(HostlibError):
    """The log or the snapshots of a parameter server cannot be read or written."""


class LogLockedError(StorageError):
    """Another process has the directory of the log."""


class LogBusyError(StorageError):
    """So many bytes wait to become durable that the log takes no more for the moment."""


class LogClosedError(StorageError):
    """The log was closed."""


class LogBrokenError(StorageError):
    """The disk failed; what it holds of the last records is unknown until the log is opened."""


class DiskFullError(StorageError):
    """There is no space for a record or a snapshot; nothing of it was kept."""


class StorageDamagedError(StorageError):
    """Stored bytes are not what was written, or files are missing."""

    def __init__(self, message: str, path: Path | None = None, offset: int = 0) -> None:
        """Name the file, None for several or for bytes in memory, and the byte in it."""
        super().__init__(message)
        self.path = path
        self.offset = offset


class ForeignLogError(StorageError):
    """The directory holds the log of another server."""


class LogCopyError(StorageError):
    """A replica's own log is not one that its server's log continues."""


class UnfinishedReshardError(StorageError):
    """Tables are being moved into the directory, or the process that did it has ended midway."""


class ReshardError(StorageError):
    """Tables cannot be moved: directories do not belong together, or have no place for them."""


class HotRowError(HostlibError, ValueError):
    """A sketch or a lane layout is damaged, or the keys do not fit into it."""


class TraceError(HostlibError):
    """A file of a timeline cannot be written or read."""


class LatencyLogError(HostlibError):
    """A latency log cannot be written, or pyarrow is missing."""


class MetricsError(HostlibError):
    """Metrics cannot be served at an address, or prometheus-client is missing."""


class TransportError(HostlibError):
    """Base of errors below the session."""


class TransportPermissionError(TransportError, PermissionError):
    """The transport needs privileges that this process does not have."""


class InterfaceMissingError(TransportError):
    """No such network interface in this network namespace."""


class PortTakenError(TransportError):
    """Another socket holds the UDP port."""


class AddressUnreachableError(TransportError):
    """No route to the address, or the address is not this host's."""


class MtuTooSmallError(TransportError):
    """The interface towards the switch carries no packets of the size that the job needs."""


class TransportClosedError(TransportError):
    """The transport was closed."""
