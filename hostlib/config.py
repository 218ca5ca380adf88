# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a worker from environment variables; nothing else in this package reads them.

SWITCHFOLD_CONTROLLER      controller, "host:port"
SWITCHFOLD_JOB             name of the job
SWITCHFOLD_WORKER_ID       0 .. number of workers - 1
SWITCHFOLD_NUM_WORKERS     1 .. 65535
SWITCHFOLD_INGRESS_PORT    switch port of the worker: P4 number or interface name
SWITCHFOLD_TRANSPORT       udp (default), raw or tunnel
SWITCHFOLD_ADDRESS         worker's IPv4 address (udp, tunnel)
SWITCHFOLD_MAC             worker's MAC address (tunnel; udp: told to a controller that does not
                           list this host; unset: that of the address's interface)
SWITCHFOLD_INTERFACE       network interface (raw)
SWITCHFOLD_UDP_PORT        worker's UDP port; 0 or unset: any (tunnel: 21319)
SWITCHFOLD_TUNNEL_LOCAL    "host:port" of this end of the cable (tunnel)
SWITCHFOLD_TUNNEL_SWITCH   "host:port" of the switch's end (tunnel)
SWITCHFOLD_PEER_ADDRESS    where other workers reach this one by TCP; unset: SWITCHFOLD_ADDRESS
SWITCHFOLD_TOKEN           secret of the controller, if it wants one
SWITCHFOLD_CREDENTIALS     folder with this worker's certificate, key and authority; unset: no TLS,
                           if the next one says so
SWITCHFOLD_INSECURE        1: do without TLS where there are no credentials; all processes read it,
                           not only workers (hostlib.credentials.choice)
SWITCHFOLD_JOB_TOKEN       secret of the job, the same on all its workers; a new job needs a new one
SWITCHFOLD_WEIGHT          the job's share of slots against other jobs; unset: 1
SWITCHFOLD_MAX_PRIORITY    highest priority that the job asks for, 0 to 7; unset: 0
SWITCHFOLD_LATE_WAIT       silence (default) or adaptive: when a sum that tolerates loss lets late
                           contributions go; each worker may have its own
SWITCHFOLD_DYNAMIC_INCAST  1: adapt how many chunks are under way towards each root of a transposed
                           job; unset or 0: do not
SWITCHFOLD_PATH            auto (default), switch, host or transposed
SWITCHFOLD_SLOTS           exactly so many slots; unset: the job's share
SWITCHFOLD_MIN_WORKERS     the job ends when fewer are left; unset: 1
SWITCHFOLD_JOINING         1: this worker may come to a job that runs; unset or 0: it may not
SWITCHFOLD_PLACES          JSON file with a list of such variables, one object per process of this
                           machine: LOCAL_RANK, else RANK, else SWITCHFOLD_WORKER_ID picks one.
                           Variables that are set take precedence over the file
SWITCHFOLD_PRECISION       float sums of torch's process groups: auto (default: DDP's gradients in
                           blocks, all else exact), exact or block; the same on all ranks
SWITCHFOLD_TOLERANCE       what DDP's buckets in torch's process groups may lack because of loss: a
                           share of all contributions, "share:floor" with the least share of each
                           rank's own, or "FILE:MODEL" as `switchfold tolerance` measured it;
                           unset: nothing; the same on all ranks
SWITCHFOLD_FILL            mean (default) or zero: what fills the gaps of these buckets
SWITCHFOLD_METRICS         where this worker serves metrics: a port of 127.0.0.1, or ADDRESS:PORT
SWITCHFOLD_LOG_FORMAT      text or json: log to standard error, from `Session.join` on, unless the
                           program has a log; all processes read it (hostlib.observing.logs)
SWITCHFOLD_TRACE           folder, or name ending in .json, for a trace of each rank (hostlib.torch)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

from .control.view import UNKNOWN_MAC, Endpoint
from .credentials import Credentials, credentials_in
from .errors import ConfigurationError, ToleranceFileError
from .loss_fill import FillPolicy
from .loss_tolerance import LossTolerance
from .options import LateWait, PathOption, SessionOptions, with_moved
from .session import Session
from .slots.wire import MAX_PRIORITY, UDP_PORT
from .tolerance_file import load_tolerance
from .transports.base import Transport
from .transports.raw import RawTransport
from .transports.tunnel import TunnelTransport
from .transports.udp import UdpTransport

_Choice = TypeVar("_Choice", bound=str)
PrecisionSetting = Literal["auto", "exact", "block"]
_LATE_WAITS: Final[tuple[LateWait, ...]] = ("silence", "adaptive")
_PATHS: Final[tuple[PathOption, ...]] = ("auto", "switch", "host", "transposed")
_MODEL_IN_FILE: Final = re.compile(r"(?P<path>.+?\.json):(?P<model>.+)")
_PRECISIONS: Final[tuple[PrecisionSetting, ...]] = ("auto", "exact", "block")

_JOB_NEEDS: Final = (
    "SWITCHFOLD_CONTROLLER",
    "SWITCHFOLD_JOB",
    "SWITCHFOLD_WORKER_ID",
    "SWITCHFOLD_NUM_WORKERS",
)
_TRANSPORT_NEEDS: Final = {
    "udp": ("SWITCHFOLD_ADDRESS",),
    "raw": ("SWITCHFOLD_INTERFACE",),
    "tunnel": (
        "SWITCHFOLD_ADDRESS",
        "SWITCHFOLD_MAC",
        "SWITCHFOLD_TUNNEL_LOCAL",
        "SWITCHFOLD_TUNNEL_SWITCH",
    ),
}
TUNNEL_WORKER_UDP_PORT = UDP_PORT + 1
"""Inside a tunnel no kernel hands out ports. Any port is right, as each worker has an address."""


def place_variables(variables: Mapping[str, str], rank: int | None = None) -> Mapping[str, str]:
    """Return the variables, and those of this process's place if SWITCHFOLD_PLACES names a file.

    One file serves all processes that torchrun starts on a machine. `rank` is the number of a
    process that no variable numbers, such as one that the script has spawned. Raises
    ConfigurationError.
    """
    path = variables.get("SWITCHFOLD_PLACES", "")
    if not path:
        return variables
    problem = f"environment variable SWITCHFOLD_PLACES is {path!r}"
    try:
        places: Any = json.loads(Path(path).read_text())
    except FileNotFoundError as exc:
        raise ConfigurationError(
            f"{problem}, and there is no such file; if its testbed is down, make one with"
            " `switchfold testbed up`, whose answer names the file"
        ) from exc
    except (OSError, ValueError) as exc:
        raise ConfigurationError(
            f"{problem}, which cannot be read as JSON ({exc}); `switchfold testbed status` tells"
            " where a testbed keeps its places"
        ) from exc
    number = next(
        (
            variables[name]
            for name in ("LOCAL_RANK", "RANK", "SWITCHFOLD_WORKER_ID")
            if variables.get(name)
        ),
        "" if rank is None else str(rank),
    )
    if not isinstance(places, list) or not number.isdecimal():
        raise ConfigurationError(
            f"{problem}: the file must hold a list, and LOCAL_RANK (it is {number!r}) must say"
            " which of its entries is this process's; start it with torchrun, or set LOCAL_RANK"
        )
    entries = cast(list[Any], places)
    if int(number) >= len(entries) or not isinstance(entries[int(number)], dict):
        raise ConfigurationError(
            f"{problem}: it has {len(entries)} places and none for process {number} of this"
            " machine, counted from 0; start fewer processes, or make a testbed with more workers"
        )
    place = cast(dict[str, Any], entries[int(number)])
    return {**{name: str(value) for name, value in place.items()}, **variables}


def trace_setting() -> str:
    """Return what SWITCHFOLD_TRACE says, "" for no traces."""
    return os.environ.get("SWITCHFOLD_TRACE", "")


def precision_setting() -> PrecisionSetting:
    """Return what SWITCHFOLD_PRECISION says; raises ConfigurationError."""
    value = os.environ.get("SWITCHFOLD_PRECISION", "auto")
    for choice in _PRECISIONS:
        if value == choice:
            return choice
    raise ConfigurationError(
        f"environment variable SWITCHFOLD_PRECISION is {value!r}; choose {', '.join(_PRECISIONS)}"
    )


def tolerance_setting() -> LossTolerance | None:
    """Return what SWITCHFOLD_TOLERANCE says, None for nothing; raises ConfigurationError."""
    value = os.environ.get("SWITCHFOLD_TOLERANCE", "")
    if not value:
        return None
    if in_file := _MODEL_IN_FILE.fullmatch(value):
        try:
            return load_tolerance(in_file["path"], in_file["model"])
        except ToleranceFileError as exc:
            raise ToleranceFileError(
                f"environment variable SWITCHFOLD_TOLERANCE is {value!r}: {exc}"
            ) from exc
    try:
        loss, _, floor = value.partition(":")
        return LossTolerance(loss=float(loss), worker_floor=float(floor) if floor else None)
    except ValueError as exc:
        why = f" ({exc})" if isinstance(exc, ConfigurationError) else ""
        raise ConfigurationError(
            f"environment variable SWITCHFOLD_TOLERANCE is {value!r}{why}; write a share such as"
            " 0.05, 0.05:0.9 with the least share of each rank's contributions, or FILE.json:MODEL"
        ) from exc


def fill_setting() -> FillPolicy:
    """Return what SWITCHFOLD_FILL says; raises ConfigurationError."""
    value = os.environ.get("SWITCHFOLD_FILL", "mean")
    for choice in FillPolicy:
        if value == choice and not choice.keeps_state:
            return choice
    raise ConfigurationError(
        f"environment variable SWITCHFOLD_FILL is {value!r}; choose mean or zero. Other policies"
        " keep values by parameter, which a process group does not know: use the DDP hook or"
        " HybridParallel"
    )


class _Variables:
    """Environment variables with errors that name them."""

    def __init__(self, variables: Mapping[str, str] | None) -> None:
        self._variables = place_variables(os.environ if variables is None else variables)
        self._has_places = bool(self._variables.get("SWITCHFOLD_PLACES"))

    def text(self, name: str, default: str | None = None) -> str:
        if default is None:
            self.require(name)
        return self._variables.get(name, default) or ""

    def require(self, *names: str) -> None:
        """Raise ConfigurationError naming all of these that are not set."""
        missing = [name for name in names if not self._variables.get(name)]
        if not missing:
            return
        places = (
            "; or set SWITCHFOLD_PLACES to the file that `switchfold testbed up` or `testbed"
            " status` names, where all workers are on this machine"
        )
        one = f"environment variable {missing[0]} is not set; a worker needs it"
        several = f"environment variables {', '.join(missing)} are not set; a worker needs them"
        raise ConfigurationError(
            f"{one if len(missing) == 1 else several}{'' if self._has_places else places}"
        )

    @property
    def transport_needs(self) -> tuple[str, ...]:
        return _TRANSPORT_NEEDS.get(self.text("SWITCHFOLD_TRANSPORT", "udp"), ())

    def number(self, name: str, default: str | None = None) -> int:
        value = self.text(name, default)
        if not value.isdecimal():
            raise ConfigurationError(f"environment variable {name} is {value!r}; write a number")
        return int(value)

    def priority(self, name: str) -> int:
        priority = self.number(name, "0")
        if priority > MAX_PRIORITY:
            raise ConfigurationError(
                f"environment variable {name} is {priority}; write 0 to {MAX_PRIORITY}"
            )
        return priority

    def positive(self, name: str, default: float) -> float:
        value = self.text(name, str(default))
        with contextlib.suppress(ValueError):
            if 0 < float(value) < math.inf:
                return float(value)
        raise ConfigurationError(
            f"environment variable {name} is {value!r}; write a number above 0"
        )

    def choice(self, name: str, choices: Sequence[_Choice]) -> _Choice:
        """Return one of some texts; the first is the default."""
        value = self.text(name, choices[0])
        for choice in choices:
            if value == choice:
                return choice
        raise ConfigurationError(
            f"environment variable {name} is {value!r}; choose {', '.join(choices)}"
        )

    def place(self, name: str) -> tuple[str, int]:
        host, _, port = self.text(name).rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigurationError(
                f"environment variable {name} is {self.text(name)!r}; write host:port"
            )
        return host, int(port)


def check_environment(variables: Mapping[str, str] | None = None) -> None:
    """Raise ConfigurationError naming all variables that a worker needs and that are not set."""
    environment = _Variables(variables)
    environment.require(*_JOB_NEEDS, *environment.transport_needs)


def token_from_environment() -> str:
    """Return SWITCHFOLD_TOKEN, the controller's token; empty if it is not set."""
    return _Variables(None).text("SWITCHFOLD_TOKEN", "")


def job_token_from_environment() -> str:
    """Return SWITCHFOLD_JOB_TOKEN, empty if it is not set."""
    return _Variables(None).text("SWITCHFOLD_JOB_TOKEN", "")


def secret_from_environment() -> str:
    """Return what workers and parameter servers prove to each other by TCP, empty without a token.

    It is SWITCHFOLD_JOB_TOKEN, else SWITCHFOLD_TOKEN.
    """
    return job_token_from_environment() or token_from_environment()


def credentials_from_environment() -> Credentials | None:
    """Return the credentials in SWITCHFOLD_CREDENTIALS; None if it is not set.

    Raises CredentialsError.
    """
    return credentials_in(_Variables(None).text("SWITCHFOLD_CREDENTIALS", ""))


def transport_from_environment(variables: Mapping[str, str] | None = None) -> Transport:
    """Open the transport that the environment asks for.

    Raises ConfigurationError or TransportError.
    """
    environment = _Variables(variables)
    environment.require(*environment.transport_needs)
    kind = environment.text("SWITCHFOLD_TRANSPORT", "udp")
    if kind == "udp":
        port = environment.number("SWITCHFOLD_UDP_PORT", "0")
        mac = environment.text("SWITCHFOLD_MAC", "") or UNKNOWN_MAC
        return UdpTransport(environment.text("SWITCHFOLD_ADDRESS"), port, mac=mac)
    if kind == "raw":
        port = environment.number("SWITCHFOLD_UDP_PORT", "0")
        return RawTransport(environment.text("SWITCHFOLD_INTERFACE"), port)
    if kind == "tunnel":
        local = Endpoint(
            address=environment.text("SWITCHFOLD_ADDRESS"),
            udp_port=environment.number("SWITCHFOLD_UDP_PORT", str(TUNNEL_WORKER_UDP_PORT)),
            mac=environment.text("SWITCHFOLD_MAC"),
        )
        return TunnelTransport(
            local,
            port_address=environment.place("SWITCHFOLD_TUNNEL_SWITCH"),
            bind_address=environment.place("SWITCHFOLD_TUNNEL_LOCAL"),
        )
    raise ConfigurationError(f"SWITCHFOLD_TRANSPORT is {kind!r}; choose udp, raw or tunnel")


def complete_from_environment(
    options: SessionOptions, variables: Mapping[str, str] | None = None
) -> SessionOptions:
    """Return the options, with those of the environment where `options` has its defaults.

    Raises ConfigurationError.
    """
    environment = _Variables(variables)
    ingress = environment.text("SWITCHFOLD_INGRESS_PORT", "0")
    found: dict[str, Any] = {
        "ingress_port": int(ingress) if ingress.isdecimal() else ingress,
        "slots_wanted": environment.number("SWITCHFOLD_SLOTS", "0"),
        "weight": environment.positive("SWITCHFOLD_WEIGHT", 1.0),
        "max_priority": environment.priority("SWITCHFOLD_MAX_PRIORITY"),
        "late_wait": environment.choice("SWITCHFOLD_LATE_WAIT", _LATE_WAITS),
        "dynamic_incast": environment.number("SWITCHFOLD_DYNAMIC_INCAST", "0") != 0,
        "path": environment.choice("SWITCHFOLD_PATH", _PATHS),
        "min_workers": environment.number("SWITCHFOLD_MIN_WORKERS", "1"),
        "is_joining": environment.number("SWITCHFOLD_JOINING", "0") != 0,
        "peer_address": environment.text("SWITCHFOLD_PEER_ADDRESS", "") or None,
        "token": environment.text("SWITCHFOLD_TOKEN", ""),
        "credentials": environment.text("SWITCHFOLD_CREDENTIALS", "") or None,
        "insecure": environment.number("SWITCHFOLD_INSECURE", "0") != 0,
        "job_token": environment.text("SWITCHFOLD_JOB_TOKEN", ""),
        "metrics": environment.text("SWITCHFOLD_METRICS", ""),
    }
    defaults = SessionOptions()
    return replace(
        options,
        **{
            name: value
            for name, value in found.items()
            if getattr(options, name) == getattr(defaults, name)
        },
    )


def join_from_environment(
    options: SessionOptions | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    transport: Transport | None = None,
    **moved: Any,
) -> Session:
    """Join the job that the environment names; raises what `Session.join` raises.

    The environment sets an option only where `options` has its default. A `transport` takes
    precedence over that of the environment, and is closed when joining fails. Until the next
    release, options are also taken as keywords (`moved`), with a DeprecationWarning.
    """
    environment = _Variables(variables)
    environment.require(*_JOB_NEEDS, *(() if transport else environment.transport_needs))
    controller = environment.text("SWITCHFOLD_CONTROLLER")
    job = environment.text("SWITCHFOLD_JOB")
    worker_id = environment.number("SWITCHFOLD_WORKER_ID")
    num_workers = environment.number("SWITCHFOLD_NUM_WORKERS")
    options = with_moved(options, moved, "join_from_environment")
    options = complete_from_environment(options, variables)
    return Session.join(
        controller=controller,
        job=job,
        worker_id=worker_id,
        num_workers=num_workers,
        transport=transport or transport_from_environment(variables),
        options=options,
    )
