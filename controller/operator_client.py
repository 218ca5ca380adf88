# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Blocking client of the operator API, for commands."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

import grpc

from controller.errors import ControllerUnreachableError, OperatorRefusedError
from controller.operator_api import operator_pb2 as pb
from controller.operator_api import operator_pb2_grpc

_R = TypeVar("_R")
_TIMEOUT_S: Final = 15.0
"""Reads of counters go through to the switch, which has 10 s."""
_NO_CONTROLLER: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class OperatorClient:
    """One controller, as an operator sees it; ControllerError when it is gone or refuses."""

    def __init__(self, address: str) -> None:
        self.address = address

    def list_jobs(self, *, include_ended: bool = False) -> list[pb.Job]:
        """Return jobs, oldest first, without counters."""
        request = pb.ListJobsRequest(include_ended=include_ended)
        return list(self._call("ListJobs", request, pb.ListJobsResponse).jobs)

    def show_job(self, name: str) -> pb.Job:
        """Return the newest job of this name with its counters."""
        return self._call("ShowJob", pb.ShowJobRequest(name=name), pb.Job)

    def stop_job(self, name: str) -> pb.Job:
        """End a job."""
        return self._call("StopJob", pb.StopJobRequest(name=name), pb.Job)

    def list_switches(self) -> list[pb.Switch]:
        """Return the controller's switches, without counters."""
        response = self._call("ListSwitches", pb.ListSwitchesRequest(), pb.ListSwitchesResponse)
        return list(response.switches)

    def show_switch(self, name: str) -> pb.Switch:
        """Return one switch with its counters."""
        return self._call("ShowSwitch", pb.ShowSwitchRequest(name=name), pb.Switch)

    def _call(self, method: str, request: object, response_type: type[_R]) -> _R:
        options = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(self.address, options) as channel:
            stub = cast("Any", operator_pb2_grpc).OperatorStub(channel)
            try:
                response = getattr(stub, method)(request, timeout=_TIMEOUT_S)
            except grpc.RpcError as exc:
                error = cast("grpc.Call", exc)
                if error.code() in _NO_CONTROLLER:
                    raise ControllerUnreachableError(
                        f"no controller answers at {self.address}; start one with 'switchfold "
                        "controller run' or give --controller HOST:PORT"
                    ) from exc
                raise OperatorRefusedError(error.details() or str(error.code())) from exc
        assert isinstance(response, response_type)
        return response
