# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of this machine: Python packages, C compiler, privileges, interfaces."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from ....p4src.artefacts import VARIANTS
from ....p4src.freshness import HOW_TO_COMPILE, stale_variant
from .check import Check, fail, ok, warn

PACKAGES: Final = (
    "numpy", "finsy", "grpcio", "protobuf", "click", "rich", "pyroute2", "matplotlib", "mlxtend",
    "networkx", "prometheus-client",
)  # fmt: skip
COMPILERS: Final = ("cc", "gcc", "clang")
_CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}
_OFFLOADS: Final = (
    # What it is, family, type, level, option, value; of linux/udp.h and linux/if_packet.h.
    ("UDP_SEGMENT (Linux 4.18)", socket.AF_INET, socket.SOCK_DGRAM, 17, 103, 1448),
    ("UDP_GRO (Linux 5.0)", socket.AF_INET, socket.SOCK_DGRAM, 17, 104, 1),
    ("PACKET_VNET_HDR", socket.AF_PACKET, socket.SOCK_RAW, 263, 15, 1),
)
_INSTALL: Final = "run pip install '.[controller]' or 'make deps' in a checkout"


def check_machine(interfaces: Sequence[str]) -> list[Check]:
    """Check what needs neither controller nor switch."""
    return [
        check_packages(),
        check_compiler(),
        check_artefacts(),
        check_privileges(),
        check_offloads(),
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


def check_artefacts() -> Check:
    """Check that the compiled programs of this installation belong to its P4 sources."""
    problems = [problem for variant in VARIANTS if (problem := stale_variant(variant))]
    if problems:
        remedy = f"{HOW_TO_COMPILE}; or restore the sources, and 'switchfold p4 check' is content"
        return fail("P4 programs", "; ".join(problems), remedy)
    return ok("P4 programs", "compiled from the sources that are here")


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


def check_offloads() -> Check:
    """Check what the kernel can do with many datagrams at once; without, each costs its calls."""
    found: list[str] = []
    missing: list[str] = []
    for name, family, kind, level, option, value in _OFFLOADS:
        try:
            with socket.socket(family, kind) as sock:
                sock.setsockopt(level, option, value)
            found.append(name)
        except PermissionError:
            found.append(f"{name} unknown without CAP_NET_RAW")
        except OSError:
            missing.append(name)
    if missing:
        return warn(
            "offloads",
            f"this kernel lacks {', '.join(missing)}: packets are sent or received one by one",
            "use a newer kernel where links of 1 Gbit/s and more are to be filled",
        )
    return ok("offloads", ", ".join(found))


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
