# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that a testbed runs: a switch of either target, and the controller with its file."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...hostlib.credentials import Role
from ...p4src.own_program import ProgramFiles
from ..config import source_root
from ..errors import TargetMissingError
from ..network.links import QUEUE_BYTES
from ..topology.topology import MTU_BYTES, Link, Switch, Topology
from .certificates import bmv2_options, programming_folder, role_folder, switch_folder
from .processes import READY_FD

Target = Literal["softswitch", "bmv2"]
Mode = Literal["veth", "udp"]
Variant = Literal["wide", "narrow"]
Shaping = Literal["links", "switch"]
"""What limits rates: the kernel on each link, or the switch on each port. The switch then sees its
queues (target softswitch)."""

CPU_PORT = 255
NUM_PRIORITIES = 8
"""Queues of each port of a switch: as many as v1model's `priority` of 3 bits can name."""


@dataclass(frozen=True, kw_only=True)
class SwitchSoftware:
    """What runs as a switch."""

    target: Target = "softswitch"
    variant: Variant = "wide"
    """Of the P4 program."""
    files: ProgramFiles | None = None
    """A user's own program instead of a variant."""
    entries: Path | None = None
    """What a softswitch starts with."""
    options: Sequence[str] = ()
    """More words for the command line."""


def program_files(variant: Variant) -> tuple[Path, Path]:
    """Return the compiled program (BMv2 JSON) and its P4Info; raises TargetMissingError."""
    name = f"switchfold_{variant}"
    folder = source_root() / "switchfold" / "p4src" / "build" / name
    program, p4info = folder / f"{name}.json", folder / f"{name}.p4info.txtpb"
    for path in (program, p4info):
        if not path.exists():
            raise TargetMissingError(
                f"{path} is missing: restore the committed artefacts or rebuild them with `make p4`"
            )
    return program, p4info


def switch_address(run_directory: Path, switch: Switch) -> str:
    """Return the gRPC address of a switch's P4Runtime server, from every namespace."""
    return f"unix:{run_directory}/{switch.name}.sock"


def controller_address(run_directory: Path) -> str:
    """Return the gRPC address of the session and operator APIs, from every namespace."""
    return f"unix:{run_directory}/controller.sock"


def switch_command(
    software: SwitchSoftware,
    switch: Switch,
    *,
    port_specs: dict[int, str],
    grpc_address: str,
    run_directory: Path,
) -> list[str]:
    """Return the command of a switch whose ports have these specs (`veth:IFNAME` or `udp:...`).

    Its certificate is in `run_directory`.
    """
    if software.files is None:
        program, p4info = program_files(software.variant)
    else:
        program, p4info = software.files.json, software.files.p4info
    credentials = switch_folder(run_directory, switch.name)
    if software.target == "softswitch":
        ports = [word for port, spec in port_specs.items() for word in ("--port", f"{port}={spec}")]
        return [
            *(sys.executable, "-m", "switchfold.softswitch", "run", str(program)),
            *("--p4info", str(p4info)),
            *ports,
            *("--grpc", grpc_address, "--device-id", str(switch.device_id)),
            *("--cpu-port", str(CPU_PORT), "--ready-fd", READY_FD),
            *("--priority-queues", str(NUM_PRIORITIES), "--credentials", str(credentials)),
            *(("--entries", str(software.entries)) if software.entries else ()),
            *software.options,
        ]
    interfaces = [
        word
        for port, spec in port_specs.items()
        for word in ("-i", f"{port}@{spec.removeprefix('veth:')}")
    ]
    notifications = f"ipc://{run_directory}/{switch.name}-notifications.ipc"
    return [
        *(bmv2_path(), "--no-p4", "--device-id", str(switch.device_id)),
        *(("--notifications-addr", notifications) if _has_notifications() else ()),
        *interfaces,
        *software.options,
        *("--", "--grpc-server-addr", grpc_address, "--cpu-port", str(CPU_PORT)),
        *("--priority-queues", str(NUM_PRIORITIES)),
        *("--grpc-server-ssl", "--grpc-server-with-client-auth"),
        *itertools.chain.from_iterable(bmv2_options(credentials).items()),
    ]


def port_specs(
    topology: Topology, switch: Switch, *, udp_ports: Mapping[str, tuple[int, int]]
) -> dict[int, str]:
    """Return the spec of each port of a switch: an interface, or loopback ports if `udp_ports`."""
    specs: dict[int, str] = {}
    for end in topology.ports_of(switch):
        specs[end.port] = f"veth:{end.interface}"
        if udp_ports:
            ours, theirs = udp_ports[end.link.name]
            if end.is_b:
                ours, theirs = theirs, ours
            specs[end.port] = f"udp:127.0.0.1:{ours}-127.0.0.1:{theirs}"
    return specs


def link_options(
    topology: Topology, switch: Switch, *, mode: Mode, shaping: Shaping, impairments: str
) -> list[str]:
    """Return the options by which softswitch itself shapes and impairs links.

    With shaping "switch" it limits what it sends, with queues of as many bytes as those of links.
    In mode udp it also limits what its hosts send; in mode veth their own interfaces do that.
    Impairments hit each direction of each link once: where a switch receives, and towards hosts.
    """
    options: list[str] = []
    for end in topology.ports_of(switch):
        is_to_host = isinstance(end.link, Link)
        for direction in ("in", "out"):
            parts: list[str] = []
            is_shaped = direction == "out" or (is_to_host and mode == "udp")
            if shaping == "switch" and is_shaped and end.link.rate_bits_per_s is not None:
                parts += [f"rate_bits_per_s={end.link.rate_bits_per_s}"]
                parts += [f"queue_packets={QUEUE_BYTES // (MTU_BYTES + 14)}"]
            if impairments and (direction == "in" or is_to_host):
                parts += [impairments]
                if "seed=" not in impairments:  # else every switch would lose the same packets
                    parts += [f"seed={switch.device_id}"]
            if parts:
                options += ["--impair", f"{end.port}:{direction}:{','.join(parts)}"]
    return options


def bmv2_path() -> str:
    """Return the path of simple_switch_grpc; raises TargetMissingError."""
    found = shutil.which("simple_switch_grpc")
    if found is None:
        raise TargetMissingError(
            "target bmv2 needs simple_switch_grpc on the PATH: install BMv2, use the compose "
            "file's bmv2 service, or choose --target softswitch"
        )
    return found


def _has_notifications() -> bool:
    """Tell whether this BMv2 has a notification socket, whose default path two switches share."""
    shown = subprocess.run(
        [bmv2_path(), "--help"], capture_output=True, text=True, check=False, timeout=30
    )
    return "--notifications-addr" in shown.stdout + shown.stderr


def accepts(address: str) -> bool:
    """Tell whether a process listens on a `unix:` address."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(address.removeprefix("unix:")) == 0


def controller_command(config: Path) -> list[str]:
    """Return the command of the controller."""
    return [
        *(sys.executable, "-m", "switchfold.controller", "controller", "run"),
        *("--config", str(config), "--ready-fd", READY_FD),
    ]


def write_controller_config(
    path: Path,
    topology: Topology,
    *,
    listen: str,
    switch_addresses: dict[str, str],
    variant: Variant,
    program_dir: Path | None = None,
) -> None:
    """Write the controller's TOML file for this topology.

    Its database and the certificates lie beside it. `program_dir` has a program of the user's own.
    """
    folder = path.parent
    lines = [
        f"listen = {_quote(listen)}",
        f"database = {_quote(str(path.parent / 'controller.sqlite3'))}",
        f"variant = {_quote(variant)}",
        f"credentials = {_quote(str(role_folder(folder, Role.CONTROLLER)))}",
        *([f"program_dir = {_quote(str(program_dir))}"] if program_dir else []),
    ]
    for switch in topology.switches:
        lines += [
            "",
            "[[switch]]",
            f"name = {_quote(switch.name)}",
            f"address = {_quote(switch_addresses[switch.name])}",
            f"device_id = {switch.device_id}",
            f"service_address = {_quote(switch.address)}",
            f"service_mac = {_quote(switch.mac)}",
            f"priority_queues = {NUM_PRIORITIES}",
            f"credentials = {_quote(str(programming_folder(folder)))}",
        ]
        for link in topology.links_of(switch):
            host = next(host for host in topology.hosts if host.name == link.host)
            lines += [
                "",
                "[[switch.host]]",
                f"name = {_quote(host.name)}",
                f"port = {link.port}",
                f"address = {_quote(host.address)}",
                f"mac = {_quote(host.mac)}",
                *_rate_line(link.rate_bits_per_s),
            ]
    for link in topology.switch_links:
        lines += [
            "",
            "[[link]]",
            f"a = {_quote(link.a)}",
            f"a_port = {link.a_port}",
            f"b = {_quote(link.b)}",
            f"b_port = {link.b_port}",
            *_rate_line(link.rate_bits_per_s),
        ]
    path.write_text("\n".join(lines) + "\n")


def _rate_line(rate_bits_per_s: int | None) -> list[str]:
    return [] if rate_bits_per_s is None else [f"rate_bits_per_s = {rate_bits_per_s}"]


def _quote(text: str) -> str:
    return json.dumps(text)  # a JSON string is a TOML basic string
