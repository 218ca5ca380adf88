# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration of a controller: frozen dataclasses that check themselves, read from TOML.

listen = "127.0.0.1:50551"
database = "switchfold.sqlite3"
variant = "narrow"

[[switch]]
name = "s1"
address = "127.0.0.1:9559"

[[switch.host]]
name = "h1"
port = 1
address = "10.0.0.1"
mac = "02:00:00:00:00:01"
rate_bits_per_s = 100000000

[[link]]
a = "s1"
a_port = 3
b = "s2"
b_port = 1
rate_bits_per_s = 100000000

[transfers]
grant_wait_s = 1.0
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from ..hostlib.slots import wire
from .database.postgres_url import PostgresUrl, is_postgres
from .errors import ConfigError
from .transfers.transfer_config import TransferConfig

DEFAULT_LISTEN: Final = "127.0.0.1:50551"
VARIANTS: Final = ("narrow", "wide")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_MAX_PORT = 511
DEFAULT_RATE_BITS_PER_S: Final = 1_000_000_000
"""Rate of a link that nobody gave a rate."""


@dataclass(frozen=True, kw_only=True)
class HostConfig:
    """A host behind a switch port."""

    name: str
    port: int
    """P4 port number, 1 to 511 without the CPU port 255."""
    address: str
    """IPv4 address, dotted."""
    mac: str
    rate_bits_per_s: int | None = None
    """Of the link to the switch, each direction; None: not stated."""

    def __post_init__(self) -> None:
        check_name("host name", self.name)
        if self.rate_bits_per_s is not None:
            check_rate(f"host {self.name}", self.rate_bits_per_s)
        check_port(f"host {self.name}: port", self.port)
        check_address(f"host {self.name}: address", self.address)
        check_mac(f"host {self.name}: mac", self.mac)


@dataclass(frozen=True, kw_only=True)
class SwitchConfig:
    """One switch and the hosts behind its ports."""

    name: str
    address: str
    """P4Runtime server, "host:port" or "unix:/path"."""
    device_id: int = 1
    service_address: str = "10.0.255.254"
    """IPv4 address that workers send contributions to."""
    service_mac: str = "02:53:46:00:00:fe"
    aggregates: bool = True
    """False: forwards ordinary traffic only and takes part in no tree."""
    priority_queues: int = 1
    """Queues of each of its ports, 1 to 8: what its --priority-queues says. A packet that it would
    put into another queue is lost."""
    credentials: Path | None = None
    """Folder of certificates for this switch alone; None: the controller's."""
    on_host: str = ""
    """Which of its hosts it runs on, softswitch as a process there; "": none. It is a root of
    transposed jobs that have a worker on this host. Jobs on it alone may have stale results."""
    hosts: tuple[HostConfig, ...] = ()

    def __post_init__(self) -> None:
        check_name("switch name", self.name)
        check_endpoint(f"switch {self.name}: address", self.address)
        if self.device_id < 1:
            raise ConfigError(f"switch {self.name}: device_id must be at least 1")
        if not 1 <= self.priority_queues <= wire.MAX_PRIORITY + 1:
            raise ConfigError(
                f"switch {self.name}: priority_queues must lie in 1..{wire.MAX_PRIORITY + 1}"
            )
        check_address(f"switch {self.name}: service_address", self.service_address)
        check_mac(f"switch {self.name}: service_mac", self.service_mac)
        for what in ("name", "address"):
            values = [getattr(host, what) for host in self.hosts]
            if len(set(values)) != len(values):
                raise ConfigError(f"switch {self.name}: two hosts have the same {what}")
        if self.on_host and all(host.name != self.on_host for host in self.hosts):
            raise ConfigError(
                f"switch {self.name}: on_host is {self.on_host!r}, which is none of its hosts; add"
                " it as a [[switch.host]]"
            )

    def host_at(self, address: str) -> HostConfig | None:
        """Return the configured host with this IPv4 address."""
        return next((host for host in self.hosts if host.address == address), None)


@dataclass(frozen=True, kw_only=True)
class LinkConfig:
    """A cable between two switches."""

    a: str
    """Name of the switch at one end."""
    a_port: int
    b: str
    """Name of the switch at the other end."""
    b_port: int
    rate_bits_per_s: int = DEFAULT_RATE_BITS_PER_S
    """Each direction."""

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise ConfigError(f"link {self.key}: both ends are at switch {self.a}")
        check_port(f"link {self.key}: a_port", self.a_port)
        check_port(f"link {self.key}: b_port", self.b_port)
        check_rate(f"link {self.key}", self.rate_bits_per_s)

    @property
    def name(self) -> str:
        """Both switches, such as s1-s3; parallel links share it."""
        return f"{self.a}-{self.b}"

    @property
    def key(self) -> str:
        """Switches and ports, such as s1:3-s3:1; no other link has it."""
        return f"{self.a}:{self.a_port}-{self.b}:{self.b_port}"

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """(switch, port) of both ends."""
        return (self.a, self.a_port), (self.b, self.b_port)


@dataclass(frozen=True, kw_only=True)
class ControllerConfig:
    """All options of a controller."""

    switches: tuple[SwitchConfig, ...]
    links: tuple[LinkConfig, ...] = ()
    """Between switches."""
    frame_overhead_bytes: int = 0
    """What a link's rate counts per frame beyond the frame itself: 0 for the testbed's shapers, 24
    on Ethernet (check sequence, preamble, gap)."""
    listen: str = DEFAULT_LISTEN
    """Session and operator API, "host:port" (port 0 takes a free one) or "unix:/path"."""
    advertise: str = ""
    """Where workers and operators reach this controller, when they learn it from another one; ""
    stands for `listen`."""
    database: Path | PostgresUrl = Path("switchfold.sqlite3")
    """SQLite file with the desired state, made if absent; or a PostgreSQL database, which several
    controllers may share: one leads."""
    leader_lease_s: float = 5.0
    """A leader that cannot renew its lease in the PostgreSQL database for so long is replaced."""
    variant: str = "narrow"
    """Program variant: narrow (32 values per packet) or wide (352)."""
    program_dir: Path | None = None
    """Folder with the program's artefacts instead of the ones that come with the package."""
    replace_program: bool = False
    """Replace another program on a switch instead of refusing."""
    credentials: Path | None = None
    """Folder with the controller's certificate, key and authority, of `switchfold certs issue`."""
    insecure: bool = False
    """Serve and call without TLS, where there are no credentials."""
    token: str = dataclasses.field(default="", repr=False)
    """Secret that workers present; without `operator_token` it opens the operator API too."""
    operator_token: str = dataclasses.field(default="", repr=False)
    """Secret that opens everything."""
    read_only_token: str = dataclasses.field(default="", repr=False)
    """Secret that opens the calls of the operator API that change nothing."""
    max_waiting_jobs: int = 256
    """Jobs that may wait for workers at a time; they hold no slots."""
    max_waiting_jobs_per_source: int | None = None
    """Those of them that callers of one address may open; None: half of them."""
    max_calls_per_source: int | None = None
    """Calls that callers of one address may have at a time: each worker is one, and those that
    resume have as many again. None: a quarter of all, at most 1,024."""
    default_slots: int = 128
    """Slots of a job whose workers ask for none."""
    max_priority: int = 0
    """Highest priority that any job is granted, 0 to 7. 0: all packets of all jobs share one queue.
    1: control packets alone leave first. From 2 on, tensors of a job that asks for it leave before
    those of others, which get what it leaves of a link."""
    metrics: str = ""
    """Where metrics for Prometheus are served: a port of 127.0.0.1, or "address:port"; "":
    nowhere."""
    web: str = ""
    """Where the web page is served, likewise."""
    lease_s: float = 6.0
    """A worker that says nothing for so long is lost, though its connection stands; at least so
    long: workers may ask for more."""
    host_gone_s: float = 5.0
    """A worker whose host's kernel answers nothing for so long is lost (sessions over TCP)."""
    reconnect_grace_s: float = 0.5
    """A worker whose connection broke is lost when it has not come back by then."""
    resume_grace_s: float = 30.0
    """After a controller restart, workers of running jobs have so long to come back."""
    join_timeout_s: float = 50.0
    """All workers of a job must arrive within this time of the first, less if that asks for it."""
    connect_timeout_s: float = 15.0
    """At start, switches must be configured within this time."""
    reconcile_interval_s: float = 10.0
    """Switches are compared with the database so often."""
    switch_gone_s: float = 5.0
    """Jobs leave a switch that has been out of reach for so long."""
    no_route_s: float = 8.0
    """A running job whose data has no route for so long ends."""
    election_id: int = 10
    """Least term, and with it P4Runtime election id; each start takes a higher one."""
    transfers: TransferConfig = dataclasses.field(default_factory=TransferConfig)
    """Live transfers of asynchronous trainings."""

    def __post_init__(self) -> None:
        if not self.switches:
            raise ConfigError("no switch configured; add [[switch]] or --switch NAME=HOST:PORT")
        names = [switch.name for switch in self.switches]
        if len(set(names)) != len(names):
            raise ConfigError("two switches have the same name")
        self._check_links()
        if not 0 <= self.frame_overhead_bytes <= 100:
            raise ConfigError("frame_overhead_bytes must lie in 0..100")
        check_endpoint("listen", self.listen)
        if self.advertise:
            check_endpoint("advertise", self.advertise)
        if self.variant not in VARIANTS:
            raise ConfigError(f"variant {self.variant!r} is not one of {', '.join(VARIANTS)}")
        for name in ("max_waiting_jobs", "max_waiting_jobs_per_source", "max_calls_per_source"):
            value: int | None = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1")
        if not 0 <= self.max_priority <= wire.MAX_PRIORITY:
            raise ConfigError(f"max_priority must lie in 0..{wire.MAX_PRIORITY}")
        if not 1 <= self.default_slots <= wire.NUM_SLOTS:
            raise ConfigError(f"default_slots must lie in 1..{wire.NUM_SLOTS}")
        for field in dataclasses.fields(self):
            if field.name.endswith("_s") and getattr(self, field.name) <= 0:
                raise ConfigError(f"{field.name} must be above 0 seconds")

    def priority_limit(self, switch: str) -> int:
        """Return the highest priority that jobs may have at a switch, 0 if it is not known."""
        queues = next((x.priority_queues for x in self.switches if x.name == switch), 1)
        return min(self.max_priority, queues - 1)

    def _check_links(self) -> None:
        """Refuse unknown switches, ports used twice and addresses that are not unique."""
        names = {switch.name for switch in self.switches}
        users: dict[tuple[str, int], str] = {
            (switch.name, host.port): f"host {host.name}"
            for switch in self.switches
            for host in switch.hosts
        }
        for link in self.links:
            for switch, port in link.ends:
                if switch not in names:
                    known = ", ".join(sorted(names))
                    raise ConfigError(f"link {link.key}: no switch {switch!r}; there is {known}")
                other = users.setdefault((switch, port), f"link {link.key}")
                if other != f"link {link.key}":
                    raise ConfigError(f"link {link.key}: port {port} of {switch} has {other}")
        if len({link.key for link in self.links}) != len(self.links):
            raise ConfigError("a link is listed twice")
        if self.links:
            self._check_addresses()

    def _check_addresses(self) -> None:
        """Switches that are joined need service addresses of their own, and so do their hosts."""
        users: dict[str, str] = {}
        for switch in self.switches:
            stations = [
                (switch.service_address, f"switch {switch.name}"),
                *((host.address, f"host {host.name} of {switch.name}") for host in switch.hosts),
            ]
            for address, user in stations:
                if users.setdefault(address, user) != user:
                    raise ConfigError(f"{user} and {users[address]} both have {address}")


def check_rate(what: str, rate_bits_per_s: int) -> None:
    """Raise ConfigError unless a rate is at least 1 kbit/s."""
    if rate_bits_per_s < 1000:
        raise ConfigError(f"{what}: rate_bits_per_s must be at least 1000")


def check_name(what: str, text: str) -> None:
    """Raise ConfigError unless `text` is a plain name of up to 63 characters."""
    if not _NAME.fullmatch(text):
        raise ConfigError(f"{what} {text!r} is not a name (letters, digits, '_', '.', '-')")


def check_port(what: str, port: int) -> None:
    """Raise ConfigError unless `port` is a data-plane port."""
    if not 1 <= port <= _MAX_PORT or port == 255:
        raise ConfigError(f"{what} {port} is not a switch port (1..{_MAX_PORT}, 255 is the CPU)")


def check_address(what: str, text: str) -> None:
    """Raise ConfigError unless `text` is a dotted IPv4 address."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError as exc:
        raise ConfigError(f"{what} {text!r} is not an IPv4 address") from exc


def check_mac(what: str, text: str) -> None:
    """Raise ConfigError unless `text` is a lower-case MAC address with colons."""
    if not _MAC.fullmatch(text):
        raise ConfigError(f"{what} {text!r} is not a MAC address such as 02:00:00:00:00:01")


def check_endpoint(what: str, text: str) -> None:
    """Raise ConfigError unless `text` is "host:port" or a Unix socket, "unix:/path"."""
    if text.startswith("unix:/"):
        return
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{what} {text!r} is not HOST:PORT or unix:/PATH")


def parse_switch(text: str) -> SwitchConfig:
    """Return the switch that NAME=HOST:PORT[/DEVICE_ID] or NAME=unix:/PATH names."""
    name, separator, rest = text.partition("=")
    if not separator:
        raise ConfigError(f"--switch {text!r} is not NAME=HOST:PORT[/DEVICE_ID]")
    if rest.startswith("unix:"):
        return SwitchConfig(name=name, address=rest)
    address, slash, device_id = rest.partition("/")
    if slash and not device_id.isdigit():
        raise ConfigError(f"--switch {text!r}: the device id is not a number")
    return SwitchConfig(name=name, address=address, device_id=int(device_id or 1))


def parse_host(text: str) -> tuple[str, HostConfig]:
    """Return (switch name, host) of SWITCH/HOST=PORT,ADDRESS,MAC."""
    target, separator, rest = text.partition("=")
    switch, slash, name = target.partition("/")
    parts = rest.split(",")
    if not separator or not slash or len(parts) != 3 or not parts[0].isdigit():
        raise ConfigError(f"--host {text!r} is not SWITCH/HOST=PORT,ADDRESS,MAC")
    return switch, HostConfig(name=name, port=int(parts[0]), address=parts[1], mac=parts[2].lower())


def with_service_addresses(config: ControllerConfig, texts: tuple[str, ...]) -> ControllerConfig:
    """Return the configuration with the service addresses of [SWITCH=]ADDRESS; ConfigError."""
    switches = {switch.name: switch for switch in config.switches}
    for text in texts:
        name, separator, address = text.rpartition("=")
        if not separator and len(switches) == 1:
            name = next(iter(switches))
        if name not in switches:
            raise ConfigError(
                f"--service-address {text!r} is not SWITCH=ADDRESS with one of the switches "
                f"{', '.join(switches)}"
            )
        switches[name] = dataclasses.replace(switches[name], service_address=address)
    return dataclasses.replace(config, switches=tuple(switches.values()))


def database_at(text: str) -> Path | PostgresUrl:
    """Return the file or the PostgreSQL database that an option names."""
    return PostgresUrl(text) if is_postgres(text) else Path(text)


def load_config(path: Path | None, **overrides: Any) -> ControllerConfig:
    """Read a TOML file (or none) and lay keyword options that are not None over it."""
    raw: dict[str, Any] = {}
    if path is not None:
        try:
            raw = tomllib.loads(path.read_text("utf-8"))
        except OSError as exc:
            raise ConfigError(f"cannot read {path}: {exc.strerror}") from exc
        except tomllib.TOMLDecodeError as exc:
            raise ConfigError(f"{path} is not TOML: {exc}") from exc
    switches = tuple(_switch(entry, path) for entry in _tables(raw.pop("switch", []), "switch"))
    links = tuple(
        LinkConfig(**_complete(LinkConfig, entry, f"{path}: [[link]]"))
        for entry in _tables(raw.pop("link", []), "link")
    )
    transfers = _transfers(raw.pop("transfers", {}), path, overrides.pop("transfer_log", None))
    options = _checked(ControllerConfig, raw, str(path))
    for name, value in overrides.items():
        if value is not None and name != "switches":
            options[name] = value
    if isinstance(options.get("database"), str):
        options["database"] = database_at(options["database"])
    for name in ("program_dir", "credentials"):
        if isinstance(options.get(name), str):
            options[name] = Path(options[name])
    if overrides.get("switches"):
        switches, links = overrides["switches"], ()
    credentials = options.get("credentials")
    switches = tuple(
        dataclasses.replace(switch, credentials=switch.credentials or credentials)
        for switch in switches
    )
    return ControllerConfig(switches=switches, links=links, transfers=transfers, **options)


def _transfers(raw: object, path: Path | None, log: Path | None) -> TransferConfig:
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: write [transfers], not transfers = ...")
    options = _checked(TransferConfig, cast("dict[str, Any]", raw), f"{path}: [transfers]")
    if log is not None or "log" in options:
        options["log"] = log or Path(options["log"])
    return TransferConfig(**options)


def _switch(raw: dict[str, Any], path: Path | None) -> SwitchConfig:
    hosts = tuple(
        HostConfig(**_complete(HostConfig, entry, f"{path}: [[switch.host]]"))
        for entry in _tables(raw.pop("host", []), "switch.host")
    )
    options = _complete(SwitchConfig, raw, f"{path}: [[switch]]")
    if "credentials" in options:
        options["credentials"] = Path(options["credentials"])
    return SwitchConfig(hosts=hosts, **options)


def _tables(value: object, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ConfigError(f"write [[{name}]], not [{name}]")
    return cast("list[dict[str, Any]]", value)


def _complete(kind: type, raw: dict[str, Any], where: str) -> dict[str, Any]:
    options = _checked(kind, raw, where)
    for field in dataclasses.fields(kind):
        if field.default is dataclasses.MISSING and field.name not in options:
            raise ConfigError(f"{where}: {field.name} is missing")
    return options


def _checked(kind: type, raw: dict[str, Any], where: str) -> dict[str, Any]:
    """Return `raw` after checking names and types against the dataclass's fields."""
    fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    expected = {"str": str, "int": int, "float": (int, float), "bool": bool, "Path": str}
    expected["Path | PostgresUrl"] = str
    for name, value in raw.items():
        if name not in fields:
            raise ConfigError(f"{where}: unknown option {name!r}")
        kinds = expected.get(fields[name].removesuffix(" | None"))
        is_flag = isinstance(value, bool)  # which is an int to Python
        if kinds is None or not isinstance(value, kinds) or is_flag != (kinds is bool):
            raise ConfigError(f"{where}: {name} = {value!r} is not of type {fields[name]}")
    return dict(raw)
