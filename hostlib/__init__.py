# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Host library of Switchfold: sum tensors over the workers of a job inside a P4 switch.

Importing it needs numpy alone. `Session.join` loads grpc.
"""

from hostlib.errors import (
    AddressUnreachableError,
    AllreduceTimeoutError,
    BarrierTimeoutError,
    ConfigurationError,
    ControllerUnreachableError,
    EmptyTensorError,
    HostlibError,
    InterfaceMissingError,
    JobEndedError,
    JobRefusedError,
    JoinError,
    MemberError,
    MemberLeftError,
    MemberLostError,
    NonFiniteError,
    PeerClosedError,
    PeerError,
    PeerMismatchError,
    PeerProtocolError,
    PeerRefusedError,
    PeerUnreachableError,
    PortTakenError,
    ResultForgottenError,
    ResultTimeoutError,
    RoundClosedError,
    SaturationError,
    SessionBrokenError,
    SessionClosedError,
    SessionError,
    SwitchUnreachableError,
    TensorError,
    TensorTooLargeError,
    TransportClosedError,
    TransportError,
    TransportPermissionError,
    UnsupportedDtypeError,
    VersionMismatchError,
    WorkerArrivalError,
    WorkerMissingError,
    WorkerTakenError,
)
from hostlib.future import AllreduceFuture
from hostlib.job_view import Endpoint, JobView, Member, TreeView
from hostlib.options import SessionOptions
from hostlib.session import Session
from hostlib.straggler import StragglerPolicy
from hostlib.transfer_times import TransferTimes
from hostlib.transports.base import Transport
from hostlib.transports.mem import MemTransport
from hostlib.transports.raw import RawTransport
from hostlib.transports.tunnel import TunnelTransport
from hostlib.transports.udp import UdpTransport

__all__ = [
    "AddressUnreachableError",
    "AllreduceFuture",
    "AllreduceTimeoutError",
    "BarrierTimeoutError",
    "ConfigurationError",
    "ControllerUnreachableError",
    "EmptyTensorError",
    "Endpoint",
    "HostlibError",
    "InterfaceMissingError",
    "JobEndedError",
    "JobRefusedError",
    "JobView",
    "JoinError",
    "MemTransport",
    "Member",
    "MemberError",
    "MemberLeftError",
    "MemberLostError",
    "NonFiniteError",
    "PeerClosedError",
    "PeerError",
    "PeerMismatchError",
    "PeerProtocolError",
    "PeerRefusedError",
    "PeerUnreachableError",
    "PortTakenError",
    "RawTransport",
    "ResultForgottenError",
    "ResultTimeoutError",
    "RoundClosedError",
    "SaturationError",
    "Session",
    "SessionBrokenError",
    "SessionClosedError",
    "SessionError",
    "SessionOptions",
    "StragglerPolicy",
    "SwitchUnreachableError",
    "TensorError",
    "TensorTooLargeError",
    "TransferTimes",
    "Transport",
    "TransportClosedError",
    "TransportError",
    "TransportPermissionError",
    "TreeView",
    "TunnelTransport",
    "UdpTransport",
    "UnsupportedDtypeError",
    "VersionMismatchError",
    "WorkerArrivalError",
    "WorkerMissingError",
    "WorkerTakenError",
]
