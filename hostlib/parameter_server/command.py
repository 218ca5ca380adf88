# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The command that runs a dedicated parameter server until it is interrupted."""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Never

from ..config import (
    credentials_from_environment,
    job_token_from_environment,
    secret_from_environment,
    token_from_environment,
)
from ..credentials import Credentials, credentials_in
from ..errors import ConfigurationError, HostlibError
from ..observing.logs import LogFormat, set_up_logs
from ..observing.service_manager import ServiceManager
from .hot_server.options import HotRowOptions
from .options import ServerOptions, StragglerDrop
from .repeated_messages import RepeatFilter
from .rules import RuleKind
from .server import ParameterServer
from .switch_groups.options import SwitchGroupOptions
from .transfer_options import TransferOptions

PROGRAM = "python -m switchfold.hostlib.parameter_server"
_SIGNALS = frozenset((signal.SIGINT, signal.SIGTERM))
_DESCRIPTION = """\
Run one shard of a parameter server. It prints "listening on ADDRESS:PORT" when workers may connect,
and runs until SIGINT or SIGTERM. The secret that workers must prove is that of the variable
SWITCHFOLD_JOB_TOKEN, else of SWITCHFOLD_TOKEN. With --credentials, workers connect by TLS, with
certificates of both ends; without them, give --insecure. With --controller, SWITCHFOLD_TOKEN is the
controller's token. With --hot-job, tables that ask for hot keys have them in the job's switches;
with --transfer-job, the controller's scheduler plans when workers' updates travel. With
--replica-of, workers send a server's updates here as well, and this process takes the server's
place when it is gone.
"""
_HOT_OPTIONS: dict[str, tuple[str, type, str, str]] = {
    "--hot-address": ("address", str, "ADDRESS", "this host's address for switches (--address)"),
    "--hot-rows": ("rows", int, "N", "most hot rows of all tables (256)"),
    "--hot-refresh": ("refresh_s", float, "S", "time between two choices of hot keys (5)"),
    "--hot-flush-ms": ("flush_s", float, "MS", "pause until a round is flushed (30)"),
    "--switch": ("switch_name", str, "NAME", "switch that this host is at"),
}
"""Field of HotRowOptions, type, metavar and help."""
_TRANSFER_OPTIONS: dict[str, tuple[str, type, str, str]] = {
    "--transfer-host": ("host", str, "NAME", "name of this host in the controller's file"),
    "--tau-max": ("tau_max", int, "N", "most updates between an update's version and itself"),
    "--transfer-staleness": (
        "staleness",
        int,
        "N",
        "iterations that a worker may be ahead; 0: none",
    ),
    "--div-max": ("div_max", float, "X", "bound on the distance of a replica of the model"),
    "--place-wait": ("place_wait_s", float, "S", "wait for an update that others wait for (5)"),
}
"""Field of TransferOptions, type, metavar and help."""
_GROUP_OPTIONS: dict[str, tuple[str, type, str, str]] = {
    "--group-address": ("address", str, "ADDRESS", "this host's address for switches (--address)"),
    "--group-port": ("udp_port", int, "PORT", "UDP port for switches (that of --port)"),
    "--group-rows": ("rows", int, "N", "most switch rows (128)"),
    "--group-switch": ("switch_name", str, "NAME", "switch that this host is at"),
    "--group-give-up": ("give_up_s", float, "S", "silence that ends a group (2)"),
}
"""Field of SwitchGroupOptions, type, metavar and help."""
_RETIRED = ("--learning-rate", "--momentum", "--checkpoints", "--every")


def _retired(_value: str, what: str = "this option") -> Never:
    raise argparse.ArgumentTypeError(
        f"{what} is retired; use a TableDefinition or TensorDefinition with an optimiser, and --log"
        " (docs/parameter_server.md)"
    )


def _rule(name: str) -> str:
    return _retired(name, name) if name == "sgd" else name


def make_parser(program: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the command's parser; `program` is the command's name in the help."""
    parser = argparse.ArgumentParser(prog=program, description=_DESCRIPTION)
    parser.add_argument("--address", required=True, help="IPv4 address of this host to listen on")
    parser.add_argument("--port", type=int, default=0, help="TCP port; by default 0: any")
    parser.add_argument("--num-workers", type=int, required=True, help="number of updates in a sum")
    parser.add_argument("--shard", type=int, help="position among the servers (0)")
    parser.add_argument(
        "--job", type=int, default=1, help="job number, the same as at the workers (1)"
    )
    parser.add_argument(
        "--rule",
        type=_rule,
        choices=[kind.value for kind in RuleKind],
        default=RuleKind.SUM.value,
        help="rule for the summed updates (sum)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="longest wait for a worker's update (30)",
    )
    parser.add_argument(
        "--drop-after",
        type=float,
        metavar="S",
        help="complete sums without workers that are later than this",
    )
    parser.add_argument("--quorum", type=int, help="fewest workers in such a sum")
    parser.add_argument(
        "--log",
        type=Path,
        metavar="DIRECTORY",
        help="keep tables and tensors here: the server starts with them, also after a crash",
    )
    parser.add_argument(
        "--credentials",
        type=Path,
        metavar="DIRECTORY",
        help="certificate and key of this server, of the role server: workers connect by TLS (the"
        " variable SWITCHFOLD_CREDENTIALS)",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="serve and call without TLS, where there are no credentials (SWITCHFOLD_INSECURE=1)",
    )
    for name in _RETIRED:
        parser.add_argument(name, type=_retired, help=argparse.SUPPRESS)
    parser.add_argument(
        "--latency-log",
        type=Path,
        metavar="DIRECTORY",
        help="write arrivals of requests, load and updates here, for `switchfold report latency`",
    )
    parser.add_argument(
        "--log-format",
        choices=[str(each) for each in LogFormat],
        help="lines of the log on standard error (SWITCHFOLD_LOG_FORMAT, else text)",
    )
    parser.add_argument(
        "--metrics",
        default="",
        metavar="[ADDRESS:]PORT",
        help="serve metrics for Prometheus here, at 127.0.0.1 without an address; 0 takes any port,"
        " which the second line of the output names",
    )
    parser.add_argument(
        "--controller", metavar="HOST:PORT", help="for hot rows, and for scheduled updates"
    )
    hot = parser.add_argument_group("hot rows in switches")
    hot.add_argument("--hot-job", metavar="NAME", help="name of the job at the controller")
    hot.add_argument(
        "--hot-job-token",
        metavar="TOKEN",
        help="the job's token (SWITCHFOLD_JOB_TOKEN, which other users cannot see)",
    )
    for option, (_, kind, metavar, text) in _HOT_OPTIONS.items():
        hot.add_argument(option, type=kind, metavar=metavar, help=text)
    transfers = parser.add_argument_group("scheduled updates")
    transfers.add_argument(
        "--transfer-job", metavar="NAME", help="name of the job at the controller's scheduler"
    )
    transfers.add_argument(
        "--replica-of",
        type=int,
        metavar="SHARD",
        help="be the replica of that server, and take its place when it is gone",
    )
    transfers.add_argument(
        "--server-log",
        type=Path,
        metavar="DIRECTORY",
        help="of a replica: the server's --log, or a copy that is renewed; what the copy in the"
        " replica's --log lacks is taken from there, while updates go on",
    )
    for option, (_, kind, metavar, text) in _TRANSFER_OPTIONS.items():
        transfers.add_argument(option, type=kind, metavar=metavar, help=text)
    groups = parser.add_argument_group("updates that a switch adds up")
    groups.add_argument("--group-job", metavar="NAME", help="name of the workers' job")
    for option, (_, kind, metavar, text) in _GROUP_OPTIONS.items():
        groups.add_argument(option, type=kind, metavar=metavar, help=text)
    return parser


def _given(
    options: argparse.Namespace, table: dict[str, tuple[str, type, str, str]]
) -> dict[str, Any]:
    """Return the options of a table that the user gave, by their fields."""
    given = {
        name: getattr(options, option.removeprefix("--").replace("-", "_"))
        for option, (name, *_) in table.items()
    }
    return {name: value for name, value in given.items() if value is not None}


def _transfer_options(
    options: argparse.Namespace, credentials: Credentials | None
) -> TransferOptions | None:
    """Return the options of scheduled updates, None without. Raises ConfigurationError."""
    given = _given(options, _TRANSFER_OPTIONS)
    host: str = given.pop("host", "")
    if options.transfer_job is None or options.controller is None:
        if given or host or options.transfer_job is not None:
            raise ConfigurationError(
                "options of scheduled updates need --controller and --transfer-job; give both"
            )
        return None
    return TransferOptions(
        controller=options.controller,
        job=options.transfer_job,
        host=host,
        token=token_from_environment(),
        job_token=options.hot_job_token or job_token_from_environment(),
        credentials=None if credentials is None else str(credentials.folder),
        **given,
    )


def _hot_options(
    options: argparse.Namespace, credentials: Credentials | None
) -> HotRowOptions | None:
    """Return the options of hot rows, None without them. Raises ConfigurationError."""
    given = _given(options, _HOT_OPTIONS)
    is_asked = bool(given) or options.hot_job is not None
    if options.controller is None:
        if is_asked or options.hot_job_token is not None:
            raise ConfigurationError("options of hot rows without --controller; give it, too")
        return None
    if (options.transfer_job or options.group_job) is not None and not is_asked:
        return None  # the controller is for other things alone
    if "flush_s" in given:
        given["flush_s"] /= 1e3
    job_token = options.hot_job_token
    return HotRowOptions(
        controller=options.controller,
        job=options.hot_job or "",
        token=token_from_environment(),
        job_token=job_token_from_environment() if job_token is None else job_token,
        credentials=None if credentials is None else str(credentials.folder),
        **given,
    )


def _group_options(
    options: argparse.Namespace, credentials: Credentials | None
) -> SwitchGroupOptions | None:
    """Return the options of switch groups, None without. Raises ConfigurationError."""
    given = _given(options, _GROUP_OPTIONS)
    if options.group_job is None or options.controller is None:
        if given or options.group_job is not None:
            raise ConfigurationError(
                "options of switch groups need --controller and --group-job; give both"
            )
        return None
    return SwitchGroupOptions(
        controller=options.controller,
        job=options.group_job,
        token=token_from_environment(),
        job_token=options.hot_job_token or job_token_from_environment(),
        credentials=None if credentials is None else str(credentials.folder),
        **given,
    )


def run(arguments: Sequence[str], *, program: str = PROGRAM) -> int:
    """Run the command; return its exit code. `program` is its name in the help."""
    parser = make_parser(program)
    options = parser.parse_args(arguments)
    if (options.drop_after is None) != (options.quorum is None):
        parser.error("--drop-after and --quorum go together")
    if options.replica_of is not None and options.shard is not None:
        parser.error("--replica-of names the server; leave out --shard")
    drop = None
    if options.drop_after is not None:
        drop = StragglerDrop(deadline_s=options.drop_after, quorum=options.quorum)
    try:
        set_up_logs(options.log_format, level=logging.WARNING, filters=[RepeatFilter()])
        with _stop_signal() as await_stop:
            return _serve(options, drop, await_stop)
    except HostlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the interpreter writes a signal that has a handler to the wake-up socket."""


@contextmanager
def _stop_signal() -> Generator[Callable[[], object]]:
    """Give a function that waits for SIGINT or SIGTERM, in whichever thread the signal arrives.

    The signals cannot be blocked instead: numpy starts its threads at its import.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    handlers = {number: signal.signal(number, _wake) for number in _SIGNALS}
    before = signal.set_wakeup_fd(theirs.fileno())
    try:
        yield lambda: ours.recv(1)
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        ours.close()
        theirs.close()


def _serve(
    options: argparse.Namespace, drop: StragglerDrop | None, await_stop: Callable[[], object]
) -> int:
    credentials = credentials_in(options.credentials) or credentials_from_environment()
    secret = options.hot_job_token or secret_from_environment()
    server_options = ServerOptions(
        num_workers=options.num_workers,
        shard=(options.shard or 0) if options.replica_of is None else options.replica_of,
        is_replica=options.replica_of is not None,
        server_log=options.server_log,
        rule=RuleKind(options.rule),
        timeout_s=options.timeout,
        stragglers=drop,
        log=options.log,
        latency_log=options.latency_log,
        hot=_hot_options(options, credentials),
        transfers=_transfer_options(options, credentials),
        switch_groups=_group_options(options, credentials),
    )
    server = ParameterServer(
        server_options,
        address=options.address,
        port=options.port,
        token=secret,
        credentials=credentials,
        insecure=options.insecure,
        job=options.job,
    )
    with server, contextlib.ExitStack() as stack:
        listening = f"listening on {server.address}:{server.port}"
        told = [listening]
        if options.metrics:
            from .metrics import serve_metrics  # noqa: PLC0415 - only when it is needed

            metrics = serve_metrics(server, options.metrics, job=options.job)
            stack.enter_context(metrics)
            told.append(f"metrics at http://{metrics.address}/metrics")
        print(*told, sep="\n", flush=True)
        manager = ServiceManager()
        manager.ready(listening)
        with manager.watching(lambda: server.loop.run(lambda: None)):
            server.loop.on_failure(lambda _: signal.raise_signal(signal.SIGTERM))
            await_stop()
        if server.loop.failure is not None:
            raise server.loop.failure
        manager.stopping()
        counters = server.counters + server.tables.counters + server.updates.counters
        counters += Counter() if server.groups is None else server.groups.groups.counters
        shown = [*sorted(counters.items()), ("version", server.tables.version)]
        print(" ".join(f"{name}={n}" for name, n in shown), flush=True)
    return 0
