# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `softswitch run`, declared, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import click

from ..compilation.compiler import CompiledProgram, compile_program, compile_traced
from ..switch.impairments import Impairments, PortDirection, parse_impairments
from ..switch.port_spec import parse_port_spec
from ..switch.switch import MAX_PRIORITY_QUEUES
from .options import PROGRAM_FILE, argument, option

_PATH = click.Path(path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_PORT = click.IntRange(0, 510)


def _parse_ports(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[int, str], ...]:
    """Read NUMBER=SPEC of each `--port`."""
    del context, parameter
    ports: dict[int, str] = {}
    for text in values:
        number, _, spec = text.partition("=")
        if not number.isdigit() or not spec:
            number, _, interface = text.partition("@")
            meant = f"{number}=interface:{interface}" if interface else "1=interface:eno1"
            raise click.BadParameter(f"{text!r} is not NUMBER=SPEC, e.g. {meant}")
        if int(number) in ports:
            raise click.BadParameter(f"port {number} is given twice")
        try:
            parse_port_spec(spec)
        except ValueError as exc:
            raise click.BadParameter(str(exc)) from exc
        ports[int(number)] = spec
    return tuple(ports.items())


def _parse_impair(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[int, PortDirection, Impairments], ...]:
    """Read each `--impair`."""
    del context, parameter
    try:
        return tuple(parse_impairments(text) for text in values)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


def _parse_grpc(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse an invalid address before anything starts."""
    del context, parameter
    host, _, port = value.rpartition(":")
    if not value.startswith("unix") and not (host and port.isdigit() and int(port) < 65536):
        raise click.BadParameter(f"{value!r} is not HOST:PORT or unix:PATH, e.g. 0.0.0.0:9559")
    return value


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `softswitch run`; each field declares its option.

    Raises click.UsageError for options that do not go together.
    """

    program: Annotated[Path | None, argument(type=PROGRAM_FILE, required=False)]
    p4info: Annotated[
        Path | None, option("--p4info", type=PROGRAM_FILE, help="P4Info text file of the program.")
    ]
    ports: Annotated[
        tuple[tuple[int, str], ...],
        option("--port", multiple=True, callback=_parse_ports, metavar="NUMBER=SPEC"),
    ]
    impairments: Annotated[
        tuple[tuple[int, PortDirection, Impairments], ...],
        option(
            "--impair",
            multiple=True,
            callback=_parse_impair,
            metavar="PORT:in|out:NAME=VALUE,...",
            help="Loss, delay and so on of a port's link, in one direction.",
        ),
    ]
    grpc_address: Annotated[
        str,
        option(
            "--grpc",
            default="127.0.0.1:9559",
            show_default=True,
            callback=_parse_grpc,
            metavar="HOST:PORT|unix:PATH",
        ),
    ]
    credentials: Annotated[
        Path | None,
        option(
            "--credentials",
            type=_PATH,
            help="Folder of 'switchfold certs issue --role switch': P4Runtime over TLS, for "
            "controllers and operators.",
        ),
    ]
    insecure: Annotated[
        bool,
        option(
            "--insecure",
            is_flag=True,
            help="Without --credentials: P4Runtime over TCP without TLS, for whoever reaches it "
            "(SWITCHFOLD_INSECURE=1).",
        ),
    ]
    device_id: Annotated[
        int, option("--device-id", default=1, show_default=True, type=click.IntRange(min=1))
    ]
    cpu_port: Annotated[int, option("--cpu-port", default=255, show_default=True, type=_PORT)]
    drop_port: Annotated[
        int,
        option(
            "--drop-port",
            default=511,
            show_default=True,
            type=click.IntRange(0, 511),
            help="The egress_spec that drops.",
        ),
    ]
    priority_queues: Annotated[
        int,
        option(
            "--priority-queues",
            default=1,
            show_default=True,
            type=click.IntRange(1, MAX_PRIORITY_QUEUES),
            help="Queues of a port, where packets wait for its rate: the highest "
            "standard_metadata.priority leaves first, one that has no queue is dropped.",
        ),
    ]
    frame_by_frame: Annotated[
        bool,
        option(
            "--frame-by-frame", is_flag=True, help="Send no super-frames: each frame by itself."
        ),
    ]
    log_level: Annotated[
        str,
        option(
            "--log-level",
            default="info",
            show_default=True,
            type=click.Choice(("debug", "info", "warning", "error")),
            help="Level of messages on stderr; debug includes the program's log_msg.",
        ),
    ]
    log_format: Annotated[
        str | None,
        option(
            "--log-format",
            type=click.Choice(("text", "json")),
            help="Lines of the log on stderr.  [default: SWITCHFOLD_LOG_FORMAT, else text]",
        ),
    ]
    metrics: Annotated[
        str | None,
        option(
            "--metrics",
            metavar="[ADDRESS:]PORT",
            help="Serve metrics for Prometheus here, at 127.0.0.1 without an address; 0 takes any "
            "port, which the log names.",
        ),
    ]
    pcap_dir: Annotated[
        Path | None, option("--pcap-dir", type=_FOLDER, help="Write a capture per port here.")
    ]
    entries: Annotated[
        Path | None,
        option("--entries", type=PROGRAM_FILE, help="Table entries and groups to start with."),
    ]
    live: Annotated[
        bool,
        option("--live", is_flag=True, help="Show rates of ports, tables and entries; q ends."),
    ]
    live_file: Annotated[
        Path | None,
        option(
            "--live-file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write what --live shows into this file once a second.",
        ),
    ]
    trace_target: Annotated[
        str | None, option("--trace", metavar="FILE|-", help="Write each packet's steps.")
    ]
    trace_port: Annotated[
        int | None, option("--trace-port", type=_PORT, help="Trace packets of this port only.")
    ]
    trace_count: Annotated[
        int | None,
        option("--trace-count", type=click.IntRange(min=1), help="Trace the first packets only."),
    ]
    ready_fd: Annotated[
        int | None,
        option("--ready-fd", type=int, help="Descriptor that gets `ready` once all is up."),
    ]

    def __post_init__(self) -> None:
        if (self.program is None) != (self.p4info is None):
            raise click.UsageError("PROGRAM and --p4info go together: give both or none")
        if self.entries is not None and self.program is None:
            raise click.UsageError("--entries needs PROGRAM and --p4info")
        if self.live and self.live_file is not None:
            raise click.UsageError("--live and --live-file show the same: give only one")
        if (self.live or self.live_file) and self.trace_target is not None:
            raise click.UsageError("--live and --trace need different builds: give only one")
        numbers = {number for number, _ in self.ports}
        missing = {number for number, _, _ in self.impairments} - numbers
        if missing:
            names = ", ".join(str(number) for number in sorted(missing))
            raise click.UsageError(f"--impair names ports that no --port opens: {names}")
        if self.cpu_port in numbers:
            raise click.UsageError(
                f"port {self.cpu_port} is the CPU port: open another number, "
                "or choose another --cpu-port"
            )
        if self.ready_fd is not None and not Path(f"/proc/self/fd/{self.ready_fd}").exists():
            raise click.UsageError(f"--ready-fd {self.ready_fd}: no such file descriptor is open")

    def describe(self) -> str:
        """Name every option that has a value."""
        words = {item.name: getattr(self, item.name) for item in fields(self)}
        words["ports"] = " ".join(f"{number}={spec}" for number, spec in self.ports)
        return ", ".join(
            f"{name}={value}" for name, value in words.items() if value not in (None, (), "", False)
        )

    def compile(self, path: Path) -> CompiledProgram:
        """Compile a program as the options need it: traced, with table counts, or plain."""
        if self.trace_target is not None:
            return compile_traced(path)
        return compile_program(path, has_counts=self.live or self.live_file is not None)
