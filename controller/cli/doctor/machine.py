# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of this machine: Python packages, C compiler, privileges, interfaces."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from .check import Check, fail, ok, warn

PACKAGES: Final = (
    "numpy", "finsy", "grpcio", "protobuf", "click", "rich", "pyroute2", "matplotlib", "mlxtend",
    "networkx",
)  # fmt: skip
COMPILERS: Final = ("cc", "gcc", "clang")
_CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}
_INSTALL: Final = "run pip install '.[controller]' or 'make deps' in a checkout"


def check_machine(interfaces: Sequence[str]) -> list[Check]:
    """Check what needs neither controller nor switch."""
    return [
        check_packages(),
        check_compiler(),
        check_privileges(),
        *(check_interface(name) for name in ("lo", *interfaces)),
    ]


def check_packages(packages: Sequence[str] = PACKAGES) -> Check:
    """Check the packages (the installer checks the Python version)."""
    python = f"Python {sys.version.split()[0]}"
    versions: list[str] = []
    missing: list[str] = []
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        return fail("python", f"{python}; missing: {', '.join(missing)}", _INSTALL)
    return ok("python", f"{python}, {', '.join(versions)}")


def check_compiler(compilers: Sequence[str] = COMPILERS) -> Check:
    """Check for a C compiler, which softswitch needs."""
    for compiler in compilers:
        path = shutil.which(compiler)
        if path is not None:
            return ok("compiler", path)
    if importlib.util.find_spec("ziglang") is not None:
        return ok("compiler", "zig, from the ziglang package")
    return fail(
        "compiler",
        f"no C compiler ({', '.join(compilers)}) on the PATH; softswitch cannot be built",
        "install gcc (apt install gcc libc6-dev) or run pip install ziglang",
    )


def check_privileges() -> Check:
    """Check for the rights that namespaces and packet sockets need."""
    if os.geteuid() == 0:
        effective = _effective_capabilities()
        missing = [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
        if not missing:
            return ok("privileges", "root with network capabilities")
        return warn(
            "privileges",
            f"root without {', '.join(missing)}: no namespaces, veth or raw transport",
            "start the container with --privileged, or use UDP ports on loopback",
        )
    return warn(
        "privileges",
        "not root: no namespaces, veth or raw transport",
        "use sudo for those; UDP ports on loopback need no rights",
    )


def check_interface(name: str) -> Check:
    """Check that a network interface exists and is up."""
    folder = Path("/sys/class/net") / name
    what = f"interface {name}"
    if not folder.exists():
        return fail(
            what, "does not exist here", "check the name; 'switchfold testbed up' makes veth links"
        )
    try:
        is_up = bool(int((folder / "flags").read_text("ascii"), 16) & 1)
    except (OSError, ValueError) as exc:
        return warn(what, f"state unreadable: {exc}", "look at 'ip link'")
    if not is_up:
        return fail(what, "is down", f"run ip link set {name} up")
    return ok(what, "is up")


def _effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0
