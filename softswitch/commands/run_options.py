# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `softswitch run`, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import click

from ..compilation.compiler import CompiledProgram, compile_program, compile_traced
from ..switch.impairments import Direction, Impairments, parse_impairments
from ..switch.port_spec import parse_port_spec


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What `softswitch run` was asked for."""

    program: Path | None
    p4info: Path | None
    ports: tuple[tuple[int, str], ...]
    impairments: tuple[tuple[int, Direction, Impairments], ...]
    grpc_address: str
    tls_certificate: Path | None
    tls_key: Path | None
    tls_ca: Path | None
    device_id: int
    cpu_port: int
    drop_port: int
    priority_queues: int
    log_level: str
    pcap_dir: Path | None
    entries: Path | None
    live: bool
    trace_target: str | None
    trace_port: int | None
    trace_count: int | None
    ready_fd: int | None

    def describe(self) -> str:
        """Name every option that has a value."""
        words = {item.name: getattr(self, item.name) for item in fields(self)}
        words["ports"] = " ".join(f"{number}={spec}" for number, spec in self.ports)
        return ", ".join(
            f"{name}={value}" for name, value in words.items() if value not in (None, (), "", False)
        )

    def compile(self, path: Path) -> CompiledProgram:
        """Compile a program as the options want it: traced, counting tables, or plain."""
        if self.trace_target is not None:
            return compile_traced(path)
        return compile_program(path, has_counts=self.live)


def parse_ports(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[int, str], ...]:
    """Read NUMBER=SPEC of each `--port`."""
    del context, parameter
    ports: dict[int, str] = {}
    for text in values:
        number, _, spec = text.partition("=")
        if not number.isdigit() or not spec:
            number, _, interface = text.partition("@")
            meant = f"{number}=veth:{interface}" if interface else "1=veth:s1-eth1"
            raise click.BadParameter(f"{text!r} is not NUMBER=SPEC, e.g. {meant}")
        if int(number) in ports:
            raise click.BadParameter(f"port {number} is given twice")
        try:
            parse_port_spec(spec)
        except ValueError as exc:
            raise click.BadParameter(str(exc)) from exc
        ports[int(number)] = spec
    return tuple(ports.items())


def parse_impair(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[int, Direction, Impairments], ...]:
    """Read each `--impair`."""
    del context, parameter
    try:
        return tuple(parse_impairments(text) for text in values)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


def parse_grpc(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse what is no address before anything starts."""
    del context, parameter
    host, _, port = value.rpartition(":")
    if not value.startswith("unix") and not (host and port.isdigit() and int(port) < 65536):
        raise click.BadParameter(f"{value!r} is not HOST:PORT or unix:PATH, e.g. 0.0.0.0:9559")
    return value
