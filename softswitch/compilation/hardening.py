# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags that make an error in the C code end the process rather than serve an attacker.

setup.py compiles the host library with the same ones. Each is known to every gcc and clang that has
C11. None of them warns: _FORTIFY_SOURCE=3 would, with compilers older than gcc 12, and a compiler
that has a _FORTIFY_SOURCE of its own would warn of a second one, so -U comes first.
"""

from __future__ import annotations

from typing import Final

HARDENING: Final = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")
"""Compiling: a canary above the arrays of a function, and calls of libc that check sizes."""
LINKING: Final = ("-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack")
"""Linking: addresses of functions are resolved at loading, then read-only; no code on the stack."""
