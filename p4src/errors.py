# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of compiling the P4 programs.

P4srcError
├── CompilerNotFoundError   no p4c-bm2-ss on the PATH
├── CompilationError        p4c refused a program, or warned about it
├── ProgramFilesError       a folder holds no compiled program, or is in the way
└── StaleArtefactError      artefacts do not belong to the sources
"""

from __future__ import annotations


class P4srcError(Exception):
    """Base of all errors of this package."""


class CompilerNotFoundError(P4srcError):
    """There is no p4c-bm2-ss to call."""


class CompilationError(P4srcError):
    """p4c refused a program, or warned about it."""


class ProgramFilesError(P4srcError):
    """A folder holds no compiled program, or cannot take one."""


class StaleArtefactError(P4srcError):
    """Artefacts do not belong to the sources."""
