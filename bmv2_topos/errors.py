# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a testbed.

TestbedError
├── PrivilegeError          the mode needs root
├── NameTakenError          a namespace or interface of this name exists and is not ours
├── KernelError             the kernel refused a network operation
│   └── ShaperMissingError  the kernel has neither tbf nor htb
├── ImpairmentError         a link cannot be impaired, or what impaired it has ended
├── LinkRateError           the rate of a link cannot be changed, or a trace of rates is none
├── OwnProgramError         a user's own program or its entries do not fit the switches
├── TargetMissingError      the switch program or its compiled P4 is not on this machine
├── PortTakenError          a UDP port that was asked for is in use
├── TestbedBusyError        the testbed belongs to another live process, or is up already
├── TestbedNotFoundError    no testbed of this name is recorded
├── RecordVersionError      a testbed was recorded by another version
├── ProcessFailedError      a process of the testbed ended when it should not have
└── ProcessTimeoutError     a process did not become ready, or did not end, in time
"""

from __future__ import annotations


class TestbedError(Exception):
    """Base of every error that the testbed raises on purpose."""

    __test__ = False


class RecordVersionError(TestbedError):
    """A testbed was recorded by another version."""


class PrivilegeError(TestbedError):
    """The mode needs root."""


class NameTakenError(TestbedError):
    """A namespace or interface of this name exists and this testbed did not make it."""


class KernelError(TestbedError):
    """The kernel refused a network operation."""


class ShaperMissingError(KernelError):
    """The kernel offers neither tbf nor htb, so that link rates cannot be set."""


class ImpairmentError(TestbedError):
    """A link cannot be impaired as asked, and is as it was; or what impaired it has ended."""


class LinkRateError(TestbedError):
    """The rate of a link cannot be changed as asked, or a file is no trace of rates."""


class OwnProgramError(TestbedError):
    """A user's own program, or a file of entries for it, is broken or refused by a switch."""


class TargetMissingError(TestbedError):
    """The switch program, or the compiled P4 that it should run, is not on this machine."""


class PortTakenError(TestbedError):
    """A UDP port that was asked for is in use by another process."""


class TestbedBusyError(TestbedError):
    """The testbed belongs to another live process, or is up already."""


class TestbedNotFoundError(TestbedError):
    """No testbed of this name is recorded."""


class ProcessFailedError(TestbedError):
    """A process of the testbed ended when it should not have; the text ends with its log's end."""


class ProcessTimeoutError(TestbedError):
    """A process did not become ready, or did not end, within its deadline."""
