from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerMessage(_message.Message):
    __slots__ = ("hello", "heartbeat", "leave", "barrier")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    BARRIER_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    heartbeat: Heartbeat
    leave: Leave
    barrier: Barrier
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ..., barrier: _Optional[_Union[Barrier, _Mapping]] = ...) -> None: ...

class ControllerMessage(_message.Message):
    __slots__ = ("welcome", "barrier_released", "job_ended")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    BARRIER_RELEASED_FIELD_NUMBER: _ClassVar[int]
    JOB_ENDED_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    barrier_released: BarrierReleased
    job_ended: JobEnded
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., barrier_released: _Optional[_Union[BarrierReleased, _Mapping]] = ..., job_ended: _Optional[_Union[JobEnded, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("job_name", "worker_id", "num_workers", "wire_version", "values_per_packet", "address", "mac", "udp_port", "ingress_port", "ingress_port_name", "slots_wanted", "allow_partial", "token", "switch_name", "resume", "join_timeout_s")
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    INGRESS_PORT_FIELD_NUMBER: _ClassVar[int]
    INGRESS_PORT_NAME_FIELD_NUMBER: _ClassVar[int]
    SLOTS_WANTED_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PARTIAL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SWITCH_NAME_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    JOIN_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    job_name: str
    worker_id: int
    num_workers: int
    wire_version: int
    values_per_packet: int
    address: str
    mac: str
    udp_port: int
    ingress_port: int
    ingress_port_name: str
    slots_wanted: int
    allow_partial: bool
    token: str
    switch_name: str
    resume: Resume
    join_timeout_s: float
    def __init__(self, job_name: _Optional[str] = ..., worker_id: _Optional[int] = ..., num_workers: _Optional[int] = ..., wire_version: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., address: _Optional[str] = ..., mac: _Optional[str] = ..., udp_port: _Optional[int] = ..., ingress_port: _Optional[int] = ..., ingress_port_name: _Optional[str] = ..., slots_wanted: _Optional[int] = ..., allow_partial: bool = ..., token: _Optional[str] = ..., switch_name: _Optional[str] = ..., resume: _Optional[_Union[Resume, _Mapping]] = ..., join_timeout_s: _Optional[float] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("job_id", "generation")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    generation: int
    def __init__(self, job_id: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Barrier(_message.Message):
    __slots__ = ("name", "use")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    name: str
    use: int
    def __init__(self, name: _Optional[str] = ..., use: _Optional[int] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("job_id", "generation", "slot_count", "num_workers", "values_per_packet", "wire_version", "switch_address", "switch_mac", "switch_udp_port", "lease_s", "allow_partial")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SWITCH_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_MAC_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PARTIAL_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    generation: int
    slot_count: int
    num_workers: int
    values_per_packet: int
    wire_version: int
    switch_address: str
    switch_mac: str
    switch_udp_port: int
    lease_s: float
    allow_partial: bool
    def __init__(self, job_id: _Optional[int] = ..., generation: _Optional[int] = ..., slot_count: _Optional[int] = ..., num_workers: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., wire_version: _Optional[int] = ..., switch_address: _Optional[str] = ..., switch_mac: _Optional[str] = ..., switch_udp_port: _Optional[int] = ..., lease_s: _Optional[float] = ..., allow_partial: bool = ...) -> None: ...

class BarrierReleased(_message.Message):
    __slots__ = ("name", "use")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    name: str
    use: int
    def __init__(self, name: _Optional[str] = ..., use: _Optional[int] = ...) -> None: ...

class JobEnded(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...
