# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Forwarding pipeline configurations and their state: verify, save, commit."""

import logging
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from finsy.proto import p4r, rpc_code

from ...errors import ProgramError, SoftswitchError
from ...program.bmv2_json import read_program
from ...program.model import Program
from ..entities.stores import Stores
from ..p4info.p4info import build_schema
from ..p4info.schema import Schema
from ..writes.journal import Backend
from ..writes.reconcile import carry_over, snapshot, write_all
from ..writes.recorder import RecordingDataPlane
from .dataplane import DataPlane
from .status import PipelineConfigError, RequestError, request_error

Compile = Callable[[Path], Any]
"""`softswitch.compile_program`, or a fake in tests."""
SetRequest = p4r.SetForwardingPipelineConfigRequest
GetRequest = p4r.GetForwardingPipelineConfigRequest
logger = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class Pipeline:
    """A configuration and the state that controllers have written for it."""

    config: p4r.ForwardingPipelineConfig
    schema: Schema
    backend: Backend
    stores: Stores
    program: Any = None
    """The CompiledProgram."""

    def commit(self, target: DataPlane) -> None:
        """Replay the recorded writes on the loaded program, and write to it from now on.

        Raises SoftswitchError if the data plane refuses a write; the recorded writes stay.
        """
        recorder = self.backend.dataplane
        self.open_tables(target)
        recorder.replay(target)
        self.backend.dataplane = target

    def open_tables(self, target: DataPlane) -> None:
        """Make the entries that the program declares changeable unless they are const."""
        for table in self.schema.tables.values():
            if table.program.entries and not table.is_const:
                target.tables.open(table.position)


class PipelineConfig:
    """The running and the saved configuration of one switch. The caller serialises calls."""

    def __init__(self, dataplane: DataPlane, compile_program: Compile) -> None:
        self._dataplane = dataplane
        self._compile = compile_program
        self.running: Pipeline | None = None
        """Read without a lock by the threads of the data plane."""
        self.saved: Pipeline | None = None

    def current(self) -> Pipeline:
        """Return what Read and Write refer to: the saved configuration, or the running one."""
        pipeline = self.saved or self.running
        if pipeline is None:
            raise RequestError(
                rpc_code.FAILED_PRECONDITION,
                "No forwarding pipeline config is set; use SetForwardingPipelineConfig",
            )
        return pipeline

    def prepare(self, request: p4r.SetForwardingPipelineConfigRequest) -> Pipeline | None:
        """Check a request, and compile its program if necessary; changes nothing."""
        action = request.action
        if action not in _ACTIONS:
            raise RequestError(rpc_code.INVALID_ARGUMENT, f"action {action}: is not an action")
        if action == SetRequest.COMMIT:
            if request.HasField("config"):
                raise PipelineConfigError(
                    "config: COMMIT takes none; it commits the saved configuration"
                )
            return None
        if not request.HasField("config"):
            raise PipelineConfigError("config: is missing")
        running = self.running
        if (
            action == SetRequest.RECONCILE_AND_COMMIT
            and running is not None
            and _is_same_program(running.config, request.config)
        ):
            return None
        return self._verify(request.config)

    def apply(
        self, request: p4r.SetForwardingPipelineConfigRequest, pipeline: Pipeline | None
    ) -> None:
        """Carry out a request that `prepare` has accepted."""
        action = request.action
        if action == SetRequest.COMMIT:
            self._commit_saved()
        elif action == SetRequest.RECONCILE_AND_COMMIT:
            self._reconcile(request.config, pipeline)
        elif action == SetRequest.VERIFY_AND_SAVE:
            self.saved = pipeline
        elif action == SetRequest.VERIFY_AND_COMMIT:
            assert pipeline is not None
            self._replace(pipeline)

    def get(self, response_type: int) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the requested parts of the current configuration; empty if there is none."""
        response = p4r.GetForwardingPipelineConfigResponse()
        pipeline = self.saved or self.running
        if pipeline is None:
            return response
        config = pipeline.config
        response.config.SetInParent()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if response_type in {GetRequest.ALL, GetRequest.P4INFO_AND_COOKIE}:
            response.config.p4info.CopyFrom(config.p4info)
        if response_type in {GetRequest.ALL, GetRequest.DEVICE_CONFIG_AND_COOKIE}:
            response.config.p4_device_config = config.p4_device_config
        return response

    def adopt(
        self, config: p4r.ForwardingPipelineConfig, model: Program, program: Any = None
    ) -> None:
        """Serve a program that the switch runs already."""
        pipeline = self._build(config, model)
        pipeline.program = program
        pipeline.open_tables(self._dataplane)
        pipeline.backend.dataplane = self._dataplane
        self.running = pipeline

    def _verify(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        with tempfile.TemporaryDirectory(prefix="softswitch-") as folder:
            path = Path(folder, "program.json")
            path.write_bytes(config.p4_device_config)
            try:
                model = read_program(path)
                # P4Info and JSON are compared before the compilation, because that is quick.
                pipeline = self._build(config, model)
                # The program's own name lets the compiler's cache find the library again.
                named = path.rename(path.with_name(f"{_file_stem(model)}.json"))
                pipeline.program = self._compile(named)
            except ProgramError as exc:
                raise PipelineConfigError(f"p4_device_config: {exc}") from exc
        return pipeline

    def _build(self, config: p4r.ForwardingPipelineConfig, model: Program) -> Pipeline:
        schema = build_schema(config.p4info, model)
        for warning in schema.warnings:
            logger.warning("%s", warning)
        kept = p4r.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        backend = Backend(RecordingDataPlane(schema.tables.values()))
        return Pipeline(config=kept, schema=schema, backend=backend, stores=Stores(schema, backend))

    def _replace(self, pipeline: Pipeline) -> None:
        old = self.running
        with self._dataplane.atomically():
            has_writes = pipeline.backend.dataplane.has_writes
            kept = snapshot(old.stores, old.schema) if old is not None and has_writes else ()
            self._dataplane.load(pipeline.program)
            try:
                pipeline.commit(self._dataplane)
            except SoftswitchError as exc:
                fate = self._restore(old, kept)
                raise RequestError(
                    request_error(exc).code,
                    f"the saved writes for the new program failed: {exc}; {fate}",
                ) from exc
            self.running = pipeline
        self.saved = None

    def _restore(self, old: Pipeline | None, kept: Iterable[p4r.Update]) -> str:
        """Restore the previous program and its state, or no program; say what runs now."""
        self.running = None
        if old is None or old.program is None:
            self._dataplane.load(None)
            return "the switch has no program now"
        backend = Backend(self._dataplane)
        stores = Stores(old.schema, backend)
        try:
            self._dataplane.load(old.program)
            old.open_tables(self._dataplane)
            write_all(kept, stores, backend.journal)
        except SoftswitchError as exc:
            self._dataplane.load(None)
            return (
                f"the previous program cannot be restored either ({exc}): "
                "the switch has no program now"
            )
        self.running = replace(old, backend=backend, stores=stores)
        return "the previous program still runs"

    def _commit_saved(self) -> None:
        if self.saved is None:
            raise RequestError(
                rpc_code.NOT_FOUND, "COMMIT: no saved config; use VERIFY_AND_SAVE first"
            )
        self._replace(self.saved)

    def _reconcile(self, config: p4r.ForwardingPipelineConfig, pipeline: Pipeline | None) -> None:
        running = self.running
        if running is None:
            assert pipeline is not None
            self._replace(pipeline)
        elif _is_same_program(running.config, config):
            running.config.CopyFrom(config)
            self.saved = None
        else:
            new = pipeline or self._verify(config)
            # No packet passes between the copy of the state and the start of the new program.
            with self._dataplane.atomically():
                carry_over(
                    running.stores,
                    new.stores,
                    new.backend.journal,
                    running.config.p4info,
                    config.p4info,
                )
                self._replace(new)


_ACTIONS = {
    SetRequest.COMMIT,
    SetRequest.VERIFY,
    SetRequest.VERIFY_AND_SAVE,
    SetRequest.VERIFY_AND_COMMIT,
    SetRequest.RECONCILE_AND_COMMIT,
}


def _is_same_program(
    one: p4r.ForwardingPipelineConfig, other: p4r.ForwardingPipelineConfig
) -> bool:
    return one.p4_device_config == other.p4_device_config and one.p4info == other.p4info


def _file_stem(model: Program) -> str:
    source = str(model.json.get("program") or "")
    return re.sub(r"[^A-Za-z0-9_.-]", "_", Path(source).stem).lstrip(".") or "program"
