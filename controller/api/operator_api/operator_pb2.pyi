from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ShowControllerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Controller(_message.Message):
    __slots__ = ("database", "database_error", "is_behind", "role", "term", "leader", "controllers", "calls_per_source", "sources")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    DATABASE_ERROR_FIELD_NUMBER: _ClassVar[int]
    IS_BEHIND_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    CALLS_PER_SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    database: str
    database_error: str
    is_behind: bool
    role: str
    term: int
    leader: str
    controllers: _containers.RepeatedScalarFieldContainer[str]
    calls_per_source: int
    sources: _containers.RepeatedCompositeFieldContainer[SourceCalls]
    def __init__(self, database: _Optional[str] = ..., database_error: _Optional[str] = ..., is_behind: bool = ..., role: _Optional[str] = ..., term: _Optional[int] = ..., leader: _Optional[str] = ..., controllers: _Optional[_Iterable[str]] = ..., calls_per_source: _Optional[int] = ..., sources: _Optional[_Iterable[_Union[SourceCalls, _Mapping]]] = ...) -> None: ...

class SourceCalls(_message.Message):
    __slots__ = ("source", "calls", "refused")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    source: str
    calls: int
    refused: int
    def __init__(self, source: _Optional[str] = ..., calls: _Optional[int] = ..., refused: _Optional[int] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("include_ended",)
    INCLUDE_ENDED_FIELD_NUMBER: _ClassVar[int]
    include_ended: bool
    def __init__(self, include_ended: bool = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class ShowJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class StopJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "job_number", "state", "reason", "num_workers", "min_workers", "weight", "path_wanted", "slots_wanted", "quorum", "deadline_s", "created_s", "ended_s", "generation", "path", "slot_count", "switches", "workers", "missing_workers", "views", "counts", "switch_counts", "counts_error", "tolerance", "max_priority_wanted", "max_priority")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    MIN_WORKERS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PATH_WANTED_FIELD_NUMBER: _ClassVar[int]
    SLOTS_WANTED_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    CREATED_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_S_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    MISSING_WORKERS_FIELD_NUMBER: _ClassVar[int]
    VIEWS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_COUNTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_ERROR_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_PRIORITY_WANTED_FIELD_NUMBER: _ClassVar[int]
    MAX_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    job_number: int
    state: str
    reason: str
    num_workers: int
    min_workers: int
    weight: float
    path_wanted: str
    slots_wanted: int
    quorum: int
    deadline_s: float
    created_s: float
    ended_s: float
    generation: int
    path: str
    slot_count: int
    switches: _containers.RepeatedScalarFieldContainer[str]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    missing_workers: _containers.RepeatedScalarFieldContainer[int]
    views: _containers.RepeatedCompositeFieldContainer[JobView]
    counts: _containers.RepeatedCompositeFieldContainer[OutcomeCount]
    switch_counts: _containers.RepeatedCompositeFieldContainer[SwitchCounts]
    counts_error: str
    tolerance: Tolerance
    max_priority_wanted: int
    max_priority: int
    def __init__(self, name: _Optional[str] = ..., job_number: _Optional[int] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., num_workers: _Optional[int] = ..., min_workers: _Optional[int] = ..., weight: _Optional[float] = ..., path_wanted: _Optional[str] = ..., slots_wanted: _Optional[int] = ..., quorum: _Optional[int] = ..., deadline_s: _Optional[float] = ..., created_s: _Optional[float] = ..., ended_s: _Optional[float] = ..., generation: _Optional[int] = ..., path: _Optional[str] = ..., slot_count: _Optional[int] = ..., switches: _Optional[_Iterable[str]] = ..., workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., missing_workers: _Optional[_Iterable[int]] = ..., views: _Optional[_Iterable[_Union[JobView, _Mapping]]] = ..., counts: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ..., switch_counts: _Optional[_Iterable[_Union[SwitchCounts, _Mapping]]] = ..., counts_error: _Optional[str] = ..., tolerance: _Optional[_Union[Tolerance, _Mapping]] = ..., max_priority_wanted: _Optional[int] = ..., max_priority: _Optional[int] = ...) -> None: ...

class Tolerance(_message.Message):
    __slots__ = ("loss", "worker_floor", "stale")
    LOSS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FLOOR_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    loss: float
    worker_floor: float
    stale: float
    def __init__(self, loss: _Optional[float] = ..., worker_floor: _Optional[float] = ..., stale: _Optional[float] = ...) -> None: ...

class JobView(_message.Message):
    __slots__ = ("generation", "state", "path", "reason", "members", "trees", "row_servers")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    ROW_SERVERS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    state: str
    path: str
    reason: str
    members: _containers.RepeatedScalarFieldContainer[int]
    trees: _containers.RepeatedCompositeFieldContainer[JobTree]
    row_servers: _containers.RepeatedCompositeFieldContainer[JobRowServer]
    def __init__(self, generation: _Optional[int] = ..., state: _Optional[str] = ..., path: _Optional[str] = ..., reason: _Optional[str] = ..., members: _Optional[_Iterable[int]] = ..., trees: _Optional[_Iterable[_Union[JobTree, _Mapping]]] = ..., row_servers: _Optional[_Iterable[_Union[JobRowServer, _Mapping]]] = ...) -> None: ...

class JobRowServer(_message.Message):
    __slots__ = ("server_id", "address", "udp_port", "switch", "port", "tree_id", "first_row", "num_rows", "rows_wanted", "reason", "state")
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROW_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    ROWS_WANTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    server_id: int
    address: str
    udp_port: int
    switch: str
    port: int
    tree_id: int
    first_row: int
    num_rows: int
    rows_wanted: int
    reason: str
    state: str
    def __init__(self, server_id: _Optional[int] = ..., address: _Optional[str] = ..., udp_port: _Optional[int] = ..., switch: _Optional[str] = ..., port: _Optional[int] = ..., tree_id: _Optional[int] = ..., first_row: _Optional[int] = ..., num_rows: _Optional[int] = ..., rows_wanted: _Optional[int] = ..., reason: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class JobTree(_message.Message):
    __slots__ = ("tree_id", "slot_count", "nodes")
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    tree_id: int
    slot_count: int
    nodes: _containers.RepeatedCompositeFieldContainer[JobTreeNode]
    def __init__(self, tree_id: _Optional[int] = ..., slot_count: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[JobTreeNode, _Mapping]]] = ...) -> None: ...

class JobTreeNode(_message.Message):
    __slots__ = ("switch", "slot_base", "parent", "workers")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    SLOT_BASE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    switch: str
    slot_base: int
    parent: str
    workers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, switch: _Optional[str] = ..., slot_base: _Optional[int] = ..., parent: _Optional[str] = ..., workers: _Optional[_Iterable[int]] = ...) -> None: ...

class SwitchCounts(_message.Message):
    __slots__ = ("switch", "counts")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    switch: str
    counts: _containers.RepeatedCompositeFieldContainer[OutcomeCount]
    def __init__(self, switch: _Optional[str] = ..., counts: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("worker_id", "address", "mac", "udp_port", "port", "state", "switch")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    address: str
    mac: str
    udp_port: int
    port: int
    state: str
    switch: str
    def __init__(self, worker_id: _Optional[int] = ..., address: _Optional[str] = ..., mac: _Optional[str] = ..., udp_port: _Optional[int] = ..., port: _Optional[int] = ..., state: _Optional[str] = ..., switch: _Optional[str] = ...) -> None: ...

class OutcomeCount(_message.Message):
    __slots__ = ("outcome", "packets", "bytes")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    outcome: str
    packets: int
    bytes: int
    def __init__(self, outcome: _Optional[str] = ..., packets: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class ListSwitchesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSwitchesResponse(_message.Message):
    __slots__ = ("switches",)
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    switches: _containers.RepeatedCompositeFieldContainer[Switch]
    def __init__(self, switches: _Optional[_Iterable[_Union[Switch, _Mapping]]] = ...) -> None: ...

class ShowSwitchRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Switch(_message.Message):
    __slots__ = ("name", "address", "device_id", "state", "error", "program", "num_slots", "used_slots", "counts", "ports", "service_address", "leases", "ordinary_counts", "tells_port_losses", "port_losses")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    NUM_SLOTS_FIELD_NUMBER: _ClassVar[int]
    USED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    ORDINARY_COUNTS_FIELD_NUMBER: _ClassVar[int]
    TELLS_PORT_LOSSES_FIELD_NUMBER: _ClassVar[int]
    PORT_LOSSES_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    device_id: int
    state: str
    error: str
    program: str
    num_slots: int
    used_slots: int
    counts: _containers.RepeatedCompositeFieldContainer[OutcomeCount]
    ports: _containers.RepeatedCompositeFieldContainer[PortCount]
    service_address: str
    leases: _containers.RepeatedCompositeFieldContainer[Lease]
    ordinary_counts: _containers.RepeatedCompositeFieldContainer[OutcomeCount]
    tells_port_losses: bool
    port_losses: _containers.RepeatedCompositeFieldContainer[PortLoss]
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., device_id: _Optional[int] = ..., state: _Optional[str] = ..., error: _Optional[str] = ..., program: _Optional[str] = ..., num_slots: _Optional[int] = ..., used_slots: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ..., ports: _Optional[_Iterable[_Union[PortCount, _Mapping]]] = ..., service_address: _Optional[str] = ..., leases: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ..., ordinary_counts: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ..., tells_port_losses: bool = ..., port_losses: _Optional[_Iterable[_Union[PortLoss, _Mapping]]] = ...) -> None: ...

class PortLoss(_message.Message):
    __slots__ = ("port", "cause", "frames")
    PORT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    port: int
    cause: str
    frames: int
    def __init__(self, port: _Optional[int] = ..., cause: _Optional[str] = ..., frames: _Optional[int] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("job", "generation", "tree_id", "slot_base", "slot_count", "weight", "state", "parent", "row_base", "row_slots")
    JOB_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_BASE_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    ROW_BASE_FIELD_NUMBER: _ClassVar[int]
    ROW_SLOTS_FIELD_NUMBER: _ClassVar[int]
    job: str
    generation: int
    tree_id: int
    slot_base: int
    slot_count: int
    weight: float
    state: str
    parent: str
    row_base: int
    row_slots: int
    def __init__(self, job: _Optional[str] = ..., generation: _Optional[int] = ..., tree_id: _Optional[int] = ..., slot_base: _Optional[int] = ..., slot_count: _Optional[int] = ..., weight: _Optional[float] = ..., state: _Optional[str] = ..., parent: _Optional[str] = ..., row_base: _Optional[int] = ..., row_slots: _Optional[int] = ...) -> None: ...

class PortCount(_message.Message):
    __slots__ = ("port", "host", "packets_in", "bytes_in", "packets_out", "bytes_out", "neighbour")
    PORT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PACKETS_IN_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_FIELD_NUMBER: _ClassVar[int]
    PACKETS_OUT_FIELD_NUMBER: _ClassVar[int]
    BYTES_OUT_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOUR_FIELD_NUMBER: _ClassVar[int]
    port: int
    host: str
    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int
    neighbour: str
    def __init__(self, port: _Optional[int] = ..., host: _Optional[str] = ..., packets_in: _Optional[int] = ..., bytes_in: _Optional[int] = ..., packets_out: _Optional[int] = ..., bytes_out: _Optional[int] = ..., neighbour: _Optional[str] = ...) -> None: ...
