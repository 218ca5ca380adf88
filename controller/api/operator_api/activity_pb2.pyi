from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ShowActivityRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class JobActivity(_message.Message):
    __slots__ = ("job", "generation", "path", "time_s", "gap_s", "trees", "links")
    JOB_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TIME_S_FIELD_NUMBER: _ClassVar[int]
    GAP_S_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    job: str
    generation: int
    path: str
    time_s: float
    gap_s: float
    trees: _containers.RepeatedCompositeFieldContainer[TreeActivity]
    links: _containers.RepeatedCompositeFieldContainer[LinkActivity]
    def __init__(self, job: _Optional[str] = ..., generation: _Optional[int] = ..., path: _Optional[str] = ..., time_s: _Optional[float] = ..., gap_s: _Optional[float] = ..., trees: _Optional[_Iterable[_Union[TreeActivity, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[LinkActivity, _Mapping]]] = ...) -> None: ...

class TreeActivity(_message.Message):
    __slots__ = ("tree_id", "slot_count", "rounds", "nodes", "error")
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    tree_id: int
    slot_count: int
    rounds: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeActivity]
    error: str
    def __init__(self, tree_id: _Optional[int] = ..., slot_count: _Optional[int] = ..., rounds: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeActivity, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class NodeActivity(_message.Message):
    __slots__ = ("switch", "read_slots", "num_open", "open_rounds", "error")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    READ_SLOTS_FIELD_NUMBER: _ClassVar[int]
    NUM_OPEN_FIELD_NUMBER: _ClassVar[int]
    OPEN_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    switch: str
    read_slots: int
    num_open: int
    open_rounds: _containers.RepeatedCompositeFieldContainer[OpenRound]
    error: str
    def __init__(self, switch: _Optional[str] = ..., read_slots: _Optional[int] = ..., num_open: _Optional[int] = ..., open_rounds: _Optional[_Iterable[_Union[OpenRound, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class OpenRound(_message.Message):
    __slots__ = ("slot_index", "missing_workers", "missing_switches", "is_stuck")
    SLOT_INDEX_FIELD_NUMBER: _ClassVar[int]
    MISSING_WORKERS_FIELD_NUMBER: _ClassVar[int]
    MISSING_SWITCHES_FIELD_NUMBER: _ClassVar[int]
    IS_STUCK_FIELD_NUMBER: _ClassVar[int]
    slot_index: int
    missing_workers: _containers.RepeatedScalarFieldContainer[int]
    missing_switches: _containers.RepeatedScalarFieldContainer[str]
    is_stuck: bool
    def __init__(self, slot_index: _Optional[int] = ..., missing_workers: _Optional[_Iterable[int]] = ..., missing_switches: _Optional[_Iterable[str]] = ..., is_stuck: bool = ...) -> None: ...

class LinkActivity(_message.Message):
    __slots__ = ("sender", "receiver", "rate_bits_per_s", "bytes", "recent_bytes", "error", "workers")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    RATE_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    RECENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    sender: str
    receiver: str
    rate_bits_per_s: float
    bytes: int
    recent_bytes: int
    error: str
    workers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, sender: _Optional[str] = ..., receiver: _Optional[str] = ..., rate_bits_per_s: _Optional[float] = ..., bytes: _Optional[int] = ..., recent_bytes: _Optional[int] = ..., error: _Optional[str] = ..., workers: _Optional[_Iterable[int]] = ...) -> None: ...
