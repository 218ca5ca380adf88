# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch run`: a switch with ports and a P4Runtime server."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..compilation.compiler import CompiledProgram
from ..compilation.runtime_library import build_runtime
from ..switch.impairments import Direction, Impairments
from ..switch.port_watch import PortWatch
from ..switch.switch import Switch
from .options import PROGRAM_FILE, errors_in_words, writable
from .run_options import RunOptions, parse_grpc, parse_impair, parse_ports
from .running_trace import RunningTrace
from .stop_signal import stop_signal

if TYPE_CHECKING:
    from ..p4runtime.service.server import P4RuntimeServer

logger = logging.getLogger(__name__)
_program_logger = logging.getLogger("switchfold.softswitch.program")
_PATH = click.Path(path_type=Path)
_RUN_EXAMPLE = """\b
Examples:
  softswitch run --port 1=udp:127.0.0.1:5001 --port 2=udp:127.0.0.1:5002 --grpc unix:/tmp/s1.sock
  softswitch run switchfold_wide.json --p4info switchfold_wide.p4info.txtpb \\
    --port 1=veth:s1-eth1 --port 2=veth:s1-eth2 --grpc 127.0.0.1:9559 \\
    --impair 1:in:loss=0.05,reordering=0.05,reordering_delay_s=0.02,seed=7
  softswitch run router.json --p4info router.p4info.txtpb --entries entries.txt --live \\
    --port 1=veth:s1-eth1 --port 2=veth:s1-eth2
  softswitch run router.json --p4info router.p4info.txtpb --trace - --trace-port 1 \\
    --port 1=veth:s1-eth1 --port 2=veth:s1-eth2

\b
Ports: veth:IFNAME, udp:HOST:PORT, udp:HOST:PORT-PEERHOST:PEERPORT, mem (in the process only).
Exit codes: 0 stopped by a signal, 1 an error, 2 wrong usage.
"""


@click.command(epilog=_RUN_EXAMPLE)
@click.argument("program", type=PROGRAM_FILE, required=False)
@click.option("--p4info", type=PROGRAM_FILE, help="P4Info text file of the program.")
@click.option("--port", "ports", multiple=True, callback=parse_ports, metavar="NUMBER=SPEC")
@click.option(
    "--impair",
    "impairments",
    multiple=True,
    callback=parse_impair,
    metavar="PORT:in|out:NAME=VALUE,...",
    help="What a port's link does to packets.",
)
@click.option(
    "--grpc",
    "grpc_address",
    default="127.0.0.1:9559",
    show_default=True,
    callback=parse_grpc,
    metavar="HOST:PORT|unix:PATH",
)
@click.option("--grpc-tls-cert", "tls_certificate", type=_PATH, help="PEM; P4Runtime over TLS.")
@click.option("--grpc-tls-key", "tls_key", type=_PATH, help="PEM, the certificate's private key.")
@click.option("--grpc-tls-ca", "tls_ca", type=_PATH, help="PEM; clients must show a certificate.")
@click.option("--device-id", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--cpu-port", default=255, show_default=True, type=click.IntRange(0, 510))
@click.option(
    "--drop-port",
    default=511,
    show_default=True,
    type=click.IntRange(0, 511),
    help="The egress_spec that drops.",
)
@click.option(
    "--priority-queues",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Queues of a port; a standard_metadata.priority beyond them drops.",
)
@click.option(
    "--log-level",
    default="info",
    show_default=True,
    type=click.Choice(("debug", "info", "warning", "error")),
    help="What goes to stderr; debug brings the program's log_msg.",
)
@click.option(
    "--pcap-dir", type=click.Path(file_okay=False, path_type=Path), help="One capture per port."
)
@click.option("--entries", type=PROGRAM_FILE, help="Table entries and groups to start with.")
@click.option("--live", is_flag=True, help="Show rates of ports, tables and entries; q ends.")
@click.option("--trace", "trace_target", metavar="FILE|-", help="Write what packets go through.")
@click.option("--trace-port", type=click.IntRange(0, 510), help="Trace packets of this port only.")
@click.option("--trace-count", type=click.IntRange(min=1), help="Trace the first packets only.")
@click.option("--ready-fd", type=int, help="Write `ready` and a newline here once all is up.")
def run(  # noqa: PLR0917 - click passes options by name
    program: Path | None,
    p4info: Path | None,
    ports: tuple[tuple[int, str], ...],
    impairments: tuple[tuple[int, Direction, Impairments], ...],
    grpc_address: str,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    device_id: int,
    cpu_port: int,
    drop_port: int,
    priority_queues: int,
    log_level: str,
    pcap_dir: Path | None,
    entries: Path | None,
    live: bool,
    trace_target: str | None,
    trace_port: int | None,
    trace_count: int | None,
    ready_fd: int | None,
) -> None:
    """Run a switch until SIGTERM or SIGINT.

    With PROGRAM (BMv2 JSON), or empty until P4Runtime fills it.
    """
    if (program is None) != (p4info is None):
        raise click.UsageError("PROGRAM and --p4info go together: give both or none")
    if (tls_certificate is None) != (tls_key is None) or (tls_ca and not tls_key):
        raise click.UsageError("--grpc-tls-cert and --grpc-tls-key go together; the CA needs both")
    if entries is not None and program is None:
        raise click.UsageError("--entries needs PROGRAM and --p4info")
    if live and trace_target is not None:
        raise click.UsageError("--live and --trace are two builds of the program: give one")
    missing = {number for number, _, _ in impairments} - {number for number, _ in ports}
    if missing:
        names = ", ".join(str(number) for number in sorted(missing))
        raise click.UsageError(f"--impair of ports that no --port opens: {names}")
    if cpu_port in dict(ports):
        raise click.UsageError(
            f"port {cpu_port} is the CPU port: open another number, or choose another --cpu-port"
        )
    if ready_fd is not None and not Path(f"/proc/self/fd/{ready_fd}").exists():
        raise click.UsageError(f"--ready-fd {ready_fd}: no such file descriptor is open")
    options = RunOptions(
        program=program,
        p4info=p4info,
        ports=ports,
        impairments=impairments,
        grpc_address=grpc_address,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        tls_ca=tls_ca,
        device_id=device_id,
        cpu_port=cpu_port,
        drop_port=drop_port,
        priority_queues=priority_queues,
        log_level=log_level,
        pcap_dir=pcap_dir,
        entries=entries,
        live=live,
        trace_target=trace_target,
        trace_port=trace_port,
        trace_count=trace_count,
        ready_fd=ready_fd,
    )
    logging.getLogger().setLevel(log_level.upper())
    logger.info("%s", options.describe())
    with errors_in_words():
        # Ctrl-C ends a compilation.
        build_runtime()
        compiled = options.compile(options.program) if options.program else None
        with stop_signal() as await_stop, contextlib.ExitStack() as stack:
            _bring_up(options, compiled, stack)
            await_stop()


def _bring_up(
    options: RunOptions, compiled: CompiledProgram | None, stack: contextlib.ExitStack
) -> None:
    # gRPC would print its own account of a failure beside ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from ..p4runtime.entities.entries import load_entries  # noqa: PLC0415
    from ..p4runtime.entities.entry_names import device_reader  # noqa: PLC0415
    from ..p4runtime.service.serve import serve  # noqa: PLC0415 - grpc only when it is needed
    from ..p4runtime.service.tls import TlsFiles  # noqa: PLC0415

    switch = stack.enter_context(
        Switch(
            compiled,
            device_id=options.device_id,
            cpu_port=options.cpu_port,
            drop_port=options.drop_port,
            priority_queues=options.priority_queues,
        )
    )
    if options.log_level == "debug":
        switch.set_log(lambda message: _program_logger.debug("%s", message))
    if options.pcap_dir is not None:
        with writable("--pcap-dir"):
            options.pcap_dir.mkdir(parents=True, exist_ok=True)
    for number, spec in options.ports:
        capture = options.pcap_dir / f"port{number}.pcap" if options.pcap_dir else None
        switch.ports.add(number, spec, capture=capture)
    for number, direction, impairments in options.impairments:
        switch.ports.set_impairments(number, impairments, direction=direction)
    tls: TlsFiles | None = None
    if options.tls_certificate is not None and options.tls_key is not None:
        tls = TlsFiles(
            certificate=options.tls_certificate, key=options.tls_key, client_ca=options.tls_ca
        )
    server = serve(
        switch, options.p4info, options.grpc_address, tls=tls, compile_program=options.compile
    )
    stack.callback(server.stop)
    if options.entries is not None:
        load_entries(server.device.config.current(), options.entries)
    if options.trace_target is not None:
        with writable("--trace"):
            trace = _trace(options, options.trace_target, switch, server)
        trace.start()
        stack.callback(trace.close)
    switch.start()
    watch = PortWatch(switch)
    watch.start()
    stack.callback(watch.close)
    ports = ", ".join(f"{number}={_bound(switch, number)}" for number in sorted(switch.ports.specs))
    click.echo(f"ready: P4Runtime on {server.address}; ports: {ports or 'none'}")
    if options.live:
        from ..live import LiveView, Sampler  # noqa: PLC0415 - rich only when needed

        config = server.device.config

        def table_ids() -> dict[int, int]:
            running = config.running
            tables = running.schema.tables.values() if running is not None else ()
            return {table.position: table.id for table in tables}

        view = LiveView(Sampler(switch, device_reader(server.device), table_ids))
        view.start()
        stack.callback(view.close)
    if options.ready_fd is not None:
        os.write(options.ready_fd, b"ready\n")
        os.close(options.ready_fd)


def _trace(
    options: RunOptions, target: str, switch: Switch, server: P4RuntimeServer
) -> RunningTrace:
    from ..p4runtime.entities.entry_names import EntryNames, device_reader  # noqa: PLC0415

    config = server.device.config
    names = EntryNames(switch, lambda: config.running, device_reader(server.device))
    return RunningTrace(
        switch,
        target,
        port=options.trace_port,
        count=options.trace_count,
        entry_text=names.describe,
        json_path=options.program,
        drop_port=options.drop_port,
    )


def _bound(switch: Switch, number: int) -> str:
    """Return a port's description, with the number that a udp port on 0 was given."""
    text = switch.ports.specs[number]
    if not text.startswith("udp:"):
        return text
    host, port = switch.ports.udp_address(number)
    return f"udp:[{host}]:{port}" if ":" in host else f"udp:{host}:{port}"
