# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch run`: a switch with ports and a P4Runtime server."""

from __future__ import annotations

import contextlib
import logging
import os
from functools import partial
from typing import TYPE_CHECKING

import click

from ..compilation.compiler import CompiledProgram
from ..compilation.runtime_library import build_runtime
from ..switch.port_watch import PortWatch
from ..switch.switch import Switch
from .loading import collect_again
from .options import errors_in_words, takes, writable
from .run_options import RunOptions
from .stop_signal import stop_signal

if TYPE_CHECKING:
    from ...hostlib.observing.metrics_server import MetricsServer
    from ...hostlib.observing.service_manager import ServiceManager
    from ..live import LiveFile, LiveView
    from ..p4runtime.service.server import P4RuntimeServer
    from .running_trace import RunningTrace

logger = logging.getLogger(__name__)
_program_logger = logging.getLogger("switchfold.softswitch.program")
_RUN_EXAMPLE = """\b
Examples:
  softswitch run --port 1=udp:127.0.0.1:5001 --port 2=udp:127.0.0.1:5002 --grpc unix:/tmp/s1.sock
  softswitch run switchfold_wide.json --p4info switchfold_wide.p4info.txtpb \\
    --port 1=veth:s1-eth1 --port 2=veth:s1-eth2 --grpc 127.0.0.1:9559 --credentials s1 \\
    --impair 1:in:loss=0.05,reordering=0.05,reordering_delay_s=0.02,seed=7
  softswitch run router.json --p4info router.p4info.txtpb --entries entries.txt --live \\
    --port 1=veth:s1-eth1 --port 2=veth:s1-eth2 --insecure
  softswitch run router.json --p4info router.p4info.txtpb --trace - --trace-port 1 \\
    --port 1=interface:eno1 --port 2=interface:eno2 --insecure

\b
Ports: interface:IFNAME (a card; veth:IFNAME is the same), udp:HOST:PORT,
  udp:HOST:PORT-PEERHOST:PEERPORT, mem (in the process only).
Exit codes: 0 stopped by a signal, 1 an error, 2 wrong usage.
"""


@click.command(epilog=_RUN_EXAMPLE)
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Run a switch until SIGTERM or SIGINT.

    The switch starts with PROGRAM (BMv2 JSON), or empty until a controller loads a program.
    """
    _set_up_logs(options)
    logger.info("%s", options.describe())
    with errors_in_words():
        # Before stop_signal takes the signals, so that Ctrl-C ends a compilation.
        build_runtime()
        compiled = options.compile(options.program) if options.program else None
        with stop_signal() as await_stop, contextlib.ExitStack() as stack:
            _bring_up(options, compiled, stack)
            await_stop()
            _service_manager().stopping()


def _service_manager() -> ServiceManager:
    from ...hostlib.observing.service_manager import ServiceManager  # noqa: PLC0415 - run alone

    return ServiceManager()


def _set_up_logs(options: RunOptions) -> None:
    from ...hostlib.errors import ConfigurationError  # noqa: PLC0415 - other verbs need no hostlib
    from ...hostlib.observing.logs import set_up_logs  # noqa: PLC0415

    try:
        set_up_logs(options.log_format)
    except ConfigurationError as exc:
        raise click.ClickException(str(exc)) from exc
    logging.getLogger().setLevel(options.log_level.upper())


def _bring_up(
    options: RunOptions, compiled: CompiledProgram | None, stack: contextlib.ExitStack
) -> None:
    # Without this, gRPC prints its own message about a failure as well.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # grpc, and what serving needs besides, only when it is needed.
    from ...hostlib.credentials import CredentialsError, credentials_in  # noqa: PLC0415
    from ..p4runtime.service.serve import serve  # noqa: PLC0415

    collect_again()
    switch = stack.enter_context(
        Switch(
            compiled,
            device_id=options.device_id,
            cpu_port=options.cpu_port,
            drop_port=options.drop_port,
            priority_queues=options.priority_queues,
            super_frames=not options.frame_by_frame,
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
        in_use = switch.ports.super_frames(number).describe()
        logger.info("port %d (%s): super-frames %s", number, spec, in_use)
    for number, direction, impairments in options.impairments:
        switch.ports.set_impairments(number, impairments, direction=direction)
    try:
        server = serve(
            switch,
            options.p4info,
            options.grpc_address,
            credentials=credentials_in(options.credentials),
            insecure=options.insecure,
            compile_program=options.compile,
        )
    except CredentialsError as exc:
        raise click.ClickException(str(exc)) from exc
    stack.callback(server.stop)
    if options.metrics is not None:
        stack.enter_context(_serve_metrics(switch, options.metrics))
    if options.entries is not None:
        from ..p4runtime.entities.entries import load_entries  # noqa: PLC0415

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
    status = f"P4Runtime on {server.address}; ports: {ports or 'none'}"
    click.echo(f"ready: {status}")
    if options.live or options.live_file is not None:
        with writable("--live-file"):
            view = _live_view(options, switch, server)
        view.start()
        stack.callback(view.close)
    if options.ready_fd is not None:
        os.write(options.ready_fd, b"ready\n")
        os.close(options.ready_fd)
    manager = _service_manager()
    manager.ready(status)
    stack.enter_context(manager.watching(switch.ports.all_statistics))


def _live_view(options: RunOptions, switch: Switch, server: P4RuntimeServer) -> LiveView | LiveFile:
    from ..live import LiveFile, LiveView, Sampler  # noqa: PLC0415 - rich only when needed
    from ..p4runtime.entities.entry_names import device_reader  # noqa: PLC0415

    config = server.device.config

    def table_ids() -> dict[int, int]:
        running = config.running
        tables = running.schema.tables.values() if running is not None else ()
        return {table.position: table.id for table in tables}

    sampler = Sampler(switch, device_reader(server.device), table_ids)
    if options.live_file is not None:
        return LiveFile(sampler, options.live_file)
    return LiveView(sampler)


def _serve_metrics(switch: Switch, address: str) -> MetricsServer:
    from ...hostlib.errors import MetricsError  # noqa: PLC0415 - only when it is needed
    from ...hostlib.observing.metrics_server import MetricsServer  # noqa: PLC0415
    from .port_metrics import fill_port_metrics  # noqa: PLC0415

    try:
        return MetricsServer(address, partial(fill_port_metrics, switch.ports.all_statistics))
    except MetricsError as exc:
        raise click.ClickException(str(exc)) from exc


def _trace(
    options: RunOptions, target: str, switch: Switch, server: P4RuntimeServer
) -> RunningTrace:
    from ..p4runtime.entities.entry_names import EntryNames, device_reader  # noqa: PLC0415
    from .running_trace import RunningTrace  # noqa: PLC0415 - the generator only when it is needed

    config = server.device.config
    names = EntryNames(switch, lambda: config.running, device_reader(server.device))
    return RunningTrace(switch, target, options, names.describe)


def _bound(switch: Switch, number: int) -> str:
    """Return a port's description; a udp port on 0 has the number that the kernel chose."""
    text = switch.ports.specs[number]
    if not text.startswith("udp:"):
        return text
    host, port = switch.ports.udp_address(number)
    return f"udp:[{host}]:{port}" if ":" in host else f"udp:{host}:{port}"
