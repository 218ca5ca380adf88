# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the data path's C library; everything else about the package is in pyproject.toml.

hostlib/native/library.py loads the library through ctypes. It does not need Python's headers, and
one build serves every Python.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, PlatformError

NATIVE = Path("src/switchfold/hostlib/native")
COMPILERS = ("cc", "gcc", "clang")
INSTALL = "on Debian or Ubuntu: apt-get install gcc libc6-dev"
FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
)
HARDENING = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")
LINKING = ("-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack")
"""As softswitch/compilation/hardening.py has them, with its reasons."""
IS_SANITIZED = "-fsanitize" in os.environ.get("CFLAGS", "")
"""Sanitizers look into memcpy, but not into the call by which _FORTIFY_SOURCE replaces it."""


class BuildLibrary(build_ext):
    """Compiles with the compiler that built Python, or another one of this machine."""

    def finalize_options(self) -> None:
        """Compile everything: nothing else notices other flags."""
        super().finalize_options()
        self.force = True

    def build_extensions(self) -> None:
        """Raise PlatformError without a compiler, CompileError if it fails."""
        self._choose_compiler()
        try:
            super().build_extensions()
        except CompileError as error:
            raise CompileError(
                f"the C compiler failed on {NATIVE}; its messages are above. If it found no"
                f" stdint.h or linux/udp.h, install the headers of the C library ({INSTALL})"
            ) from error

    def _choose_compiler(self) -> None:
        of_python = self.compiler.compiler_so[0]
        if shutil.which(of_python):
            return
        found = next(filter(None, map(shutil.which, COMPILERS)), None)
        if found is None:
            names = ", ".join(dict.fromkeys((of_python, *COMPILERS)))
            raise PlatformError(
                f"no C compiler: looked for {names} on the PATH. The data path is a C library,"
                f" which is compiled now. Install a compiler ({INSTALL}), or name one in the"
                " variable CC"
            )
        self.compiler.set_executables(
            compiler_so=f"{shlex.quote(found)} -fPIC", linker_so=f"{shlex.quote(found)} -shared"
        )


setup(
    ext_modules=[
        Extension(
            "switchfold.hostlib.native._native",
            sources=sorted(str(path) for path in NATIVE.rglob("*.c")),
            depends=sorted(str(path) for path in NATIVE.rglob("*.h")),
            extra_compile_args=[*FLAGS, *(() if IS_SANITIZED else HARDENING)],
            extra_link_args=list(LINKING),
            libraries=["m"],
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildLibrary},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
