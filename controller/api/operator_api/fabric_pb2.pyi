from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ShowTreeRequest(_message.Message):
    __slots__ = ("name", "tensor_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENSOR_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    tensor_bytes: int
    def __init__(self, name: _Optional[str] = ..., tensor_bytes: _Optional[int] = ...) -> None: ...

class TreeReport(_message.Message):
    __slots__ = ("job", "generation", "path", "reason", "num_workers", "tensor_bytes", "values_per_packet", "label", "seconds", "latency_s", "lower_bound_s", "trees", "loads", "alternatives", "is_measured", "measured_error")
    JOB_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    TENSOR_BYTES_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_S_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_S_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    IS_MEASURED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_ERROR_FIELD_NUMBER: _ClassVar[int]
    job: str
    generation: int
    path: str
    reason: str
    num_workers: int
    tensor_bytes: int
    values_per_packet: int
    label: str
    seconds: float
    latency_s: float
    lower_bound_s: float
    trees: _containers.RepeatedCompositeFieldContainer[ReportedTree]
    loads: _containers.RepeatedCompositeFieldContainer[ReportedLoad]
    alternatives: _containers.RepeatedCompositeFieldContainer[ReportedAlternative]
    is_measured: bool
    measured_error: str
    def __init__(self, job: _Optional[str] = ..., generation: _Optional[int] = ..., path: _Optional[str] = ..., reason: _Optional[str] = ..., num_workers: _Optional[int] = ..., tensor_bytes: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., label: _Optional[str] = ..., seconds: _Optional[float] = ..., latency_s: _Optional[float] = ..., lower_bound_s: _Optional[float] = ..., trees: _Optional[_Iterable[_Union[ReportedTree, _Mapping]]] = ..., loads: _Optional[_Iterable[_Union[ReportedLoad, _Mapping]]] = ..., alternatives: _Optional[_Iterable[_Union[ReportedAlternative, _Mapping]]] = ..., is_measured: bool = ..., measured_error: _Optional[str] = ...) -> None: ...

class ReportedTree(_message.Message):
    __slots__ = ("tree_id", "slot_count", "share", "nodes")
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    tree_id: int
    slot_count: int
    share: float
    nodes: _containers.RepeatedCompositeFieldContainer[ReportedNode]
    def __init__(self, tree_id: _Optional[int] = ..., slot_count: _Optional[int] = ..., share: _Optional[float] = ..., nodes: _Optional[_Iterable[_Union[ReportedNode, _Mapping]]] = ...) -> None: ...

class ReportedNode(_message.Message):
    __slots__ = ("switch", "slot_base", "parent", "port", "parent_port", "workers")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    SLOT_BASE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    PARENT_PORT_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    switch: str
    slot_base: int
    parent: str
    port: int
    parent_port: int
    workers: _containers.RepeatedCompositeFieldContainer[ReportedWorker]
    def __init__(self, switch: _Optional[str] = ..., slot_base: _Optional[int] = ..., parent: _Optional[str] = ..., port: _Optional[int] = ..., parent_port: _Optional[int] = ..., workers: _Optional[_Iterable[_Union[ReportedWorker, _Mapping]]] = ...) -> None: ...

class ReportedWorker(_message.Message):
    __slots__ = ("worker_id", "host", "port")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    host: str
    port: int
    def __init__(self, worker_id: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ReportedLoad(_message.Message):
    __slots__ = ("sender", "receiver", "switch", "port", "is_inward", "rate_bits_per_s", "residual_bits_per_s", "predicted_bytes", "seconds", "expected_bytes", "measured_bytes")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    IS_INWARD_FIELD_NUMBER: _ClassVar[int]
    RATE_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEASURED_BYTES_FIELD_NUMBER: _ClassVar[int]
    sender: str
    receiver: str
    switch: str
    port: int
    is_inward: bool
    rate_bits_per_s: float
    residual_bits_per_s: float
    predicted_bytes: float
    seconds: float
    expected_bytes: float
    measured_bytes: float
    def __init__(self, sender: _Optional[str] = ..., receiver: _Optional[str] = ..., switch: _Optional[str] = ..., port: _Optional[int] = ..., is_inward: bool = ..., rate_bits_per_s: _Optional[float] = ..., residual_bits_per_s: _Optional[float] = ..., predicted_bytes: _Optional[float] = ..., seconds: _Optional[float] = ..., expected_bytes: _Optional[float] = ..., measured_bytes: _Optional[float] = ...) -> None: ...

class ReportedAlternative(_message.Message):
    __slots__ = ("label", "seconds")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    label: str
    seconds: float
    def __init__(self, label: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class ListLinksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLinksResponse(_message.Message):
    __slots__ = ("links",)
    LINKS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[Link]
    def __init__(self, links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("name", "key", "state", "rate_bits_per_s", "forward_bits_per_s", "backward_bits_per_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RATE_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    FORWARD_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    BACKWARD_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    state: str
    rate_bits_per_s: float
    forward_bits_per_s: float
    backward_bits_per_s: float
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., state: _Optional[str] = ..., rate_bits_per_s: _Optional[float] = ..., forward_bits_per_s: _Optional[float] = ..., backward_bits_per_s: _Optional[float] = ...) -> None: ...

class SetLinkRequest(_message.Message):
    __slots__ = ("name", "is_up")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_UP_FIELD_NUMBER: _ClassVar[int]
    name: str
    is_up: bool
    def __init__(self, name: _Optional[str] = ..., is_up: bool = ...) -> None: ...

class SetSwitchRequest(_message.Message):
    __slots__ = ("name", "is_up")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_UP_FIELD_NUMBER: _ClassVar[int]
    name: str
    is_up: bool
    def __init__(self, name: _Optional[str] = ..., is_up: bool = ...) -> None: ...

class SetSwitchResponse(_message.Message):
    __slots__ = ("name", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...
