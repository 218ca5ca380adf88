from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

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
    __slots__ = ("name", "job_id", "generation", "switch", "state", "reason", "slot_base", "slot_count", "num_workers", "allow_partial", "created_s", "ended_s", "workers", "missing_workers", "counts", "counts_error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SLOT_BASE_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PARTIAL_FIELD_NUMBER: _ClassVar[int]
    CREATED_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_S_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    MISSING_WORKERS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    job_id: int
    generation: int
    switch: str
    state: str
    reason: str
    slot_base: int
    slot_count: int
    num_workers: int
    allow_partial: bool
    created_s: float
    ended_s: float
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    missing_workers: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedCompositeFieldContainer[OutcomeCount]
    counts_error: str
    def __init__(self, name: _Optional[str] = ..., job_id: _Optional[int] = ..., generation: _Optional[int] = ..., switch: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., slot_base: _Optional[int] = ..., slot_count: _Optional[int] = ..., num_workers: _Optional[int] = ..., allow_partial: bool = ..., created_s: _Optional[float] = ..., ended_s: _Optional[float] = ..., workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., missing_workers: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ..., counts_error: _Optional[str] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("worker_id", "address", "mac", "udp_port", "port", "state")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    address: str
    mac: str
    udp_port: int
    port: int
    state: str
    def __init__(self, worker_id: _Optional[int] = ..., address: _Optional[str] = ..., mac: _Optional[str] = ..., udp_port: _Optional[int] = ..., port: _Optional[int] = ..., state: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("name", "address", "device_id", "state", "error", "program", "num_slots", "used_slots", "counts", "ports", "service_address")
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
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., device_id: _Optional[int] = ..., state: _Optional[str] = ..., error: _Optional[str] = ..., program: _Optional[str] = ..., num_slots: _Optional[int] = ..., used_slots: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[OutcomeCount, _Mapping]]] = ..., ports: _Optional[_Iterable[_Union[PortCount, _Mapping]]] = ..., service_address: _Optional[str] = ...) -> None: ...

class PortCount(_message.Message):
    __slots__ = ("port", "host", "packets_in", "bytes_in", "packets_out", "bytes_out")
    PORT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PACKETS_IN_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_FIELD_NUMBER: _ClassVar[int]
    PACKETS_OUT_FIELD_NUMBER: _ClassVar[int]
    BYTES_OUT_FIELD_NUMBER: _ClassVar[int]
    port: int
    host: str
    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int
    def __init__(self, port: _Optional[int] = ..., host: _Optional[str] = ..., packets_in: _Optional[int] = ..., bytes_in: _Optional[int] = ..., packets_out: _Optional[int] = ..., bytes_out: _Optional[int] = ...) -> None: ...
