from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Path(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTO: _ClassVar[Path]
    SWITCH: _ClassVar[Path]
    HOST: _ClassVar[Path]
    TRANSPOSED: _ClassVar[Path]
AUTO: Path
SWITCH: Path
HOST: Path
TRANSPOSED: Path

class WorkerMessage(_message.Message):
    __slots__ = ("join_request", "heartbeat", "leave", "barrier", "view_ready", "view_entered", "stalled")
    JOIN_REQUEST_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    BARRIER_FIELD_NUMBER: _ClassVar[int]
    VIEW_READY_FIELD_NUMBER: _ClassVar[int]
    VIEW_ENTERED_FIELD_NUMBER: _ClassVar[int]
    STALLED_FIELD_NUMBER: _ClassVar[int]
    join_request: JoinRequest
    heartbeat: Heartbeat
    leave: Leave
    barrier: Barrier
    view_ready: ViewReady
    view_entered: ViewEntered
    stalled: Stalled
    def __init__(self, join_request: _Optional[_Union[JoinRequest, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ..., barrier: _Optional[_Union[Barrier, _Mapping]] = ..., view_ready: _Optional[_Union[ViewReady, _Mapping]] = ..., view_entered: _Optional[_Union[ViewEntered, _Mapping]] = ..., stalled: _Optional[_Union[Stalled, _Mapping]] = ...) -> None: ...

class ControllerMessage(_message.Message):
    __slots__ = ("join_reply", "barrier_released", "job_ended", "view_proposal", "view_commit", "missing", "controllers")
    JOIN_REPLY_FIELD_NUMBER: _ClassVar[int]
    BARRIER_RELEASED_FIELD_NUMBER: _ClassVar[int]
    JOB_ENDED_FIELD_NUMBER: _ClassVar[int]
    VIEW_PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    VIEW_COMMIT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    join_reply: JoinReply
    barrier_released: BarrierReleased
    job_ended: JobEnded
    view_proposal: ViewProposal
    view_commit: ViewCommit
    missing: Missing
    controllers: Controllers
    def __init__(self, join_reply: _Optional[_Union[JoinReply, _Mapping]] = ..., barrier_released: _Optional[_Union[BarrierReleased, _Mapping]] = ..., job_ended: _Optional[_Union[JobEnded, _Mapping]] = ..., view_proposal: _Optional[_Union[ViewProposal, _Mapping]] = ..., view_commit: _Optional[_Union[ViewCommit, _Mapping]] = ..., missing: _Optional[_Union[Missing, _Mapping]] = ..., controllers: _Optional[_Union[Controllers, _Mapping]] = ...) -> None: ...

class Controllers(_message.Message):
    __slots__ = ("addresses", "beat_s")
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    BEAT_S_FIELD_NUMBER: _ClassVar[int]
    addresses: _containers.RepeatedScalarFieldContainer[str]
    beat_s: float
    def __init__(self, addresses: _Optional[_Iterable[str]] = ..., beat_s: _Optional[float] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("job_name", "worker_id", "num_workers", "wire_version", "values_per_packet", "address", "mac", "udp_port", "ingress_port", "ingress_port_name", "slots_wanted", "switch_name", "resume", "join_timeout_s", "peer_address", "peer_port", "straggler", "weight", "path", "min_workers", "is_joining", "lease_s", "job_token", "job_run", "max_priority")
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
    SWITCH_NAME_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    JOIN_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PEER_PORT_FIELD_NUMBER: _ClassVar[int]
    STRAGGLER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MIN_WORKERS_FIELD_NUMBER: _ClassVar[int]
    IS_JOINING_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    JOB_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JOB_RUN_FIELD_NUMBER: _ClassVar[int]
    MAX_PRIORITY_FIELD_NUMBER: _ClassVar[int]
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
    switch_name: str
    resume: Resume
    join_timeout_s: float
    peer_address: str
    peer_port: int
    straggler: Straggler
    weight: float
    path: Path
    min_workers: int
    is_joining: bool
    lease_s: float
    job_token: str
    job_run: str
    max_priority: int
    def __init__(self, job_name: _Optional[str] = ..., worker_id: _Optional[int] = ..., num_workers: _Optional[int] = ..., wire_version: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., address: _Optional[str] = ..., mac: _Optional[str] = ..., udp_port: _Optional[int] = ..., ingress_port: _Optional[int] = ..., ingress_port_name: _Optional[str] = ..., slots_wanted: _Optional[int] = ..., switch_name: _Optional[str] = ..., resume: _Optional[_Union[Resume, _Mapping]] = ..., join_timeout_s: _Optional[float] = ..., peer_address: _Optional[str] = ..., peer_port: _Optional[int] = ..., straggler: _Optional[_Union[Straggler, _Mapping]] = ..., weight: _Optional[float] = ..., path: _Optional[_Union[Path, str]] = ..., min_workers: _Optional[int] = ..., is_joining: bool = ..., lease_s: _Optional[float] = ..., job_token: _Optional[str] = ..., job_run: _Optional[str] = ..., max_priority: _Optional[int] = ...) -> None: ...

class Straggler(_message.Message):
    __slots__ = ("quorum", "deadline_s", "tolerance")
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    quorum: int
    deadline_s: float
    tolerance: Tolerance
    def __init__(self, quorum: _Optional[int] = ..., deadline_s: _Optional[float] = ..., tolerance: _Optional[_Union[Tolerance, _Mapping]] = ...) -> None: ...

class Tolerance(_message.Message):
    __slots__ = ("loss", "worker_floor", "stale")
    LOSS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FLOOR_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    loss: float
    worker_floor: float
    stale: float
    def __init__(self, loss: _Optional[float] = ..., worker_floor: _Optional[float] = ..., stale: _Optional[float] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("job_number", "generation", "proposed", "secret")
    JOB_NUMBER_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    job_number: int
    generation: int
    proposed: int
    secret: bytes
    def __init__(self, job_number: _Optional[int] = ..., generation: _Optional[int] = ..., proposed: _Optional[int] = ..., secret: _Optional[bytes] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("generation", "num_workers", "members", "trees", "child_id", "worker_bitmap", "switch_address", "switch_mac", "switch_udp_port", "quorum", "deadline_s", "reason", "neighbours", "tolerance", "max_priority", "is_on_host")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    CHILD_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_BITMAP_FIELD_NUMBER: _ClassVar[int]
    SWITCH_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_MAC_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    IS_ON_HOST_FIELD_NUMBER: _ClassVar[int]
    generation: int
    num_workers: int
    members: _containers.RepeatedCompositeFieldContainer[Member]
    trees: _containers.RepeatedCompositeFieldContainer[Tree]
    child_id: int
    worker_bitmap: int
    switch_address: str
    switch_mac: str
    switch_udp_port: int
    quorum: int
    deadline_s: float
    reason: str
    neighbours: _containers.RepeatedScalarFieldContainer[int]
    tolerance: Tolerance
    max_priority: int
    is_on_host: bool
    def __init__(self, generation: _Optional[int] = ..., num_workers: _Optional[int] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., trees: _Optional[_Iterable[_Union[Tree, _Mapping]]] = ..., child_id: _Optional[int] = ..., worker_bitmap: _Optional[int] = ..., switch_address: _Optional[str] = ..., switch_mac: _Optional[str] = ..., switch_udp_port: _Optional[int] = ..., quorum: _Optional[int] = ..., deadline_s: _Optional[float] = ..., reason: _Optional[str] = ..., neighbours: _Optional[_Iterable[int]] = ..., tolerance: _Optional[_Union[Tolerance, _Mapping]] = ..., max_priority: _Optional[int] = ..., is_on_host: bool = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("worker_id", "address", "peer_address", "peer_port")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PEER_PORT_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    address: str
    peer_address: str
    peer_port: int
    def __init__(self, worker_id: _Optional[int] = ..., address: _Optional[str] = ..., peer_address: _Optional[str] = ..., peer_port: _Optional[int] = ...) -> None: ...

class Tree(_message.Message):
    __slots__ = ("tree_id", "slot_count", "members", "level", "switch_address", "switch_udp_port")
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SWITCH_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    tree_id: int
    slot_count: int
    members: int
    level: int
    switch_address: str
    switch_udp_port: int
    def __init__(self, tree_id: _Optional[int] = ..., slot_count: _Optional[int] = ..., members: _Optional[int] = ..., level: _Optional[int] = ..., switch_address: _Optional[str] = ..., switch_udp_port: _Optional[int] = ...) -> None: ...

class ViewProposal(_message.Message):
    __slots__ = ("generation", "is_abort", "reason")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    IS_ABORT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    generation: int
    is_abort: bool
    reason: str
    def __init__(self, generation: _Optional[int] = ..., is_abort: bool = ..., reason: _Optional[str] = ...) -> None: ...

class ViewReady(_message.Message):
    __slots__ = ("generation", "position")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    position: int
    def __init__(self, generation: _Optional[int] = ..., position: _Optional[int] = ...) -> None: ...

class ViewCommit(_message.Message):
    __slots__ = ("view", "boundary", "source_worker")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_WORKER_FIELD_NUMBER: _ClassVar[int]
    view: View
    boundary: int
    source_worker: int
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ..., boundary: _Optional[int] = ..., source_worker: _Optional[int] = ...) -> None: ...

class ViewEntered(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class Stalled(_message.Message):
    __slots__ = ("generation", "missing_workers", "silent_s", "submitted", "silent_tree")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    MISSING_WORKERS_FIELD_NUMBER: _ClassVar[int]
    SILENT_S_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    SILENT_TREE_FIELD_NUMBER: _ClassVar[int]
    generation: int
    missing_workers: _containers.RepeatedScalarFieldContainer[int]
    silent_s: float
    submitted: _containers.RepeatedCompositeFieldContainer[Submitted]
    silent_tree: int
    def __init__(self, generation: _Optional[int] = ..., missing_workers: _Optional[_Iterable[int]] = ..., silent_s: _Optional[float] = ..., submitted: _Optional[_Iterable[_Union[Submitted, _Mapping]]] = ..., silent_tree: _Optional[int] = ...) -> None: ...

class Submitted(_message.Message):
    __slots__ = ("number", "is_awaited", "num_elements", "dtype", "operation", "label", "tolerance")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    IS_AWAITED_FIELD_NUMBER: _ClassVar[int]
    NUM_ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    number: int
    is_awaited: bool
    num_elements: int
    dtype: str
    operation: str
    label: str
    tolerance: Tolerance
    def __init__(self, number: _Optional[int] = ..., is_awaited: bool = ..., num_elements: _Optional[int] = ..., dtype: _Optional[str] = ..., operation: _Optional[str] = ..., label: _Optional[str] = ..., tolerance: _Optional[_Union[Tolerance, _Mapping]] = ...) -> None: ...

class Missing(_message.Message):
    __slots__ = ("generation", "missing_workers")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    MISSING_WORKERS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    missing_workers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, generation: _Optional[int] = ..., missing_workers: _Optional[_Iterable[int]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ("position",)
    POSITION_FIELD_NUMBER: _ClassVar[int]
    position: int
    def __init__(self, position: _Optional[int] = ...) -> None: ...

class Barrier(_message.Message):
    __slots__ = ("name", "use")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    name: str
    use: int
    def __init__(self, name: _Optional[str] = ..., use: _Optional[int] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("job_number", "view", "boundary", "values_per_packet", "wire_version", "lease_s", "barriers_released", "resume_secret")
    JOB_NUMBER_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    BARRIERS_RELEASED_FIELD_NUMBER: _ClassVar[int]
    RESUME_SECRET_FIELD_NUMBER: _ClassVar[int]
    job_number: int
    view: View
    boundary: int
    values_per_packet: int
    wire_version: int
    lease_s: float
    barriers_released: _containers.RepeatedCompositeFieldContainer[BarrierReleased]
    resume_secret: bytes
    def __init__(self, job_number: _Optional[int] = ..., view: _Optional[_Union[View, _Mapping]] = ..., boundary: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., wire_version: _Optional[int] = ..., lease_s: _Optional[float] = ..., barriers_released: _Optional[_Iterable[_Union[BarrierReleased, _Mapping]]] = ..., resume_secret: _Optional[bytes] = ...) -> None: ...

class BarrierReleased(_message.Message):
    __slots__ = ("name", "use")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    name: str
    use: int
    def __init__(self, name: _Optional[str] = ..., use: _Optional[int] = ...) -> None: ...

class JobEnded(_message.Message):
    __slots__ = ("reason", "is_mismatch")
    REASON_FIELD_NUMBER: _ClassVar[int]
    IS_MISMATCH_FIELD_NUMBER: _ClassVar[int]
    reason: str
    is_mismatch: bool
    def __init__(self, reason: _Optional[str] = ..., is_mismatch: bool = ...) -> None: ...

class RowServerMessage(_message.Message):
    __slots__ = ("attach", "heartbeat", "set_rows")
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    SET_ROWS_FIELD_NUMBER: _ClassVar[int]
    attach: AttachRowServer
    heartbeat: Heartbeat
    set_rows: SetRows
    def __init__(self, attach: _Optional[_Union[AttachRowServer, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., set_rows: _Optional[_Union[SetRows, _Mapping]] = ...) -> None: ...

class RowControllerMessage(_message.Message):
    __slots__ = ("row_view", "rows_installed", "job_ended", "controllers")
    ROW_VIEW_FIELD_NUMBER: _ClassVar[int]
    ROWS_INSTALLED_FIELD_NUMBER: _ClassVar[int]
    JOB_ENDED_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    row_view: RowView
    rows_installed: RowsInstalled
    job_ended: JobEnded
    controllers: Controllers
    def __init__(self, row_view: _Optional[_Union[RowView, _Mapping]] = ..., rows_installed: _Optional[_Union[RowsInstalled, _Mapping]] = ..., job_ended: _Optional[_Union[JobEnded, _Mapping]] = ..., controllers: _Optional[_Union[Controllers, _Mapping]] = ...) -> None: ...

class AttachRowServer(_message.Message):
    __slots__ = ("job_name", "server_id", "identity", "wire_version", "values_per_packet", "address", "mac", "udp_port", "ingress_port", "ingress_port_name", "switch_name", "rows_wanted", "job_token")
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    INGRESS_PORT_FIELD_NUMBER: _ClassVar[int]
    INGRESS_PORT_NAME_FIELD_NUMBER: _ClassVar[int]
    SWITCH_NAME_FIELD_NUMBER: _ClassVar[int]
    ROWS_WANTED_FIELD_NUMBER: _ClassVar[int]
    JOB_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_name: str
    server_id: int
    identity: bytes
    wire_version: int
    values_per_packet: int
    address: str
    mac: str
    udp_port: int
    ingress_port: int
    ingress_port_name: str
    switch_name: str
    rows_wanted: int
    job_token: str
    def __init__(self, job_name: _Optional[str] = ..., server_id: _Optional[int] = ..., identity: _Optional[bytes] = ..., wire_version: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., address: _Optional[str] = ..., mac: _Optional[str] = ..., udp_port: _Optional[int] = ..., ingress_port: _Optional[int] = ..., ingress_port_name: _Optional[str] = ..., switch_name: _Optional[str] = ..., rows_wanted: _Optional[int] = ..., job_token: _Optional[str] = ...) -> None: ...

class SetRows(_message.Message):
    __slots__ = ("generation", "number", "rows", "epochs", "exponents")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    EXPONENTS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    number: int
    rows: _containers.RepeatedScalarFieldContainer[int]
    epochs: _containers.RepeatedScalarFieldContainer[int]
    exponents: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, generation: _Optional[int] = ..., number: _Optional[int] = ..., rows: _Optional[_Iterable[int]] = ..., epochs: _Optional[_Iterable[int]] = ..., exponents: _Optional[_Iterable[int]] = ...) -> None: ...

class RowView(_message.Message):
    __slots__ = ("generation", "tree_id", "first_row", "num_rows", "values_per_packet", "worker_id", "switch_address", "switch_mac", "switch_udp_port", "num_workers", "members", "reason")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TREE_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROW_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SWITCH_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_MAC_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    generation: int
    tree_id: int
    first_row: int
    num_rows: int
    values_per_packet: int
    worker_id: int
    switch_address: str
    switch_mac: str
    switch_udp_port: int
    num_workers: int
    members: _containers.RepeatedCompositeFieldContainer[RowMember]
    reason: str
    def __init__(self, generation: _Optional[int] = ..., tree_id: _Optional[int] = ..., first_row: _Optional[int] = ..., num_rows: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., worker_id: _Optional[int] = ..., switch_address: _Optional[str] = ..., switch_mac: _Optional[str] = ..., switch_udp_port: _Optional[int] = ..., num_workers: _Optional[int] = ..., members: _Optional[_Iterable[_Union[RowMember, _Mapping]]] = ..., reason: _Optional[str] = ...) -> None: ...

class RowMember(_message.Message):
    __slots__ = ("worker_id", "child_id", "worker_bitmap", "switch_address", "switch_udp_port")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_BITMAP_FIELD_NUMBER: _ClassVar[int]
    SWITCH_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    worker_id: int
    child_id: int
    worker_bitmap: int
    switch_address: str
    switch_udp_port: int
    def __init__(self, worker_id: _Optional[int] = ..., child_id: _Optional[int] = ..., worker_bitmap: _Optional[int] = ..., switch_address: _Optional[str] = ..., switch_udp_port: _Optional[int] = ...) -> None: ...

class RowsInstalled(_message.Message):
    __slots__ = ("generation", "number")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    generation: int
    number: int
    def __init__(self, generation: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...
