# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of workers and servers whose updates a scheduler plans."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..control.stations.station import StationKind, StationRequest
from ..errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """Where the scheduler is, and MLfabric's parameters; alike on all workers and servers of a job.

    Raises ConfigurationError.
    """

    controller: str
    """HOST:PORT or unix:/PATH, or several with commas."""
    job: str
    """Name of the job."""
    host: str
    """Name of this host in the controller's file."""
    tau_max: int | None = None
    """Most updates that may be applied between an update's version and itself; None: any number."""
    div_max: float | None = None
    """Bound on the distance between the server's model and a replica's; None: none."""
    staleness: int | None = None
    """How many iterations a worker may be ahead of the slowest one, as that of the tensor.

    None: any number (asynchronous). 0: none (synchronous). With it, there is no `tau_max`, and
    nothing is dropped.
    """
    token: str = field(default="", repr=False)
    """The controller's token."""
    job_token: str = field(default="", repr=False)
    """The job's token, if it has one."""
    credentials: str | None = None
    """Folder with this host's certificate for the controller; None: no TLS."""
    aggregate: bool = False
    """Of a worker: add up updates of others while this host is idle, as the scheduler plans it."""
    aggregate_address: str = ""
    """Where others reach this worker for that; empty: at ClientOptions.source."""
    aggregate_port: int = 0
    """TCP port for that; 0: any."""
    relay_models: bool = False
    """Of a worker: send models on to other workers, and take theirs, as the scheduler plans it."""
    relay_address: str = ""
    """Where others reach this worker for that; empty: at ClientOptions.source."""
    relay_port: int = 0
    """TCP port for that; 0: any."""
    grant_wait_s: float = 1.0
    """How long a worker's update, or a server's model, waits for its grant, until the scheduler has
    said how long."""
    place_wait_s: float = 5.0
    """How long a server waits for an update that is due, while a later one is there."""

    def __post_init__(self) -> None:
        if not (self.grant_wait_s > 0 and self.place_wait_s > 0):
            raise ConfigurationError(
                f"transfers: grant wait {self.grant_wait_s} s, place wait {self.place_wait_s} s;"
                " give positive times"
            )
        for name in "aggregate_port", "relay_port":
            port = getattr(self, name)
            if not 0 <= port < 1 << 16:
                raise ConfigurationError(f"{name} {port}; give a TCP port")
        self.station(StationKind.WORKER, 0)

    def station(
        self,
        kind: StationKind,
        station_id: int,
        aggregator: tuple[str, int] | None = None,
        relay: tuple[str, int] | None = None,
    ) -> StationRequest:
        """Return a registration; `aggregator`: where it gathers, `relay`: where it takes models.

        Raises ConfigurationError.
        """
        return StationRequest(
            controller=self.controller,
            job=self.job,
            kind=kind,
            station_id=station_id,
            host=self.host,
            tau_max=self.tau_max,
            div_max=self.div_max,
            staleness=self.staleness,
            token=self.token,
            job_token=self.job_token,
            credentials=self.credentials,
            aggregator=aggregator,
            relay=relay,
        )
