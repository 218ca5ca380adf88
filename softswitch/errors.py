# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the embedded switch.

SoftswitchError
 +-- PortError                     a port cannot be opened, used or found
 |    +-- PortSpecError (ValueError)
 |    +-- PortExistsError
 |    +-- PortNotFoundError
 |    +-- PortInUseError           another socket or switch holds the address or interface
 |    +-- PortPermissionError      packet sockets need root or CAP_NET_RAW
 |    +-- InterfaceNotFoundError
 |    +-- CaptureError             the port's capture file cannot be opened
 +-- SwitchStateError              the call does not fit a running, stopped or closed switch
 |    +-- NoProgramError           no program is loaded
 +-- ProgramError                  the program cannot be loaded; holds all problems found
 |    +-- UnsupportedError         the program is valid, but uses unsupported features
 +-- CompilerNotFoundError         no C compiler on this machine
 +-- CompileError                  the C compiler failed on generated code
 +-- CacheError                    the folder of compiled programs cannot be used
 +-- ControlError                  a control operation was refused by the pipeline
      +-- EntryNotFoundError
      +-- EntryExistsError
      +-- TableFullError
      +-- InUseError               something still refers to the object
      +-- BadArgumentError (ValueError)
      +-- UnsupportedControlError
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


class SoftswitchError(Exception):
    """Base of every error of this package."""


class PortError(SoftswitchError):
    """A port cannot be opened, used or found."""


class PortSpecError(PortError, ValueError):
    """The port's description is not understood."""


class PortExistsError(PortError):
    """The switch has a port of this number already."""


class PortNotFoundError(PortError):
    """The switch has no port of this number."""


class PortInUseError(PortError):
    """The address or interface is held by another socket or switch."""


class PortPermissionError(PortError):
    """The process may not open a packet socket."""


class InterfaceNotFoundError(PortError):
    """There is no network interface of this name in the switch's namespace."""


class CaptureError(PortError):
    """The port's capture file cannot be opened."""


class SwitchStateError(SoftswitchError):
    """The call does not fit the switch's state (running, stopped, closed)."""


class NoProgramError(SwitchStateError):
    """The call needs a loaded program."""


class ControlError(SoftswitchError):
    """A control operation was refused by the pipeline."""


class EntryNotFoundError(ControlError):
    """There is no such table entry, group or array element."""


class EntryExistsError(ControlError):
    """The table, group or profile has this entry already."""


class TableFullError(ControlError):
    """The table holds as many entries as its size allows."""


class InUseError(ControlError):
    """Something still refers to the object."""


class BadArgumentError(ControlError, ValueError):
    """A position, width or value does not fit the program."""


class UnsupportedControlError(ControlError):
    """The program's object does not support this operation."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One reason why a program cannot be loaded."""

    what: str
    """The construct, in the words of the JSON or the P4 program."""
    where: str
    """P4 source line if the JSON has it, otherwise the place in the JSON."""
    why: str
    remedy: str
    is_unsupported: bool = True
    """False when the JSON itself is wrong."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.why}. {self.remedy}."


class ProgramError(SoftswitchError):
    """The program cannot be loaded; `problems` holds every reason found."""

    def __init__(self, program: str, problems: Sequence[Problem]) -> None:
        self.program = program
        self.problems = tuple(problems)
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{program} cannot be loaded, {len(self.problems)} problem(s):{lines}")


class UnsupportedError(ProgramError):
    """A valid program uses features that this switch does not support."""


class CompilerNotFoundError(SoftswitchError):
    """No C compiler was found on this machine."""


class CompileError(SoftswitchError):
    """The C compiler failed on generated code."""


class CacheError(SoftswitchError):
    """The folder of compiled programs cannot be written, or its disk is full."""


MALFORMED_JSON_ERRORS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Exceptions of code that expects JSON from p4c and gets something else."""
