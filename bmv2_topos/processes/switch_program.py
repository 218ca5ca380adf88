# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the switches of a testbed run: a variant of the aggregation program, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...p4src.freshness import stale_program, stale_variant
from ..errors import TargetMissingError
from . import daemons
from .own_program import OwnProgram


@dataclass(frozen=True, kw_only=True)
class SwitchProgram:
    """One program for all switches."""

    variant: daemons.Variant
    own: OwnProgram | None = None
    """Instead of the variant."""

    @property
    def p4info(self) -> Path:
        """The P4Info's file; raises TargetMissingError."""
        return self.own.files.p4info if self.own else daemons.program_files(self.variant)[1]

    @property
    def folder(self) -> Path | None:
        """Where a controller finds it; None: in the package."""
        return self.own.files.folder if self.own else None

    def require_files(self) -> None:
        """Raise TargetMissingError if a compiled file is missing."""
        for path in (self.p4info, *((self.own.files.json,) if self.own else ())):
            if not path.is_file():
                raise TargetMissingError(f"{path} is missing: compile the program again")

    def is_aggregation(self) -> bool:
        """Tell whether a controller drives it; OwnProgramError where the P4Info is broken."""
        return self.own is None or self.own.is_aggregation()

    def stale(self) -> str:
        """Return why it is not what its P4 sources say, "" if it is."""
        return stale_program(self.own.files.folder) if self.own else stale_variant(self.variant)
