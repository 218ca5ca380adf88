from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StationMessage(_message.Message):
    __slots__ = ("register", "heartbeat", "requested", "delivered", "withdrawn", "committed", "rate_observed", "gathered", "left", "replica_ready", "state", "replica_received", "replica_failed", "model_requested", "switch_members", "model_delivered", "allreduce_requested", "allreduce_ended")
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    RATE_OBSERVED_FIELD_NUMBER: _ClassVar[int]
    GATHERED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    REPLICA_READY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REPLICA_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FAILED_FIELD_NUMBER: _ClassVar[int]
    MODEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    SWITCH_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    ALLREDUCE_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    ALLREDUCE_ENDED_FIELD_NUMBER: _ClassVar[int]
    register: Register
    heartbeat: Heartbeat
    requested: TransferRequested
    delivered: TransferDelivered
    withdrawn: TransferWithdrawn
    committed: UpdatesCommitted
    rate_observed: RateObserved
    gathered: UpdateGathered
    left: GroupLeft
    replica_ready: ReplicaReady
    state: StateReported
    replica_received: ReplicaReceived
    replica_failed: ReplicaFailed
    model_requested: ModelRequested
    switch_members: SwitchMembers
    model_delivered: ModelDelivered
    allreduce_requested: AllreduceRequested
    allreduce_ended: AllreduceEnded
    def __init__(self, register: _Optional[_Union[Register, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., requested: _Optional[_Union[TransferRequested, _Mapping]] = ..., delivered: _Optional[_Union[TransferDelivered, _Mapping]] = ..., withdrawn: _Optional[_Union[TransferWithdrawn, _Mapping]] = ..., committed: _Optional[_Union[UpdatesCommitted, _Mapping]] = ..., rate_observed: _Optional[_Union[RateObserved, _Mapping]] = ..., gathered: _Optional[_Union[UpdateGathered, _Mapping]] = ..., left: _Optional[_Union[GroupLeft, _Mapping]] = ..., replica_ready: _Optional[_Union[ReplicaReady, _Mapping]] = ..., state: _Optional[_Union[StateReported, _Mapping]] = ..., replica_received: _Optional[_Union[ReplicaReceived, _Mapping]] = ..., replica_failed: _Optional[_Union[ReplicaFailed, _Mapping]] = ..., model_requested: _Optional[_Union[ModelRequested, _Mapping]] = ..., switch_members: _Optional[_Union[SwitchMembers, _Mapping]] = ..., model_delivered: _Optional[_Union[ModelDelivered, _Mapping]] = ..., allreduce_requested: _Optional[_Union[AllreduceRequested, _Mapping]] = ..., allreduce_ended: _Optional[_Union[AllreduceEnded, _Mapping]] = ...) -> None: ...

class SchedulerMessage(_message.Message):
    __slots__ = ("registered", "granted", "dropped", "expected", "skipped", "gather", "refused", "replica_known", "report_state", "replica_joined", "replica_left", "allowed", "server_moved", "promoted", "catch_up", "switch_group", "allreduce_noted", "allreduce_granted", "allreduce_failed")
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    GATHER_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REPLICA_KNOWN_FIELD_NUMBER: _ClassVar[int]
    REPORT_STATE_FIELD_NUMBER: _ClassVar[int]
    REPLICA_JOINED_FIELD_NUMBER: _ClassVar[int]
    REPLICA_LEFT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    SERVER_MOVED_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    SWITCH_GROUP_FIELD_NUMBER: _ClassVar[int]
    ALLREDUCE_NOTED_FIELD_NUMBER: _ClassVar[int]
    ALLREDUCE_GRANTED_FIELD_NUMBER: _ClassVar[int]
    ALLREDUCE_FAILED_FIELD_NUMBER: _ClassVar[int]
    registered: Registered
    granted: TransferGranted
    dropped: TransferDropped
    expected: CommitExpected
    skipped: CommitSkipped
    gather: GatherExpected
    refused: TransferRefused
    replica_known: ReplicaKnown
    report_state: ReportState
    replica_joined: ReplicaJoined
    replica_left: ReplicaLeft
    allowed: CommitAllowed
    server_moved: ServerMoved
    promoted: ReplicaPromoted
    catch_up: CatchUp
    switch_group: SwitchGroupExpected
    allreduce_noted: AllreduceNoted
    allreduce_granted: AllreduceGranted
    allreduce_failed: AllreduceFailed
    def __init__(self, registered: _Optional[_Union[Registered, _Mapping]] = ..., granted: _Optional[_Union[TransferGranted, _Mapping]] = ..., dropped: _Optional[_Union[TransferDropped, _Mapping]] = ..., expected: _Optional[_Union[CommitExpected, _Mapping]] = ..., skipped: _Optional[_Union[CommitSkipped, _Mapping]] = ..., gather: _Optional[_Union[GatherExpected, _Mapping]] = ..., refused: _Optional[_Union[TransferRefused, _Mapping]] = ..., replica_known: _Optional[_Union[ReplicaKnown, _Mapping]] = ..., report_state: _Optional[_Union[ReportState, _Mapping]] = ..., replica_joined: _Optional[_Union[ReplicaJoined, _Mapping]] = ..., replica_left: _Optional[_Union[ReplicaLeft, _Mapping]] = ..., allowed: _Optional[_Union[CommitAllowed, _Mapping]] = ..., server_moved: _Optional[_Union[ServerMoved, _Mapping]] = ..., promoted: _Optional[_Union[ReplicaPromoted, _Mapping]] = ..., catch_up: _Optional[_Union[CatchUp, _Mapping]] = ..., switch_group: _Optional[_Union[SwitchGroupExpected, _Mapping]] = ..., allreduce_noted: _Optional[_Union[AllreduceNoted, _Mapping]] = ..., allreduce_granted: _Optional[_Union[AllreduceGranted, _Mapping]] = ..., allreduce_failed: _Optional[_Union[AllreduceFailed, _Mapping]] = ...) -> None: ...

class Register(_message.Message):
    __slots__ = ("job_name", "station_id", "identity", "host", "job_token", "tau_max", "div_max", "staleness", "version", "next_sequence", "aggregator", "relay", "address", "port", "catches_up", "momentum")
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    STATION_ID_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    JOB_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TAU_MAX_FIELD_NUMBER: _ClassVar[int]
    DIV_MAX_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    RELAY_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    CATCHES_UP_FIELD_NUMBER: _ClassVar[int]
    MOMENTUM_FIELD_NUMBER: _ClassVar[int]
    job_name: str
    station_id: int
    identity: bytes
    host: str
    job_token: str
    tau_max: int
    div_max: float
    staleness: int
    version: int
    next_sequence: int
    aggregator: Aggregator
    relay: ModelRelay
    address: str
    port: int
    catches_up: bool
    momentum: float
    def __init__(self, job_name: _Optional[str] = ..., station_id: _Optional[int] = ..., identity: _Optional[bytes] = ..., host: _Optional[str] = ..., job_token: _Optional[str] = ..., tau_max: _Optional[int] = ..., div_max: _Optional[float] = ..., staleness: _Optional[int] = ..., version: _Optional[int] = ..., next_sequence: _Optional[int] = ..., aggregator: _Optional[_Union[Aggregator, _Mapping]] = ..., relay: _Optional[_Union[ModelRelay, _Mapping]] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., catches_up: bool = ..., momentum: _Optional[float] = ...) -> None: ...

class Aggregator(_message.Message):
    __slots__ = ("address", "port")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    address: str
    port: int
    def __init__(self, address: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ModelRelay(_message.Message):
    __slots__ = ("address", "port")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    address: str
    port: int
    def __init__(self, address: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class Registered(_message.Message):
    __slots__ = ("grant_wait_s", "lease_s", "next_transfer_id", "next_sequence", "has_replica", "allowed_sequence")
    GRANT_WAIT_S_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    NEXT_TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HAS_REPLICA_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    grant_wait_s: float
    lease_s: float
    next_transfer_id: int
    next_sequence: int
    has_replica: bool
    allowed_sequence: int
    def __init__(self, grant_wait_s: _Optional[float] = ..., lease_s: _Optional[float] = ..., next_transfer_id: _Optional[int] = ..., next_sequence: _Optional[int] = ..., has_replica: bool = ..., allowed_sequence: _Optional[int] = ...) -> None: ...

class TransferRequested(_message.Message):
    __slots__ = ("transfer_id", "server_id", "size_bytes", "version", "norm", "sum_key", "clock", "whole_bytes")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NORM_FIELD_NUMBER: _ClassVar[int]
    SUM_KEY_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    WHOLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    server_id: int
    size_bytes: int
    version: int
    norm: float
    sum_key: int
    clock: int
    whole_bytes: int
    def __init__(self, transfer_id: _Optional[int] = ..., server_id: _Optional[int] = ..., size_bytes: _Optional[int] = ..., version: _Optional[int] = ..., norm: _Optional[float] = ..., sum_key: _Optional[int] = ..., clock: _Optional[int] = ..., whole_bytes: _Optional[int] = ...) -> None: ...

class RateSpan(_message.Message):
    __slots__ = ("start_s", "end_s", "rate_bits_per_s")
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    RATE_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    start_s: float
    end_s: float
    rate_bits_per_s: int
    def __init__(self, start_s: _Optional[float] = ..., end_s: _Optional[float] = ..., rate_bits_per_s: _Optional[int] = ...) -> None: ...

class TransferGranted(_message.Message):
    __slots__ = ("transfer_id", "spans", "sequence", "delay", "learning_rate_factor", "hop", "has_replica", "replica_spans", "model_hop")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    HAS_REPLICA_FIELD_NUMBER: _ClassVar[int]
    REPLICA_SPANS_FIELD_NUMBER: _ClassVar[int]
    MODEL_HOP_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    spans: _containers.RepeatedCompositeFieldContainer[RateSpan]
    sequence: int
    delay: int
    learning_rate_factor: float
    hop: GroupHop
    has_replica: bool
    replica_spans: _containers.RepeatedCompositeFieldContainer[RateSpan]
    model_hop: ModelHop
    def __init__(self, transfer_id: _Optional[int] = ..., spans: _Optional[_Iterable[_Union[RateSpan, _Mapping]]] = ..., sequence: _Optional[int] = ..., delay: _Optional[int] = ..., learning_rate_factor: _Optional[float] = ..., hop: _Optional[_Union[GroupHop, _Mapping]] = ..., has_replica: bool = ..., replica_spans: _Optional[_Iterable[_Union[RateSpan, _Mapping]]] = ..., model_hop: _Optional[_Union[ModelHop, _Mapping]] = ...) -> None: ...

class ModelHop(_message.Message):
    __slots__ = ("sender_transfer_id", "address", "port", "wait_s")
    SENDER_TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    sender_transfer_id: int
    address: str
    port: int
    wait_s: float
    def __init__(self, sender_transfer_id: _Optional[int] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., wait_s: _Optional[float] = ...) -> None: ...

class GroupHop(_message.Message):
    __slots__ = ("kind", "group_id", "num_members", "worker_id", "address", "port", "outcome_s")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NO_GROUP: _ClassVar[GroupHop.Kind]
        HOST: _ClassVar[GroupHop.Kind]
        SWITCH: _ClassVar[GroupHop.Kind]
    NO_GROUP: GroupHop.Kind
    HOST: GroupHop.Kind
    SWITCH: GroupHop.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_S_FIELD_NUMBER: _ClassVar[int]
    kind: GroupHop.Kind
    group_id: int
    num_members: int
    worker_id: int
    address: str
    port: int
    outcome_s: float
    def __init__(self, kind: _Optional[_Union[GroupHop.Kind, str]] = ..., group_id: _Optional[int] = ..., num_members: _Optional[int] = ..., worker_id: _Optional[int] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., outcome_s: _Optional[float] = ...) -> None: ...

class TransferDropped(_message.Message):
    __slots__ = ("transfer_id", "reason", "delay")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    reason: str
    delay: int
    def __init__(self, transfer_id: _Optional[int] = ..., reason: _Optional[str] = ..., delay: _Optional[int] = ...) -> None: ...

class TransferRefused(_message.Message):
    __slots__ = ("transfer_id", "reason")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    reason: str
    def __init__(self, transfer_id: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class TransferDelivered(_message.Message):
    __slots__ = ("worker_id", "transfer_id", "is_granted", "is_refused", "is_early")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    IS_GRANTED_FIELD_NUMBER: _ClassVar[int]
    IS_REFUSED_FIELD_NUMBER: _ClassVar[int]
    IS_EARLY_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    transfer_id: int
    is_granted: bool
    is_refused: bool
    is_early: bool
    def __init__(self, worker_id: _Optional[int] = ..., transfer_id: _Optional[int] = ..., is_granted: bool = ..., is_refused: bool = ..., is_early: bool = ...) -> None: ...

class TransferWithdrawn(_message.Message):
    __slots__ = ("transfer_id", "is_sent_ungranted")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    IS_SENT_UNGRANTED_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    is_sent_ungranted: bool
    def __init__(self, transfer_id: _Optional[int] = ..., is_sent_ungranted: bool = ...) -> None: ...

class UpdatesCommitted(_message.Message):
    __slots__ = ("version", "next_sequence")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    version: int
    next_sequence: int
    def __init__(self, version: _Optional[int] = ..., next_sequence: _Optional[int] = ...) -> None: ...

class RateObserved(_message.Message):
    __slots__ = ("transfer_id", "size_bytes", "seconds", "network_wait_s")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_WAIT_S_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    size_bytes: int
    seconds: float
    network_wait_s: float
    def __init__(self, transfer_id: _Optional[int] = ..., size_bytes: _Optional[int] = ..., seconds: _Optional[float] = ..., network_wait_s: _Optional[float] = ...) -> None: ...

class CommitExpected(_message.Message):
    __slots__ = ("sequence", "worker_id", "transfer_id", "learning_rate_factor", "due_s", "earliest_s", "size_bytes", "begins_s")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    DUE_S_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_S_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    BEGINS_S_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    worker_id: int
    transfer_id: int
    learning_rate_factor: float
    due_s: float
    earliest_s: float
    size_bytes: int
    begins_s: float
    def __init__(self, sequence: _Optional[int] = ..., worker_id: _Optional[int] = ..., transfer_id: _Optional[int] = ..., learning_rate_factor: _Optional[float] = ..., due_s: _Optional[float] = ..., earliest_s: _Optional[float] = ..., size_bytes: _Optional[int] = ..., begins_s: _Optional[float] = ...) -> None: ...

class CommitSkipped(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class GroupMember(_message.Message):
    __slots__ = ("worker_id", "transfer_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    transfer_id: int
    def __init__(self, worker_id: _Optional[int] = ..., transfer_id: _Optional[int] = ...) -> None: ...

class GatherExpected(_message.Message):
    __slots__ = ("group_id", "server_id", "members", "spans", "gather_s")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    GATHER_S_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    server_id: int
    members: _containers.RepeatedCompositeFieldContainer[GroupMember]
    spans: _containers.RepeatedCompositeFieldContainer[RateSpan]
    gather_s: float
    def __init__(self, group_id: _Optional[int] = ..., server_id: _Optional[int] = ..., members: _Optional[_Iterable[_Union[GroupMember, _Mapping]]] = ..., spans: _Optional[_Iterable[_Union[RateSpan, _Mapping]]] = ..., gather_s: _Optional[float] = ...) -> None: ...

class SwitchMembers(_message.Message):
    __slots__ = ("worker_ids",)
    WORKER_IDS_FIELD_NUMBER: _ClassVar[int]
    worker_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, worker_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class SwitchGroupExpected(_message.Message):
    __slots__ = ("group_id", "members", "start_s", "gather_s")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    GATHER_S_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    members: _containers.RepeatedCompositeFieldContainer[GroupMember]
    start_s: float
    gather_s: float
    def __init__(self, group_id: _Optional[int] = ..., members: _Optional[_Iterable[_Union[GroupMember, _Mapping]]] = ..., start_s: _Optional[float] = ..., gather_s: _Optional[float] = ...) -> None: ...

class UpdateGathered(_message.Message):
    __slots__ = ("group_id", "worker_id", "transfer_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    worker_id: int
    transfer_id: int
    def __init__(self, group_id: _Optional[int] = ..., worker_id: _Optional[int] = ..., transfer_id: _Optional[int] = ...) -> None: ...

class GroupLeft(_message.Message):
    __slots__ = ("group_id", "transfer_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    transfer_id: int
    def __init__(self, group_id: _Optional[int] = ..., transfer_id: _Optional[int] = ...) -> None: ...

class ReplicaReady(_message.Message):
    __slots__ = ("server_id", "address", "port")
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    server_id: int
    address: str
    port: int
    def __init__(self, server_id: _Optional[int] = ..., address: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ReportState(_message.Message):
    __slots__ = ("next_sequence",)
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    next_sequence: int
    def __init__(self, next_sequence: _Optional[int] = ...) -> None: ...

class StateReported(_message.Message):
    __slots__ = ("version", "checksum", "next_sequence", "lsn", "log", "step")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LSN_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    version: int
    checksum: int
    next_sequence: int
    lsn: int
    log: bytes
    step: float
    def __init__(self, version: _Optional[int] = ..., checksum: _Optional[int] = ..., next_sequence: _Optional[int] = ..., lsn: _Optional[int] = ..., log: _Optional[bytes] = ..., step: _Optional[float] = ...) -> None: ...

class CatchUp(_message.Message):
    __slots__ = ("log", "lsn", "next_sequence")
    LOG_FIELD_NUMBER: _ClassVar[int]
    LSN_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    log: bytes
    lsn: int
    next_sequence: int
    def __init__(self, log: _Optional[bytes] = ..., lsn: _Optional[int] = ..., next_sequence: _Optional[int] = ...) -> None: ...

class ReplicaReceived(_message.Message):
    __slots__ = ("worker_id", "transfer_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    transfer_id: int
    def __init__(self, worker_id: _Optional[int] = ..., transfer_id: _Optional[int] = ...) -> None: ...

class ReplicaFailed(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class ReplicaKnown(_message.Message):
    __slots__ = ("server_id", "address", "port")
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    server_id: int
    address: str
    port: int
    def __init__(self, server_id: _Optional[int] = ..., address: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ReplicaJoined(_message.Message):
    __slots__ = ("next_sequence", "hold_s")
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HOLD_S_FIELD_NUMBER: _ClassVar[int]
    next_sequence: int
    hold_s: float
    def __init__(self, next_sequence: _Optional[int] = ..., hold_s: _Optional[float] = ...) -> None: ...

class ReplicaLeft(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class CommitAllowed(_message.Message):
    __slots__ = ("next_sequence",)
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    next_sequence: int
    def __init__(self, next_sequence: _Optional[int] = ...) -> None: ...

class ServerMoved(_message.Message):
    __slots__ = ("server_id", "address", "port")
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    server_id: int
    address: str
    port: int
    def __init__(self, server_id: _Optional[int] = ..., address: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ReplicaPromoted(_message.Message):
    __slots__ = ("first_lost", "next_sequence")
    FIRST_LOST_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    first_lost: int
    next_sequence: int
    def __init__(self, first_lost: _Optional[int] = ..., next_sequence: _Optional[int] = ...) -> None: ...

class ModelRequested(_message.Message):
    __slots__ = ("transfer_id", "worker_id", "size_bytes")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    worker_id: int
    size_bytes: int
    def __init__(self, transfer_id: _Optional[int] = ..., worker_id: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class ModelDelivered(_message.Message):
    __slots__ = ("transfer_id",)
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    def __init__(self, transfer_id: _Optional[int] = ...) -> None: ...

class AllreduceRequested(_message.Message):
    __slots__ = ("transfer_id", "number", "size_bytes", "num_members", "wait_s")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    NUM_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    number: int
    size_bytes: int
    num_members: int
    wait_s: float
    def __init__(self, transfer_id: _Optional[int] = ..., number: _Optional[int] = ..., size_bytes: _Optional[int] = ..., num_members: _Optional[int] = ..., wait_s: _Optional[float] = ...) -> None: ...

class AllreduceNoted(_message.Message):
    __slots__ = ("transfer_id",)
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    def __init__(self, transfer_id: _Optional[int] = ...) -> None: ...

class VectorPiece(_message.Message):
    __slots__ = ("root_id", "start_byte", "stop_byte")
    ROOT_ID_FIELD_NUMBER: _ClassVar[int]
    START_BYTE_FIELD_NUMBER: _ClassVar[int]
    STOP_BYTE_FIELD_NUMBER: _ClassVar[int]
    root_id: int
    start_byte: int
    stop_byte: int
    def __init__(self, root_id: _Optional[int] = ..., start_byte: _Optional[int] = ..., stop_byte: _Optional[int] = ...) -> None: ...

class PieceLeg(_message.Message):
    __slots__ = ("piece", "receiver_id", "spans")
    PIECE_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_ID_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    piece: int
    receiver_id: int
    spans: _containers.RepeatedCompositeFieldContainer[RateSpan]
    def __init__(self, piece: _Optional[int] = ..., receiver_id: _Optional[int] = ..., spans: _Optional[_Iterable[_Union[RateSpan, _Mapping]]] = ...) -> None: ...

class AllreduceGranted(_message.Message):
    __slots__ = ("transfer_id", "pieces", "legs", "end_s")
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    LEGS_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    pieces: _containers.RepeatedCompositeFieldContainer[VectorPiece]
    legs: _containers.RepeatedCompositeFieldContainer[PieceLeg]
    end_s: float
    def __init__(self, transfer_id: _Optional[int] = ..., pieces: _Optional[_Iterable[_Union[VectorPiece, _Mapping]]] = ..., legs: _Optional[_Iterable[_Union[PieceLeg, _Mapping]]] = ..., end_s: _Optional[float] = ...) -> None: ...

class AllreduceFailed(_message.Message):
    __slots__ = ("transfer_id", "reason", "text", "worker_ids")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[AllreduceFailed.Reason]
        REFUSED: _ClassVar[AllreduceFailed.Reason]
        MISMATCH: _ClassVar[AllreduceFailed.Reason]
        MISSING: _ClassVar[AllreduceFailed.Reason]
        LOST: _ClassVar[AllreduceFailed.Reason]
    UNKNOWN: AllreduceFailed.Reason
    REFUSED: AllreduceFailed.Reason
    MISMATCH: AllreduceFailed.Reason
    MISSING: AllreduceFailed.Reason
    LOST: AllreduceFailed.Reason
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WORKER_IDS_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    reason: AllreduceFailed.Reason
    text: str
    worker_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, transfer_id: _Optional[int] = ..., reason: _Optional[_Union[AllreduceFailed.Reason, str]] = ..., text: _Optional[str] = ..., worker_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class AllreduceEnded(_message.Message):
    __slots__ = ("transfer_id",)
    TRANSFER_ID_FIELD_NUMBER: _ClassVar[int]
    transfer_id: int
    def __init__(self, transfer_id: _Optional[int] = ...) -> None: ...
