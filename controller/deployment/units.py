# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""systemd units of a deployment: softswitch, controller, parameter server.

Each process runs as a user of its own that exists while it runs (DynamicUser). systemd reads its
configuration, certificate and key, as root, and shows it copies (LoadCredential, `%d`): nothing of
a deployment's folder needs other rights than its owner's. A renewed certificate counts from the
unit's next start.

A process that fails is started again, unless its exit code is that of a wrong configuration, and
until it has failed several times within a minute. A switch that is away is waited for without an
end: each start of a controller waits longer than the limit allows for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CONTROLLER_UNIT: Final = "switchfold-controller.service"
SOFTSWITCH_UNIT: Final = "switchfold-softswitch.service"
SERVER_UNIT: Final = "switchfold-ps.service"
LEAST_SYSTEMD: Final = 250
"""The first version that has `%d`."""
CREDENTIAL_FILES: Final = ("ca.pem", "cert.pem", "key.pem", "crl.pem")
_START_S: Final = 240
"""A controller waits for its switch, and softswitch compiles the program that it is given."""
_WATCHDOG_S: Final = 30
_LIMIT_S: Final = 60
_STARTS: Final = 5
"""A unit is failed after so many starts within _LIMIT_S. A controller takes at least 15 s to find
that its switch does not answer, so that it tries again and again."""
_WRONG_USE: Final = 2
"""The exit code of processes whose options or configuration are wrong, which no start mends."""
_HARDENING: Final = (
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "UMask=0077",
)
_HOMES: Final = ("/home", "/root", "/run/user")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Where the programs are that units start."""

    python: str = sys.executable
    package: Path = Path(__file__).parents[2]

    @property
    def is_in_a_home(self) -> bool:
        """Whether some of it is in a folder that services do not see by default."""
        places = (self.python, str(self.package), str(Path(self.python).resolve()))
        return any(place.startswith(f"{home}/") for place in places for home in _HOMES)

    def command(self, program: str, *arguments: str) -> str:
        """Return ExecStart of a program of this package, with its arguments quoted."""
        words = (self.python, "-m", f"switchfold.{program}", *arguments)
        return " ".join(f'"{word}"' if " " in word else word for word in words)


@dataclass(frozen=True, kw_only=True)
class ServiceUnit:
    """What differs between the units."""

    description: str
    command: str
    credentials: Mapping[str, Path]
    """Files that the service may read, by the name that they have in `%d`."""
    state: str = ""
    """Folder below /var/lib, `%S`; "": none."""
    cache: str = ""
    """Folder below /var/cache, `%C`; "": none."""
    capabilities: Sequence[str] = ()
    families: Sequence[str] = ("AF_INET", "AF_INET6", "AF_UNIX")
    after: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def unit_text(unit: ServiceUnit, *, sees_homes: bool) -> str:
    """Return the file of a unit; `sees_homes`: its program is in somebody's home."""
    capabilities = " ".join(unit.capabilities)
    after = " ".join(("network-online.target", *unit.after))
    lines = [
        "[Unit]",
        f"Description={unit.description}",
        "Wants=network-online.target",
        f"After={after}",
        f"StartLimitIntervalSec={_LIMIT_S}",
        f"StartLimitBurst={_STARTS}",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={unit.command}",
        *(f"Environment={name}={value}" for name, value in unit.environment.items()),
        *(f"LoadCredential={name}:{path}" for name, path in unit.credentials.items()),
        "DynamicUser=yes",
        *([f"StateDirectory={unit.state}", "StateDirectoryMode=0700"] if unit.state else []),
        *([f"CacheDirectory={unit.cache}"] if unit.cache else []),
        "Restart=on-failure",
        "RestartSec=1",
        f"RestartPreventExitStatus={_WRONG_USE}",
        f"TimeoutStartSec={_START_S}",
        f"WatchdogSec={_WATCHDOG_S}",
        "LimitNOFILE=131072",
        f"CapabilityBoundingSet={capabilities}",
        *([f"AmbientCapabilities={capabilities}"] if capabilities else []),
        f"RestrictAddressFamilies={' '.join(unit.families)}",
        f"ProtectHome={'read-only' if sees_homes else 'yes'}",
        *_HARDENING,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def controller_unit(
    installed: Installation, config_file: Path, credentials: Path | None, *, has_softswitch: bool
) -> ServiceUnit:
    """Return the controller's unit; without `credentials`, its file says that it is insecure."""
    options = ("--credentials", "%d") if credentials else ()
    return ServiceUnit(
        description="Switchfold controller",
        command=installed.command(
            "controller",
            "controller",
            "run",
            "--config",
            "%d/controller.toml",
            *options,
            "--database",
            "%S/switchfold/controller.sqlite3",
        ),
        credentials={"controller.toml": config_file, **_files(credentials)},
        state="switchfold",
        after=(SOFTSWITCH_UNIT,) if has_softswitch else (),
    )


def softswitch_unit(
    installed: Installation, cards: Mapping[int, str], grpc: str, credentials: Path | None
) -> ServiceUnit:
    """Return softswitch's unit; `cards` are interfaces by port."""
    secured = ("--credentials", "%d") if credentials else ("--insecure",)
    ports = [word for n, card in cards.items() for word in ("--port", f"{n}=interface:{card}")]
    return ServiceUnit(
        description="Switchfold softswitch",
        command=installed.command("softswitch", "run", *ports, "--grpc", grpc, *secured),
        credentials=_files(credentials),
        cache="switchfold",
        capabilities=("CAP_NET_RAW", "CAP_NET_ADMIN"),
        families=("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"),
        environment={"XDG_CACHE_HOME": "%C/switchfold"},
    )


def server_unit(
    installed: Installation, address: str, port: int, num_workers: int, credentials: Path | None
) -> ServiceUnit:
    """Return a parameter server's unit; its tables outlive it."""
    secured = ("--credentials", "%d") if credentials else ("--insecure",)
    return ServiceUnit(
        description="Switchfold parameter server",
        command=installed.command(
            "controller",
            "ps",
            "run",
            "--address",
            address,
            "--port",
            str(port),
            "--num-workers",
            str(num_workers),
            "--log",
            "%S/switchfold-ps",
            *secured,
        ),
        credentials=_files(credentials),
        state="switchfold-ps",
    )


def _files(credentials: Path | None) -> dict[str, Path]:
    return {} if credentials is None else {name: credentials / name for name in CREDENTIAL_FILES}
