# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A P4 switch that compiles BMv2's JSON to native code and serves P4Runtime."""

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
    # The server imports grpc, which a switch without P4Runtime does not need.
    if name == "serve":
        from .p4runtime.service.serve import serve  # noqa: PLC0415

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
