# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Blocking client of the operator API, for commands."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import grpc
from google.protobuf.message import Message

from ...hostlib.control.controller_addresses import ControllerAddresses, named_leader
from ...hostlib.credentials import (
    Credentials,
    CredentialsError,
    Role,
    require_choice,
    role_name,
)
from ...hostlib.credentials.grpc_channels import handshake_problem, open_channel
from ...hostlib.credentials.tokens import token_metadata, token_problem
from ...hostlib.errors import ConfigurationError
from ...hostlib.observing.logs import escaped
from ..errors import (
    ConfigError,
    ControllerError,
    ControllerUnreachableError,
    OperatorRefusedError,
)
from .endpoint import connect
from .operator_api import activity_pb2 as activity_pb
from .operator_api import fabric_pb2 as fabric_pb
from .operator_api import operator_pb2 as pb
from .operator_api import schedule_pb2 as schedule_pb
from .operator_token import (
    named_credentials,
    operator_credentials,
    operator_token,
    switch_credentials_at,
)
from .printable import escape_message

_R = TypeVar("_R", bound=Message)
_TIMEOUT_S: Final = 15.0
"""A read of counters waits for the switch, which may take 10 s."""
_CONNECT_TIMEOUT_S: Final = 3.0
_MAX_ANSWER_BYTES: Final = 64 << 20
_NO_CONTROLLER: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,  # it stopped, or stopped leading, before it had answered
)


class _Service(enum.Enum):
    """Full names of the controller's services for operators."""

    OPERATOR = pb.DESCRIPTOR.services_by_name["Operator"].full_name
    FABRIC = fabric_pb.DESCRIPTOR.services_by_name["Fabric"].full_name
    ACTIVITY = activity_pb.DESCRIPTOR.services_by_name["Activity"].full_name
    SCHEDULE = schedule_pb.DESCRIPTOR.services_by_name["Schedule"].full_name


class OperatorClient:
    """Client of one controller; ControllerError when it does not answer or refuses.

    The default `token` is that of the testbed at this address, else that of the environment; so are
    the default `credentials`, a folder of certificates. Without any, calls go to Unix sockets
    alone, unless `insecure`. Texts in answers are escaped, so that a terminal may print them.
    """

    def __init__(
        self,
        address: str,
        token: str = "",
        credentials: Path | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        """`address` may name several controllers of one database, separated by commas."""
        try:
            self._controllers = ControllerAddresses(address)
        except ConfigurationError as exc:
            raise ConfigError(str(exc)) from exc
        first = self._controllers.current
        self._own = credentials or named_credentials()
        folder = credentials or operator_credentials(first)
        self._credentials = None if folder is None else Credentials(folder)
        self._insecure = insecure
        self._may_call: set[str] = set()  # addresses
        self._token = token or operator_token(first)
        if problem := token_problem(self._token):
            raise ConfigError(f"the token for {address} {problem}")

    @property
    def address(self) -> str:
        """Address of the controller that has answered, or that is called first."""
        return self._controllers.current

    def at(self, address: str) -> OperatorClient:
        """Return a client of another controller, with the same token and certificate."""
        folder = None if self._credentials is None else self._credentials.folder
        return OperatorClient(address, self._token, folder, insecure=self._insecure)

    def folder_for_switch(self, address: str, given: Path | None) -> Path | None:
        """Return the folder of certificates for calls of the switch at `address`, None without.

        It is the `given` one, else that of the switch's testbed, else the operator's own. Raises
        ConfigError if there is none, and `address` is no Unix socket, unless `insecure`.
        """
        folder = given or switch_credentials_at(address) or self._own
        self._require_choice(folder, f"calls of the switch at {address}", address)
        return folder

    def _require_choice(self, folder: object, who: str, address: str) -> None:
        try:
            require_choice(
                folder,
                who=who,
                role=Role.OPERATOR,
                options=("--credentials or SWITCHFOLD_CREDENTIALS", "--insecure"),
                insecure=self._insecure,
                address=address,
            )
        except CredentialsError as exc:
            raise ConfigError(str(exc)) from exc

    def show_controller(self) -> pb.Controller:
        """Return the state of the controller itself, be it the leader or a standby."""
        return self._call(
            _Service.OPERATOR, "ShowController", pb.ShowControllerRequest(), pb.Controller
        )

    def list_jobs(self, *, include_ended: bool = False) -> list[pb.Job]:
        """Return jobs, oldest first, without counters."""
        request = pb.ListJobsRequest(include_ended=include_ended)
        return list(self._call(_Service.OPERATOR, "ListJobs", request, pb.ListJobsResponse).jobs)

    def show_job(self, name: str) -> pb.Job:
        """Return the newest job of this name with its counters."""
        return self._call(_Service.OPERATOR, "ShowJob", pb.ShowJobRequest(name=name), pb.Job)

    def stop_job(self, name: str) -> pb.Job:
        """End a job."""
        return self._call(_Service.OPERATOR, "StopJob", pb.StopJobRequest(name=name), pb.Job)

    def list_switches(self) -> list[pb.Switch]:
        """Return the controller's switches, without counters."""
        response = self._call(
            _Service.OPERATOR, "ListSwitches", pb.ListSwitchesRequest(), pb.ListSwitchesResponse
        )
        return list(response.switches)

    def show_switch(self, name: str) -> pb.Switch:
        """Return one switch with its counters."""
        return self._call(
            _Service.OPERATOR, "ShowSwitch", pb.ShowSwitchRequest(name=name), pb.Switch
        )

    def show_tree(self, name: str, tensor_bytes: int) -> fabric_pb.TreeReport:
        """Return a live job's trees, and the cost of an allreduce of so many bytes."""
        request = fabric_pb.ShowTreeRequest(name=name, tensor_bytes=tensor_bytes)
        return self._call(_Service.FABRIC, "ShowTree", request, fabric_pb.TreeReport)

    def list_links(self) -> list[fabric_pb.Link]:
        """Return the links between switches."""
        request = fabric_pb.ListLinksRequest()
        return list(
            self._call(_Service.FABRIC, "ListLinks", request, fabric_pb.ListLinksResponse).links
        )

    def set_link(self, name: str, *, is_up: bool) -> fabric_pb.Link:
        """Take a link out of use, or back into use."""
        request = fabric_pb.SetLinkRequest(name=name, is_up=is_up)
        return self._call(_Service.FABRIC, "SetLink", request, fabric_pb.Link)

    def set_switch(self, name: str, *, is_up: bool) -> str:
        """Take a switch out of all trees and routes, or back into them; return its state."""
        request = fabric_pb.SetSwitchRequest(name=name, is_up=is_up)
        return self._call(_Service.FABRIC, "SetSwitch", request, fabric_pb.SetSwitchResponse).state

    def show_schedule(self, name: str) -> schedule_pb.ScheduleReport:
        """Return the live transfers of a job."""
        request = schedule_pb.ShowScheduleRequest(name=name)
        return self._call(_Service.SCHEDULE, "ShowSchedule", request, schedule_pb.ScheduleReport)

    def show_activity(self, name: str) -> activity_pb.JobActivity:
        """Return what the slots and links of a live job do now."""
        request = activity_pb.ShowActivityRequest(name=name)
        return self._call(_Service.ACTIVITY, "ShowActivity", request, activity_pb.JobActivity)

    def _check_choice(self) -> None:
        """Raise before the first call without credentials; where nobody listens, say that."""
        if self.address in self._may_call:
            return
        who = f"calls of the controller at {self.address}"
        try:
            self._require_choice(self._credentials, who, self.address)
        except ConfigError as exc:
            try:
                connect(self.address, _CONNECT_TIMEOUT_S)
            except OSError:
                raise self._unreachable() from exc
            raise
        self._may_call.add(self.address)

    def _unreachable(self) -> ControllerUnreachableError:
        return ControllerUnreachableError(
            f"no controller answers at {' or '.join(self._controllers.all)}; start one with "
            "'switchfold controller run' or give --controller ADDRESS; `switchfold testbed status` "
            "shows the addresses of testbeds' controllers"
        )

    def _open(self, options: list[tuple[str, int]]) -> Any:
        self._check_choice()
        try:
            return open_channel(
                grpc,
                self._controllers.current,
                credentials=self._credentials,
                server=role_name(Role.CONTROLLER),
                options=options,
            )
        except CredentialsError as exc:
            raise ConfigError(str(exc)) from exc

    def _call(
        self, service: _Service, method: str, request: Message, response_type: type[_R]
    ) -> _R:
        """Ask the controllers in turn, and the leader that a standby names."""
        calls_left = len(self._controllers.all) + 1
        while True:
            calls_left -= 1
            try:
                response = self._call_one(service, method, request, response_type)
            except grpc.RpcError as exc:
                error = cast("grpc.Call", exc)
                leader = named_leader(error)
                if calls_left and error.code() in _NO_CONTROLLER and self._is_next(leader):
                    continue
                raise self._refusal(error) from exc
            escape_message(response)
            return response

    def _is_next(self, leader: str | None) -> bool:
        """Choose another controller to ask; return whether there is one."""
        before = self._controllers.current
        self._controllers.follow(leader or "")
        return self._controllers.current != before

    def _call_one(
        self, service: _Service, method: str, request: Message, response_type: type[_R]
    ) -> _R:
        options = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
        ]
        with self._open(options) as channel:
            call = channel.unary_unary(
                f"/{service.value}/{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=response_type.FromString,
            )
            return call(request, timeout=_TIMEOUT_S, metadata=token_metadata(self._token))

    def _refusal(self, error: grpc.Call) -> ControllerError:
        """Return our error for the status of a call."""
        if error.code() in _NO_CONTROLLER:
            server = role_name(Role.CONTROLLER)
            if problem := handshake_problem(self.address, self._credentials, server):
                return ConfigError(f"controller at {self.address}: {problem}")
            if named_leader(error) is not None:
                text = escaped(error.details() or "")
                return ControllerUnreachableError(f"controller at {self.address}: {text}")
            return self._unreachable()
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:  # also for HTTP 404 of any other server
            return OperatorRefusedError(
                f"the server at {self.address} is no controller of Switchfold, or one of another "
                f"release ({escaped(error.details() or '')}); give --controller ADDRESS: "
                "`switchfold testbed status` shows those of testbeds, and `listen` of the "
                "controller's file has its own"
            )
        return OperatorRefusedError(escaped(error.details() or str(error.code())))
