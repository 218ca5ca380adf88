# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A P4 switch that compiles to native code: BMv2's JSON in, packets through, P4Runtime on top."""

from softswitch.compiler import CompiledProgram, compile_program

__all__ = ["CompiledProgram", "compile_program"]
