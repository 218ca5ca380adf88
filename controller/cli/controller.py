# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold controller run`: the control plane as a process."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import click

from ...hostlib.credentials import CredentialsError, credentials_in
from ...hostlib.observing.logs import VARIABLE, LogFormat, set_up_logs
from ...hostlib.observing.service_manager import ServiceManager
from ..api.open_files import raise_limit
from ..config import (
    VARIANTS,
    ControllerConfig,
    SwitchConfig,
    database_at,
    load_config,
    parse_host,
    parse_switch,
    with_service_addresses,
)
from ..database.maintenance import copy_database, migrate_database
from ..database.postgres_url import PostgresUrl
from ..database.schema import SCHEMA_VERSION
from ..errors import ConfigError, UnusableConfigError
from ..leadership.candidate import Candidate
from ..observing.controller_metrics import ControllerScrape
from ..server import ControllerServer
from ..web.state import shown_by

_LOGGER = logging.getLogger(__name__)


@click.group()
def controller() -> None:
    """Run the control plane."""


@controller.command()
@click.option("--config", "path", type=click.Path(path_type=Path), help="TOML file.")
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="NAME=HOST:PORT[/ID]",
    help="P4Runtime server of a switch; repeat for several. Replaces those of the file.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="SWITCH/HOST=PORT,ADDRESS,MAC",
    help="Host at a switch port; repeat for several.",
)
@click.option(
    "--service-address",
    "service_addresses",
    multiple=True,
    metavar="[SWITCH=]ADDRESS",
    help="Address to which workers of a switch send: a free one of their hosts' network; repeat for"
    " several switches.  [default: that of the file, else 10.0.255.254]",
)
@click.option("--listen", metavar="HOST:PORT", help="Address of the session and operator APIs.")
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    help="Address of this controller for workers that learn it from another one.  [default: that"
    " of --listen]",
)
@click.option(
    "--database",
    metavar="FILE|URL",
    help="SQLite file; or postgresql://USER@HOST:PORT/NAME, which several controllers may share: "
    "one leads, the others stand by.",
)
@click.option(
    "--variant", type=click.Choice(VARIANTS), help="Lanes per packet: 32 (narrow) or 352 (wide)."
)
@click.option(
    "--max-priority",
    type=int,
    help="Highest priority that any job is granted, 0 to 7; 1 is for control packets alone.",
)
@click.option(
    "--program-dir", type=click.Path(path_type=Path), help="Folder of another compiled program."
)
@click.option(
    "--replace-program", is_flag=True, default=None, help="Replace another program on a switch."
)
@click.option(
    "--credentials",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of 'switchfold certs issue --role controller': TLS to workers, operators and"
    " switches, with certificates of both ends.",
)
@click.option(
    "--insecure",
    is_flag=True,
    default=None,
    help="Serve and call without TLS, where there are no credentials.",
)
@click.option(
    "--token",
    envvar="SWITCHFOLD_TOKEN",
    show_envvar=True,
    help="Secret of workers; without --operator-token, of operators too.",
)
@click.option(
    "--operator-token",
    envvar="SWITCHFOLD_OPERATOR_TOKEN",
    show_envvar=True,
    help="Secret that opens everything; the workers' secret then opens sessions only.",
)
@click.option(
    "--read-only-token",
    envvar="SWITCHFOLD_READ_ONLY_TOKEN",
    show_envvar=True,
    help="Secret that lets a caller read jobs, switches and links, and change nothing.",
)
@click.option(
    "--lease",
    "lease_s",
    type=float,
    help="Seconds without a message after which a worker is evicted although its connection stands;"
    " a job may ask for more.",
)
@click.option(
    "--host-gone",
    "host_gone_s",
    type=float,
    help="Seconds until a worker is evicted whose host does not answer (sessions over TCP).",
)
@click.option(
    "--reconnect-grace",
    "reconnect_grace_s",
    type=float,
    help="Seconds until a worker is evicted whose connection broke and that has not resumed.",
)
@click.option(
    "--join-timeout", "join_timeout_s", type=float, help="Seconds for all workers to join."
)
@click.option(
    "--connect-timeout",
    "connect_timeout_s",
    type=float,
    help="Seconds to connect to the switches.",
)
@click.option(
    "--no-route",
    "no_route_s",
    type=float,
    help="Seconds until a job ends whose data has no route, such as behind a dead switch.",
)
@click.option(
    "--leader-lease",
    "leader_lease_s",
    type=float,
    help="Seconds after which a standby replaces a leader that the database does not hear.",
)
@click.option(
    "--transfer-log",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to which the timeline of live transfers is added, as JSON lines.",
)
@click.option(
    "--election-id",
    type=int,
    help="Least P4Runtime election id; each start takes a higher one, and the highest is primary.",
)
@click.option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    help="Serve metrics for Prometheus here, at 127.0.0.1 without an address; 0 takes any port,"
    " which the log names.",
)
@click.option(
    "--web",
    metavar="[ADDRESS:]PORT",
    help="Serve a web page here that shows switches, trees, links and jobs, and changes nothing;"
    " addresses as for --metrics.",
)
@click.option("--ready-fd", type=int, help="Descriptor that gets 'ready' once workers can join.")
@click.option(
    "--log-format",
    type=click.Choice([str(each) for each in LogFormat]),
    help=f"Lines of the log on standard error.  [default: {VARIABLE}, else text]",
)
@click.option("-v", "--verbose", is_flag=True, help="Log P4Runtime events too.")
def run(  # noqa: PLR0913 - click passes options by name
    *,
    path: Path | None,
    switches: tuple[str, ...],
    hosts: tuple[str, ...],
    service_addresses: tuple[str, ...],
    ready_fd: int | None,
    log_format: str | None,
    verbose: bool,
    **options: object,
) -> None:
    """Connect to switches, load the program and serve workers until SIGTERM or Ctrl-C.

    Running jobs survive a restart: their table entries stay on the switches.

    \b
    Examples:
      switchfold controller run --config controller.toml
      switchfold controller run --insecure --switch s1=127.0.0.1:9559 \\
          --host s1/h1=1,10.0.0.1,02:00:00:00:00:01

    \b
    Exit codes: 0 stopped by a signal, 1 error, 2 wrong use, or a configuration or credentials that
      cannot be used.
    """  # fmt: skip
    set_up_logs(log_format, filters=[_without_foreign_traceback])
    level = logging.DEBUG if verbose else logging.CRITICAL
    logging.getLogger("finsy").setLevel(level)
    _LOGGER.info("up to %d files may be open, one for each worker", raise_limit())
    try:
        given = tuple(parse_switch(text) for text in switches)
        config = load_config(path, switches=given, **options)
        config = with_service_addresses(config, service_addresses)
        credentials_in(config.credentials)  # where they cannot be read, no switch seems to answer
        asyncio.run(_run(_with_hosts(config, hosts), ready_fd))
    except (ConfigError, CredentialsError) as exc:
        raise UnusableConfigError(str(exc)) from exc


@controller.command()
@click.option(
    "--database", "where", required=True, metavar="FILE|URL", help="SQLite file or PostgreSQL URL."
)
@click.option(
    "--to",
    "target",
    type=int,
    default=SCHEMA_VERSION,
    show_default=True,
    help="Schema version to make; a lower one is for an earlier release.",
)
def migrate(where: str, target: int) -> None:
    """Migrate a database that no controller uses to another schema version, up or down.

    A controller migrates an older database by itself at its start. A downgrade below version 4
    forgets secrets of jobs, and is refused while jobs are live.

    \b
    Example:
      switchfold controller migrate --database switchfold.sqlite3 --to 4

    \b
    Exit codes: 0 migrated, 1 error and nothing has changed.
    """
    before = migrate_database(database_at(where), target)
    click.echo(f"schema version {before} -> {target}")


@controller.command("copy-database")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(source: str, target: str) -> None:
    """Copy the state FROM one database TO an empty one, while no controller uses either.

    Both are a SQLite file or a PostgreSQL URL. Running jobs go on at a controller of the new one.

    \b
    Example:
      switchfold controller copy-database switchfold.sqlite3 postgresql://db.example/switchfold

    \b
    Exit codes: 0 copied, 1 error.
    """
    num_jobs = copy_database(database_at(source), database_at(target))
    click.echo(f"{num_jobs} jobs copied")


def _with_hosts(config: ControllerConfig, texts: tuple[str, ...]) -> ControllerConfig:
    """Return the configuration with the command line's hosts at their switches."""
    switches: dict[str, SwitchConfig] = {switch.name: switch for switch in config.switches}
    for name, host in map(parse_host, texts):
        if name not in switches:
            raise ConfigError(f"--host {name}/{host.name}: there is no switch {name!r}")
        hosts = (*switches[name].hosts, host)
        switches[name] = dataclasses.replace(switches[name], hosts=hosts)
    return dataclasses.replace(config, switches=tuple(switches.values()))


async def _run(config: ControllerConfig, ready_fd: int | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    is_started = asyncio.Event()
    manager = ServiceManager()
    living = asyncio.create_task(_show_life(manager))
    serving = asyncio.create_task(_serve(config, ready_fd, is_started, stop))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    manager.stopping()
    if not is_started.is_set() and not serving.done():
        serving.cancel()
        await asyncio.wait((serving,))
    stopping.cancel()
    living.cancel()
    if not serving.cancelled():
        await serving


async def _show_life(manager: ServiceManager) -> None:
    """Tell the service manager that the loop runs, as often as it expects."""
    while manager.interval_s is not None:
        manager.alive()
        await asyncio.sleep(manager.interval_s)


@contextlib.asynccontextmanager
async def _metrics(config: ControllerConfig) -> AsyncGenerator[ControllerScrape]:
    """Serve metrics if the configuration says where; raises MetricsError."""
    scrape = ControllerScrape(asyncio.get_running_loop())
    if not config.metrics:
        yield scrape
        return
    from ...hostlib.observing.metrics_server import MetricsServer  # noqa: PLC0415 - when needed

    server = MetricsServer(config.metrics, scrape.fill)
    try:
        yield scrape
    finally:
        await asyncio.to_thread(server.close)  # an answer under way needs this loop


@contextlib.asynccontextmanager
async def _web(config: ControllerConfig, scrape: ControllerScrape) -> AsyncGenerator[None]:
    """Serve the web page if the configuration says where; raises ConfigError."""
    if not config.web:
        yield
        return
    from ..web.server import WebServer  # noqa: PLC0415 - when needed

    async with WebServer(config.web, lambda: shown_by(scrape.leader)).listen():
        yield


async def _serve(
    config: ControllerConfig, ready_fd: int | None, is_started: asyncio.Event, stop: asyncio.Event
) -> None:
    async with _metrics(config) as scrape, _web(config, scrape):
        await _serve_measured(config, scrape, ready_fd, is_started, stop)


async def _serve_measured(
    config: ControllerConfig,
    scrape: ControllerScrape,
    ready_fd: int | None,
    is_started: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    manager = ServiceManager()

    def announce(text: str) -> None:
        click.echo(text)
        manager.ready(text)
        if not is_started.is_set() and ready_fd is not None:
            os.write(ready_fd, b"ready\n")
            os.close(ready_fd)
        is_started.set()

    def announce_leader(server: ControllerServer) -> None:
        # What is there now stays: full collections, which take 70 ms with it, need not look at it.
        gc.collect()
        gc.freeze()
        scrape.leader = server
        announce(f"ready: workers and operators may connect to {server.address}")

    def announce_standby(address: str) -> None:
        gc.unfreeze()  # what a leader has left may go
        scrape.leader = None
        announce(f"standby: another controller leads; this one answers at {address}")

    if isinstance(config.database, PostgresUrl):
        candidate = Candidate(
            config, config.database, on_standby=announce_standby, on_leader=announce_leader
        )
        serving = asyncio.create_task(candidate.run())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        return
    server = ControllerServer(config)
    async with server.serve():
        announce_leader(server)
        await stop.wait()


def _without_foreign_traceback(record: logging.LogRecord) -> bool:
    """Leave out finsy's tracebacks: we log the switch's typed error."""
    if record.name.startswith("finsy"):
        record.exc_info = None
    return True
