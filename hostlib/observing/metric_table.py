# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""All metrics of all processes; docs/metrics.md has the same table, which a test compares."""

from __future__ import annotations

from functools import partial
from typing import Final

from .metric import Exporter, MetricDefinition, MetricKind

_controller = partial(MetricDefinition, exporter=Exporter.CONTROLLER)
_switch = partial(MetricDefinition, exporter=Exporter.SWITCH)
_server = partial(MetricDefinition, exporter=Exporter.SERVER)
_worker = partial(MetricDefinition, exporter=Exporter.WORKER)

CONTROLLER_LEADER: Final = _controller(
    name="switchfold_controller_leader",
    kind=MetricKind.GAUGE,
    help="1 while this controller leads, 0 while it stands by",
)
DATABASE_UP: Final = _controller(
    name="switchfold_database_up",
    kind=MetricKind.GAUGE,
    help="1 while the database can be written, else 0",
)
JOBS: Final = _controller(
    name="switchfold_jobs",
    kind=MetricKind.GAUGE,
    help="Live jobs",
    labels=("state",),
)
JOB_WORKERS: Final = _controller(
    name="switchfold_job_workers",
    kind=MetricKind.GAUGE,
    help="Workers of a live job that are in it",
    labels=("job",),
)
JOB_MISSING_WORKERS: Final = _controller(
    name="switchfold_job_missing_workers",
    kind=MetricKind.GAUGE,
    help="Workers of a live job that have not arrived, or have no session",
    labels=("job",),
)
JOB_SLOTS: Final = _controller(
    name="switchfold_job_slots",
    kind=MetricKind.GAUGE,
    help="Slots that the view of a live job has, over all trees",
    labels=("job",),
)
JOB_TREES: Final = _controller(
    name="switchfold_job_trees",
    kind=MetricKind.GAUGE,
    help="Trees of the view of a live job; 0: the hosts sum",
    labels=("job",),
)
JOB_ROUNDS: Final = _controller(
    name="switchfold_job_rounds_total",
    kind=MetricKind.COUNTER,
    help="Results that the roots of a job's trees have sent; begins again with each view",
    labels=("job",),
)
JOB_UPDATES: Final = _controller(
    name="switchfold_job_updates_total",
    kind=MetricKind.COUNTER,
    help="Updates of a job with live transfers, by what became of them",
    labels=("job", "event"),
)
JOB_OPEN_UPDATES: Final = _controller(
    name="switchfold_job_open_updates",
    kind=MetricKind.GAUGE,
    help="Updates of a job with live transfers that wait for a decision, or are granted",
    labels=("job", "state"),
)
JOB_MODELS: Final = _controller(
    name="switchfold_job_models_total",
    kind=MetricKind.COUNTER,
    help="Models of a job with live transfers, by what became of them",
    labels=("job", "event"),
)
SWITCH_READY: Final = _controller(
    name="switchfold_switch_ready",
    kind=MetricKind.GAUGE,
    help="1 while the switch has program and tables as they should be, else 0",
    labels=("switch",),
)
SWITCH_SLOTS: Final = _controller(
    name="switchfold_switch_slots",
    kind=MetricKind.GAUGE,
    help="Slots of a switch, used by jobs or free",
    labels=("switch", "state"),
)
LINK_UP: Final = _controller(
    name="switchfold_link_up",
    kind=MetricKind.GAUGE,
    help="1 while a link between switches is in use, 0 while it is down or dead",
    labels=("link",),
)
LINK_CAPACITY: Final = _controller(
    name="switchfold_link_capacity_bytes_per_second",
    kind=MetricKind.GAUGE,
    help="Stated rate of a link, each direction; absent where the file states none",
    labels=("link",),
)
LINK_BYTES: Final = _controller(
    name="switchfold_link_bytes_total",
    kind=MetricKind.COUNTER,
    help="Bytes that a sender has put on a link, by the port counters of its switch",
    labels=("link", "sender"),
)
PORT_PACKETS: Final = _switch(
    name="switchfold_port_packets_total",
    kind=MetricKind.COUNTER,
    help="Packets received and sent",
    labels=("port", "direction"),
)
PORT_BYTES: Final = _switch(
    name="switchfold_port_bytes_total",
    kind=MetricKind.COUNTER,
    help="Bytes received and sent",
    labels=("port", "direction"),
)
PORT_LOSSES: Final = _switch(
    name="switchfold_port_losses_total",
    kind=MetricKind.COUNTER,
    help="Packets that were lost, dropped or refused at a port",
    labels=("port", "cause"),
)
SERVER_EVENTS: Final = _server(
    name="switchfold_server_events_total",
    kind=MetricKind.COUNTER,
    help="What a parameter server has counted: updates, pushes, pulls, sums, refusals",
    labels=("job", "server", "event"),
)
SERVER_SENT: Final = _server(
    name="switchfold_server_sent_bytes_total",
    kind=MetricKind.COUNTER,
    help="Values of dense keys that a parameter server has sent",
    labels=("job", "server"),
)
SERVER_RECEIVED: Final = _server(
    name="switchfold_server_received_bytes_total",
    kind=MetricKind.COUNTER,
    help="Values of dense keys that a parameter server has received",
    labels=("job", "server"),
)
SERVER_VERSION: Final = _server(
    name="switchfold_server_version",
    kind=MetricKind.GAUGE,
    help="Version of the tables",
    labels=("job", "server"),
)
WORKER_PACKETS: Final = _worker(
    name="switchfold_worker_packets_total",
    kind=MetricKind.COUNTER,
    help="Packets of a stream, by what became of them",
    labels=("job", "worker", "stream", "event"),
)
WORKER_REFUSED: Final = _worker(
    name="switchfold_worker_refused_packets_total",
    kind=MetricKind.COUNTER,
    help="Datagrams that a worker received and did not take",
    labels=("job", "worker", "cause"),
)
WORKER_RTT: Final = _worker(
    name="switchfold_worker_rtt_seconds",
    kind=MetricKind.GAUGE,
    help="Smoothed RTT of a stream",
    labels=("job", "worker", "stream"),
)
WORKER_WINDOW: Final = _worker(
    name="switchfold_worker_window_chunks",
    kind=MetricKind.GAUGE,
    help="Congestion window of the value stream",
    labels=("job", "worker"),
)
WORKER_TENSORS: Final = _worker(
    name="switchfold_worker_tensors_total",
    kind=MetricKind.COUNTER,
    help="Allreduces and allgathers that have ended",
    labels=("job", "worker", "outcome"),
)
WORKER_TENSOR_BYTES: Final = _worker(
    name="switchfold_worker_tensor_bytes_total",
    kind=MetricKind.COUNTER,
    help="Bytes of the tensors that have ended, in their own dtypes",
    labels=("job", "worker"),
)
WORKER_EXCHANGE: Final = _worker(
    name="switchfold_worker_exchange_seconds_total",
    kind=MetricKind.COUNTER,
    help="Time in which at least one tensor was submitted and had not ended",
    labels=("job", "worker"),
)
WORKER_WAIT: Final = _worker(
    name="switchfold_worker_first_packet_wait_seconds_total",
    kind=MetricKind.COUNTER,
    help="Time from the submission of each tensor to its first packet",
    labels=("job", "worker"),
)

METRICS: Final = (
    *(CONTROLLER_LEADER, DATABASE_UP, JOBS, JOB_WORKERS, JOB_MISSING_WORKERS),
    *(JOB_SLOTS, JOB_TREES, JOB_ROUNDS, JOB_UPDATES, JOB_OPEN_UPDATES, JOB_MODELS),
    *(SWITCH_READY, SWITCH_SLOTS, LINK_UP, LINK_CAPACITY, LINK_BYTES),
    *(PORT_PACKETS, PORT_BYTES, PORT_LOSSES),
    *(SERVER_EVENTS, SERVER_SENT, SERVER_RECEIVED, SERVER_VERSION),
    *(WORKER_PACKETS, WORKER_REFUSED, WORKER_RTT, WORKER_WINDOW, WORKER_TENSORS),
    *(WORKER_TENSOR_BYTES, WORKER_EXCHANGE, WORKER_WAIT),
)
PROCESS_METRICS: Final = (
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
)
"""What prometheus-client adds for every process, with Prometheus' own names."""
