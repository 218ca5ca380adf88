from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ShowScheduleRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ScheduleReport(_message.Message):
    __slots__ = ("job", "age_s", "tau_max", "div_max", "workers", "servers", "transfers", "drops", "decisions", "batches", "decide_s", "longest_s", "open", "groups", "num_groups", "grouped", "missing", "left", "rates", "staleness", "models")
    JOB_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    TAU_MAX_FIELD_NUMBER: _ClassVar[int]
    DIV_MAX_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_FIELD_NUMBER: _ClassVar[int]
    DROPS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    DECIDE_S_FIELD_NUMBER: _ClassVar[int]
    LONGEST_S_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NUM_GROUPS_FIELD_NUMBER: _ClassVar[int]
    GROUPED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    job: str
    age_s: float
    tau_max: int
    div_max: float
    workers: _containers.RepeatedCompositeFieldContainer[ScheduledWorker]
    servers: _containers.RepeatedCompositeFieldContainer[ScheduledServer]
    transfers: _containers.RepeatedCompositeFieldContainer[ScheduledTransfer]
    drops: _containers.RepeatedCompositeFieldContainer[DropCount]
    decisions: int
    batches: int
    decide_s: float
    longest_s: float
    open: int
    groups: _containers.RepeatedCompositeFieldContainer[ScheduledGroup]
    num_groups: int
    grouped: int
    missing: int
    left: int
    rates: _containers.RepeatedCompositeFieldContainer[HostRates]
    staleness: int
    models: ModelCounts
    def __init__(self, job: _Optional[str] = ..., age_s: _Optional[float] = ..., tau_max: _Optional[int] = ..., div_max: _Optional[float] = ..., workers: _Optional[_Iterable[_Union[ScheduledWorker, _Mapping]]] = ..., servers: _Optional[_Iterable[_Union[ScheduledServer, _Mapping]]] = ..., transfers: _Optional[_Iterable[_Union[ScheduledTransfer, _Mapping]]] = ..., drops: _Optional[_Iterable[_Union[DropCount, _Mapping]]] = ..., decisions: _Optional[int] = ..., batches: _Optional[int] = ..., decide_s: _Optional[float] = ..., longest_s: _Optional[float] = ..., open: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[ScheduledGroup, _Mapping]]] = ..., num_groups: _Optional[int] = ..., grouped: _Optional[int] = ..., missing: _Optional[int] = ..., left: _Optional[int] = ..., rates: _Optional[_Iterable[_Union[HostRates, _Mapping]]] = ..., staleness: _Optional[int] = ..., models: _Optional[_Union[ModelCounts, _Mapping]] = ...) -> None: ...

class ModelCounts(_message.Message):
    __slots__ = ("requested", "granted", "delivered", "ungranted", "withdrawn", "relayed")
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    UNGRANTED_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    RELAYED_FIELD_NUMBER: _ClassVar[int]
    requested: int
    granted: int
    delivered: int
    ungranted: int
    withdrawn: int
    relayed: int
    def __init__(self, requested: _Optional[int] = ..., granted: _Optional[int] = ..., delivered: _Optional[int] = ..., ungranted: _Optional[int] = ..., withdrawn: _Optional[int] = ..., relayed: _Optional[int] = ...) -> None: ...

class ScheduledWorker(_message.Message):
    __slots__ = ("worker_id", "host", "state", "pushes", "grants", "commits", "drops", "withdrawn", "overdue", "ungranted", "refused", "achieved_bits_per_s", "granted_bits_per_s", "early", "drop_ratio", "is_aggregator")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PUSHES_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    DROPS_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    UNGRANTED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    ACHIEVED_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    GRANTED_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    EARLY_FIELD_NUMBER: _ClassVar[int]
    DROP_RATIO_FIELD_NUMBER: _ClassVar[int]
    IS_AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    host: str
    state: str
    pushes: int
    grants: int
    commits: int
    drops: int
    withdrawn: int
    overdue: int
    ungranted: int
    refused: int
    achieved_bits_per_s: float
    granted_bits_per_s: float
    early: int
    drop_ratio: float
    is_aggregator: bool
    def __init__(self, worker_id: _Optional[int] = ..., host: _Optional[str] = ..., state: _Optional[str] = ..., pushes: _Optional[int] = ..., grants: _Optional[int] = ..., commits: _Optional[int] = ..., drops: _Optional[int] = ..., withdrawn: _Optional[int] = ..., overdue: _Optional[int] = ..., ungranted: _Optional[int] = ..., refused: _Optional[int] = ..., achieved_bits_per_s: _Optional[float] = ..., granted_bits_per_s: _Optional[float] = ..., early: _Optional[int] = ..., drop_ratio: _Optional[float] = ..., is_aggregator: bool = ...) -> None: ...

class ScheduledServer(_message.Message):
    __slots__ = ("server_id", "host", "state", "version", "next_sequence", "open_sequence")
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OPEN_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    server_id: int
    host: str
    state: str
    version: int
    next_sequence: int
    open_sequence: int
    def __init__(self, server_id: _Optional[int] = ..., host: _Optional[str] = ..., state: _Optional[str] = ..., version: _Optional[int] = ..., next_sequence: _Optional[int] = ..., open_sequence: _Optional[int] = ...) -> None: ...

class ScheduledTransfer(_message.Message):
    __slots__ = ("worker_id", "server_id", "transfer_id", "size_bytes", "version", "state", "reason", "requested_s", "start_s", "end_s", "ended_s", "sequence", "delay", "kind", "relayed_by")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_S_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_S_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    RELAYED_BY_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    server_id: int
    transfer_id: int
    size_bytes: int
    version: int
    state: str
    reason: str
    requested_s: float
    start_s: float
    end_s: float
    ended_s: float
    sequence: int
    delay: int
    kind: str
    relayed_by: int
    def __init__(self, worker_id: _Optional[int] = ..., server_id: _Optional[int] = ..., transfer_id: _Optional[int] = ..., size_bytes: _Optional[int] = ..., version: _Optional[int] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., requested_s: _Optional[float] = ..., start_s: _Optional[float] = ..., end_s: _Optional[float] = ..., ended_s: _Optional[float] = ..., sequence: _Optional[int] = ..., delay: _Optional[int] = ..., kind: _Optional[str] = ..., relayed_by: _Optional[int] = ...) -> None: ...

class ScheduledGroup(_message.Message):
    __slots__ = ("group_id", "aggregator", "host", "server_id", "worker_ids", "sequence", "gathered", "missing", "left", "is_open", "start_s", "end_s", "is_switch")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_IDS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    GATHERED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    IS_SWITCH_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    aggregator: int
    host: str
    server_id: int
    worker_ids: _containers.RepeatedScalarFieldContainer[int]
    sequence: int
    gathered: int
    missing: int
    left: int
    is_open: bool
    start_s: float
    end_s: float
    is_switch: bool
    def __init__(self, group_id: _Optional[int] = ..., aggregator: _Optional[int] = ..., host: _Optional[str] = ..., server_id: _Optional[int] = ..., worker_ids: _Optional[_Iterable[int]] = ..., sequence: _Optional[int] = ..., gathered: _Optional[int] = ..., missing: _Optional[int] = ..., left: _Optional[int] = ..., is_open: bool = ..., start_s: _Optional[float] = ..., end_s: _Optional[float] = ..., is_switch: bool = ...) -> None: ...

class DropCount(_message.Message):
    __slots__ = ("reason", "count")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    count: int
    def __init__(self, reason: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class HostRates(_message.Message):
    __slots__ = ("host", "up_bits_per_s", "down_bits_per_s", "link_up_bits_per_s", "link_down_bits_per_s")
    HOST_FIELD_NUMBER: _ClassVar[int]
    UP_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    DOWN_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    LINK_UP_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    LINK_DOWN_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    host: str
    up_bits_per_s: int
    down_bits_per_s: int
    link_up_bits_per_s: int
    link_down_bits_per_s: int
    def __init__(self, host: _Optional[str] = ..., up_bits_per_s: _Optional[int] = ..., down_bits_per_s: _Optional[int] = ..., link_up_bits_per_s: _Optional[int] = ..., link_down_bits_per_s: _Optional[int] = ...) -> None: ...
