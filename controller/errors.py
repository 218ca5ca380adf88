# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Typed errors of the control plane.

ControllerError
├── ConfigError                   the configuration is unusable
│   ├── UnknownNameError          NOT_FOUND: no such switch or link
│   └── UnusableConfigError       a process cannot begin with its configuration or credentials
├── DatabaseError                 the database cannot be opened or written, is in use or of another
│                                 schema
│   ├── NotLeaderError            another controller of the database leads, or may do so
│   └── UncertainWriteError       the connection broke during a write, which may have happened
├── ListenError                   the listen address is taken or not ours
├── ControllerStoppingError       the controller is being stopped; join again later
├── ControllerUnreachableError    an operator command found no controller
├── OperatorRefusedError          the controller refused an operator's request
├── DeploymentError               a deployment cannot be prepared on this machine
├── ToolError                     a program or package that a command needs is missing
├── LatencyRunError               files of a latency log that cannot be reported on
│   ├── LatencyRunMissingError    no such directory
│   ├── LatencyRunEmptyError      no requests in it
│   ├── LatencyRunDamagedError    a file that cannot be read
│   └── LatencyRunFormatError     a file of another release, or of another program
├── TransferLogError              a timeline of transfers that cannot be reported on
│   ├── TransferLogMissingError   no such file, or it cannot be read
│   ├── TransferLogEmptyError     no events in it, or none in the asked time
│   ├── TransferLogDamagedError   a line that is no event
│   └── TransferLogJobError       no such job, or several of which none is named
├── SwitchError
│   ├── SwitchUnreachableError    nobody answers at the switch's P4Runtime address
│   ├── WrongProgramError         the switch runs something else
│   ├── ProgramMissingError       compiled artefacts of our program are not there
│   ├── SwitchUpdateError         the switch refused a read or a write
│   └── ReservedEntryError        an operator's entry is in a table or a range of the controller's
└── JobError                      a refusal; carries the gRPC status that the worker sees
    ├── InvalidJobError           INVALID_ARGUMENT
    │   └── TransferRefusedError      a transfer, or a station's place, that makes no sense
    ├── NoRoomError               RESOURCE_EXHAUSTED
    │   └── SourceLimitError      the callers of one address have as much as they may
    ├── VersionMismatchError      FAILED_PRECONDITION
    ├── StationsDisagreeError     FAILED_PRECONDITION: stations of one job have other options
    ├── WorkersMissingError       DEADLINE_EXCEEDED
    ├── WorkerTakenError          ALREADY_EXISTS
    ├── UnknownJobError           NOT_FOUND
    ├── TokenError                UNAUTHENTICATED
    ├── RoleError                 PERMISSION_DENIED
    ├── JobTokenError             PERMISSION_DENIED: the job's token lacks, is another, or is spent
    ├── WorkerSilentError         ABORTED
    ├── NoSwitchError             UNAVAILABLE
    └── NoTreeError               RESOURCE_EXHAUSTED: no aggregation tree joins the workers
"""

from __future__ import annotations

from typing import ClassVar

import grpc


class ControllerError(Exception):
    """Base of all errors of this package; the text says what, where and what to do."""

    exit_code: ClassVar[int] = 1
    """Exit status of a command that ends with this error."""
    status: ClassVar[grpc.StatusCode] = grpc.StatusCode.INTERNAL
    """gRPC status that a remote caller sees."""


class ConfigError(ControllerError):
    """The configuration is unusable."""


class UnknownNameError(ConfigError):
    """There is no such switch or link."""

    status = grpc.StatusCode.NOT_FOUND


class UnusableConfigError(ConfigError):
    """A process cannot begin with its configuration or its credentials, however often it tries."""

    exit_code = 2


class DatabaseError(ControllerError):
    """The database cannot be opened or written, is in use, or has another schema."""

    status = grpc.StatusCode.RESOURCE_EXHAUSTED


class NotLeaderError(DatabaseError):
    """Another controller of the same database leads, or may do so by now."""

    status = grpc.StatusCode.UNAVAILABLE


class UncertainWriteError(DatabaseError):
    """The connection to the database broke during a write, which may have happened or not."""


class ListenError(ControllerError):
    """The listen address is taken or does not belong to this machine."""


class ControllerStoppingError(ControllerError):
    """The controller is being stopped; jobs go on, workers join again later."""

    status = grpc.StatusCode.UNAVAILABLE


class SchedulerFailedError(ControllerError):
    """A defect ended a job's transfer scheduler; its stations register again with a new one."""

    status = grpc.StatusCode.UNAVAILABLE


class ControllerUnreachableError(ControllerError):
    """An operator command found no controller at the address."""

    exit_code = 3


class OperatorRefusedError(ControllerError):
    """The controller refused an operator's request; the text is the controller's."""


class ToolError(ControllerError):
    """A program or package that a command needs is missing."""


class DeploymentError(ControllerError):
    """A deployment cannot be prepared on this machine."""


class LatencyRunError(ControllerError):
    """The files of a latency log cannot be reported on."""


class LatencyRunMissingError(LatencyRunError):
    """There is no such directory."""


class LatencyRunEmptyError(LatencyRunError):
    """The directory holds no requests."""


class LatencyRunDamagedError(LatencyRunError):
    """A file cannot be read."""


class LatencyRunFormatError(LatencyRunError):
    """A file is of another release, or of another program."""


class TransferLogError(ControllerError):
    """A timeline of transfers cannot be reported on."""


class TransferLogMissingError(TransferLogError):
    """There is no such file, or it cannot be read."""


class TransferLogEmptyError(TransferLogError):
    """The timeline has no events, or none in the time that was asked for."""


class TransferLogDamagedError(TransferLogError):
    """A line is no event of transfers."""


class TransferLogJobError(TransferLogError):
    """The timeline has no such job, or several jobs, and none was named."""


class SwitchError(ControllerError):
    """Something is wrong with a switch."""

    status = grpc.StatusCode.UNAVAILABLE


class SwitchUnreachableError(SwitchError):
    """Nobody answers at the switch's P4Runtime address."""


class WrongProgramError(SwitchError):
    """The switch runs another program."""

    status = grpc.StatusCode.FAILED_PRECONDITION


class ProgramMissingError(SwitchError):
    """The compiled artefacts of our program are not there."""

    status = grpc.StatusCode.FAILED_PRECONDITION


class SwitchUpdateError(SwitchError):
    """The switch refused a read or a write."""


class ReservedEntryError(SwitchError):
    """An operator's entry is in a table or a range that the controller keeps for itself."""

    status = grpc.StatusCode.PERMISSION_DENIED


class JobError(ControllerError):
    """A job or a worker is refused."""


class InvalidJobError(JobError):
    """The request makes no sense, or workers of one job disagree."""

    status = grpc.StatusCode.INVALID_ARGUMENT


class TransferRefusedError(InvalidJobError):
    """A transfer cannot be scheduled, or a station cannot be where it says."""


class NoRoomError(JobError):
    """The switch has no room for the job, or the controller none for the caller."""

    status = grpc.StatusCode.RESOURCE_EXHAUSTED


class SourceLimitError(NoRoomError):
    """The callers of one address have as many calls, or waiting jobs, as they may."""


class VersionMismatchError(JobError):
    """Wire version or values per packet of host and switch differ."""

    status = grpc.StatusCode.FAILED_PRECONDITION


class StationsDisagreeError(JobError):
    """Workers and servers of one job have other bounds for its transfers."""

    status = grpc.StatusCode.FAILED_PRECONDITION


class WorkersMissingError(JobError):
    """Workers of the job never arrived."""

    status = grpc.StatusCode.DEADLINE_EXCEEDED


class WorkerTakenError(JobError):
    """The worker id belongs to a live worker."""

    status = grpc.StatusCode.ALREADY_EXISTS


class UnknownJobError(JobError):
    """There is no such job, or it has another generation."""

    status = grpc.StatusCode.NOT_FOUND


class TokenError(JobError):
    """The token is missing or wrong."""

    status = grpc.StatusCode.UNAUTHENTICATED


class RoleError(JobError):
    """The token or the secret is not for this."""

    status = grpc.StatusCode.PERMISSION_DENIED


class JobTokenError(JobError):
    """A job's token is missing or wrong, or that of a job that has ended."""

    status = grpc.StatusCode.PERMISSION_DENIED


class WorkerSilentError(JobError):
    """A worker with a stream said nothing for too long."""

    status = grpc.StatusCode.ABORTED


class NoSwitchError(JobError):
    """No switch can serve the job now."""

    status = grpc.StatusCode.UNAVAILABLE


class NoTreeError(JobError):
    """No tree of aggregating switches joins the workers; the text says who and why."""

    status = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(self, text: str, *, workers: tuple[int, ...] = ()) -> None:
        super().__init__(text)
        self.workers = workers
        """Worker ids that no tree can join with the others."""
