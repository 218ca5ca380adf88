# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One run of the model checker."""

from __future__ import annotations

from dataclasses import dataclass

ONE_SWITCH = "slot_protocol.pml"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One run of the model checker."""

    name: str
    shows: str
    defines: dict[str, int]
    model: str = ONE_SWITCH
    has_error: bool = False
    """Whether the checker must find an error."""
    is_large: bool = False
    """Whether the search takes longer than an optimising compiler."""
    is_long: bool = False
    """Whether the search takes so long that the tests leave it out."""

    @property
    def is_about_progress(self) -> bool:
        """Whether the checker looks for rounds that never end, under weak fairness."""
        return "LIVENESS" in self.defines
