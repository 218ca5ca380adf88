# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns a recorder's records into readable steps."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..compilation.compiler import TracedProgram
from ..switch.pipeline import IntrinsicT, PacketInfo
from . import records
from .control_steps import ControlSteps, EntryText
from .parser_steps import ParserSteps
from .records import TraceRecord
from .snapshot import PhvLayout, Snapshot
from .sources import Sources
from .state import PacketState
from .step import Step

DROP_PORT = 511
NONE = 2**32 - 1
INGRESS_CLONE = 1
_INSTANCES = {
    0: "normal",
    1: "clone from ingress",
    2: "clone from egress",
    3: "coalesced",
    4: "recirculated",
    5: "multicast copy",
    6: "resubmitted",
}


class Narrator:
    """Turns one stream of records into steps; it needs the records in order."""

    def __init__(
        self,
        program: TracedProgram,
        layout: PhvLayout,
        *,
        json_path: Path | None = None,
        p4_sources: Iterable[Path] = (),
        entry_text: EntryText = lambda _table, _entry: None,
        drop_port: int = DROP_PORT,
    ) -> None:
        self._points = program.points
        self._drop_port = drop_port
        sources = Sources(json_path, tuple(p4_sources))
        self._state = PacketState(program.model, layout, sources)
        self._parser = ParserSteps(self._state)
        self._control = ControlSteps(self._state, drop_port, entry_text)
        self._expected: str | None = None
        """The reason to report if the packet itself does not enter egress."""
        self._unsent: str | None = None
        """The reason to report if the copy in egress is not sent."""
        self._egress_port = 0
        self._is_recirculated = False
        self._limit = NONE

    def tell(self, stream: Iterable[TraceRecord]) -> Iterator[Step]:
        """Yield the steps of records."""
        for record in stream:
            if record.kind == records.MEMORY:
                self._control.memory(record.data)
                continue
            yield from self._control.finish_action()
            yield from self._record(record)

    def finish(self) -> Iterator[Step]:
        """Yield the remaining steps of the last packet."""
        yield from self._control.finish_action()
        yield from self._missing(is_over=True)

    def _record(self, record: TraceRecord) -> Iterator[Step]:
        match record.kind:
            case records.POINT:
                yield from self._point(record)
            case records.START:
                is_clone = bool(record.number)
                yield from self._missing(is_over=not is_clone)
                yield from self._start(PacketInfo.from_buffer_copy(record.data), is_clone)
            case records.FRAME:
                yield from self._frame(record.data)
            case records.INGRESS:
                yield from self._after_ingress(IntrinsicT.from_buffer_copy(record.data))
            case records.COPY:
                yield from self._copy(PacketInfo.from_buffer_copy(record.data))
            case records.EGRESS:
                yield from self._after_egress(IntrinsicT.from_buffer_copy(record.data))
            case _:
                yield from self._sent(record.data)

    def _point(self, record: TraceRecord) -> list[Step]:  # noqa: PLR0911 - one sentence per event
        state, point, values = self._state, self._points[record.number], record.values
        state.before, state.now = state.now, Snapshot(state.layout, record.data)
        match point.kind:
            case "state":
                return self._parser.enter(point)
            case "operation":
                return self._parser.operation(point, values[0])
            case "select":
                return self._parser.select(point, values[0])
            case "end":
                steps = self._parser.end(values[0], values[1])
                state.stage = "ingress"
                return steps
            case "condition" | "branch":
                if point.kind == "condition":
                    state.depth = 1
                return self._control.condition(point, bool(values[0]))
            case "table":
                return self._control.table(point, bool(values[0]), values[1], values[2])
            case "action":
                return self._control.action(point)
            case "statement":
                return self._control.statement(point)
            case "verify" | "update":
                return self._checksum(point.kind, record)
            case "emit":
                state.stage, state.depth = "deparser", 1
                return self._control.emit(point, values[0], values[1])
            case _:
                return []

    def _checksum(self, kind: str, record: TraceRecord) -> list[Step]:
        state = self._state
        stage, state.stage, state.depth = state.stage, "checksums", 1
        steps = self._control.checksum(self._points[record.number])
        state.stage = stage if kind == "verify" else "deparser"
        return steps

    def _start(self, info: PacketInfo, is_clone: bool) -> Iterator[Step]:
        state = self._state
        state.before = state.now = None
        state.stage, state.depth = "arrival", 0
        if is_clone:
            yield state.step("arrival", "clone from ingress: parsed again", instance=_INSTANCES[1])
            return
        state.dropped_at = None
        if info.instance_type == 0:
            state.number += 1
        kind = _INSTANCES.get(info.instance_type, str(info.instance_type))
        text = f"port {info.ingress_port}" if info.instance_type == 0 else kind
        yield state.step(
            "arrival",
            f"packet {state.number}: {text}, {info.packet_length} bytes",
            port=int(info.ingress_port),
            bytes=int(info.packet_length),
            instance=kind,
            timestamp_us=int(info.ingress_global_timestamp),
        )

    def _frame(self, frame: bytes) -> Iterator[Step]:
        state = self._state
        state.frame = frame
        state.depth = 1
        yield state.step("frame", frame.hex(), frame=frame.hex())

    def _after_ingress(self, out: IntrinsicT) -> Iterator[Step]:
        state = self._state
        state.stage, state.depth = "replication", 0
        yield from self._requests(out, "ingress")
        if out.resubmit_fields != NONE:
            self._expected = None
        elif out.mcast_grp:
            text = f"multicast group {out.mcast_grp}"
            self._expected = f"nothing sent: {text} does not exist or is empty"
            yield state.step("multicast", text, group=int(out.mcast_grp))
        elif out.egress_spec == self._drop_port:
            yield self._drop(f"dropped: egress_spec is the drop port ({self._drop_port})")
        else:
            why = (
                f"priority {out.priority} has no queue"
                if out.priority
                else "nothing entered egress"
            )
            self._expected = f"dropped: {why} for port {out.egress_spec}"

    def _requests(self, out: IntrinsicT, stage: str) -> Iterator[Step]:
        state = self._state
        if out.clone_session != NONE:
            text = f"clone from {stage}: session {out.clone_session}"
            if out.clone_fields:
                text += f", keeps field list {out.clone_fields}"
            yield state.step("clone", text, session=int(out.clone_session))
        if out.digest_list:
            yield state.step(
                "digest", f"digest: learn list {out.digest_list}", list=int(out.digest_list)
            )
        if out.resubmit_fields != NONE and stage == "ingress":
            yield state.step(
                "resubmit", "resubmit: the packet starts again", fields=int(out.resubmit_fields)
            )
        if out.recirculate_fields != NONE and stage == "egress":
            yield state.step(
                "recirculate", "recirculate after the deparser", fields=int(out.recirculate_fields)
            )
        if out.truncate_bytes != NONE:
            yield state.step(
                "truncate", f"truncate to {out.truncate_bytes} bytes", bytes=int(out.truncate_bytes)
            )

    def _drop(self, text: str) -> Step:
        source = self._state.dropped_at
        self._expected = None
        return self._state.step("drop", text, source=source, reason=text)

    def _missing(self, *, is_over: bool) -> Iterator[Step]:
        """Yield why a copy was not sent; at the end of the packet, also why it had no copy."""
        state = self._state
        reasons = [self._unsent, self._expected if is_over else None]
        self._unsent = None
        if is_over:
            self._expected = None
        for reason in reasons:
            if reason is not None:
                state.stage, state.depth = "replication", 0
                yield self._drop(reason)

    def _copy(self, info: PacketInfo) -> Iterator[Step]:
        state = self._state
        yield from self._missing(is_over=False)
        if info.instance_type != INGRESS_CLONE:
            self._expected = None
            state.dropped_at = None
        state.before = state.now = None
        state.stage, state.depth = "egress", 0
        self._egress_port = int(info.egress_port)
        kind = _INSTANCES.get(info.instance_type, str(info.instance_type))
        text = f"to egress: port {info.egress_port}, {kind}"
        if info.egress_rid:
            text += f", replica {info.egress_rid}"
        yield state.step(
            "copy", text, port=self._egress_port, rid=int(info.egress_rid), instance=kind
        )

    def _after_egress(self, out: IntrinsicT) -> Iterator[Step]:
        state = self._state
        state.depth = 0
        yield from self._requests(out, "egress")
        self._is_recirculated = out.recirculate_fields != NONE
        self._limit = int(out.truncate_bytes)
        if out.egress_spec == self._drop_port:
            text = f"dropped in egress: egress_spec is the drop port ({self._drop_port})"
            source = state.dropped_at
            yield state.step("drop", text, source=source, reason=text)
        else:
            self._unsent = f"dropped: port {self._egress_port} does not exist"

    def _sent(self, frame: bytes) -> Iterator[Step]:
        state = self._state
        self._unsent = None
        state.stage, state.depth = "deparser", 0
        if self._is_recirculated:
            yield state.step("again", f"recirculated: {len(frame)} bytes", bytes=len(frame))
            return
        frame = frame[: self._limit]
        yield state.step(
            "sent",
            f"out: port {self._egress_port}, {len(frame)} bytes",
            details=(frame.hex(),),
            port=self._egress_port,
            bytes=len(frame),
            frame=frame.hex(),
        )
