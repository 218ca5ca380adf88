# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A P4 switch that compiles to native code: BMv2's JSON in, packets through, P4Runtime on top."""

from typing import TYPE_CHECKING, Any

from .compilation.compiler import CompiledProgram, compile_program
from .errors import SoftswitchError
from .switch.impairments import Impairments
from .switch.switch import Switch
from .switch.table_entries import Match

if TYPE_CHECKING:
    from .p4runtime.service.serve import serve

__all__ = [
    "CompiledProgram",
    "Impairments",
    "Match",
    "SoftswitchError",
    "Switch",
    "compile_program",
    "serve",
]


def __getattr__(name: str) -> Any:
    # The server brings grpc along, which a switch without P4Runtime does not need.
    if name == "serve":
        from .p4runtime.service.serve import serve  # noqa: PLC0415

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
