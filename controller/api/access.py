# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Access to methods: the role that a method needs, and the guard before every method.

No service checks certificates or tokens itself. The guard checks every call, and a method that it
does not know needs the strictest role, so that no new method is open by mistake.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from ...hostlib.control.session_api import session_pb2
from ...hostlib.control.transfers_api import transfers_pb2
from ...hostlib.credentials.callers import CallerCertificates
from ...hostlib.credentials.grpc_guard import behaviour_of, caller_status, with_behaviour
from ...hostlib.credentials.roles import Role
from ...hostlib.credentials.tokens import HEADER, SCHEME, token_problem
from ...hostlib.errors import CallerRoleError, UnknownCallerError
from ..errors import ConfigError, JobError, RoleError, TokenError
from .callers.refusal_log import RefusalLog

_SESSIONS: Final = session_pb2.DESCRIPTOR.services_by_name["SwitchfoldSession"].full_name
_TRANSFERS: Final = transfers_pb2.DESCRIPTOR.services_by_name["Transfers"].full_name


def required_role(method: MethodDescriptor) -> Role:
    """Return the role that a method needs; its .proto file says whether it has side effects."""
    if method.containing_service.full_name == _SESSIONS:
        return Role.SERVER if method.name == "ServeRows" else Role.WORKER
    if method.containing_service.full_name == _TRANSFERS:
        return Role.WORKER if method.name == "FollowAsWorker" else Role.SERVER
    level = method.GetOptions().idempotency_level
    return Role.READ_ONLY if level == MethodOptions.NO_SIDE_EFFECTS else Role.OPERATOR


def allowed_roles(role: Role) -> frozenset[Role]:
    """Return the roles of certificates that may call a method which needs `role`."""
    return frozenset((role, Role.OPERATOR))


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The secrets of a controller. Without any, all calls are open; with any, no call is."""

    worker: str = field(default="", repr=False)
    """Opens sessions; if `operator` is unset, everything."""
    operator: str = field(default="", repr=False)
    """Opens everything."""
    read_only: str = field(default="", repr=False)
    """Opens calls of the operator API that change nothing."""

    def __post_init__(self) -> None:
        """Refuse tokens that cannot be sent, and equal tokens for different roles."""
        named = {"token": self.worker, "operator_token": self.operator}
        named["read_only_token"] = self.read_only
        for name, token in named.items():
            if problem := token_problem(token):
                raise ConfigError(f"{name} {problem}")
        given = [token for token in named.values() if token]
        if len(set(given)) != len(given):
            raise ConfigError("token, operator_token and read_only_token must differ")
        if self.read_only and not (self.worker or self.operator):
            raise ConfigError(
                "with read_only_token alone, no worker can join a job and no operator can stop "
                "one; set token or operator_token too"
            )

    @property
    def are_set(self) -> bool:
        """Whether calls need a token."""
        return bool(self.worker or self.operator or self.read_only)

    def check(self, token: str, role: Role) -> None:
        """Raise TokenError or RoleError unless `token` allows calls that need `role`."""
        if not self.are_set:
            return
        operator = self.operator or self.worker
        allowed = {
            Role.WORKER: (self.worker, self.operator),
            Role.SERVER: (self.worker, self.operator),
            Role.OPERATOR: (operator,),
            Role.READ_ONLY: (operator, self.read_only),
        }
        if _is_any(token, allowed[role]):
            return
        if _is_any(token, (self.worker, self.operator, self.read_only)):
            raise RoleError(f"this token is not for calls that need the {role} role")
        raise TokenError(
            "wrong token; ask the operator of the controller for it" if token else
            "this controller wants a token; set SWITCHFOLD_TOKEN, or give commands --token"
        )  # fmt: skip


class AccessGuard(grpc.aio.ServerInterceptor):
    """Checks every call of every service, before a message of it is read.

    With `callers`, callers need a certificate of the method's role; with tokens, a token, too.
    """

    def __init__(
        self,
        tokens: Tokens,
        services: Iterable[ServiceDescriptor],
        callers: CallerCertificates | None = None,
        log: RefusalLog | None = None,
    ) -> None:
        self._tokens = tokens
        self._callers = callers
        self._log = log or RefusalLog()
        self._roles = {
            f"/{service.full_name}/{method.name}": required_role(method)
            for service in services
            for method in service.methods
        }

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler with the checks before it."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None  # gRPC answers UNIMPLEMENTED
        details = cast("Any", handler_call_details)
        role = self._roles.get(details.method, Role.OPERATOR)
        token = _token_of(dict(details.invocation_metadata or ()))

        async def check(context: Any) -> None:
            try:
                if self._callers is not None:
                    self._callers.check(context.auth_context(), allowed_roles(role))
                self._tokens.check(token, role)
            except (UnknownCallerError, CallerRoleError, JobError) as exc:
                self._log.note(exc, context.peer())
                await context.abort(_status(exc), str(exc))

        behaviour = behaviour_of(handler)

        async def answer(request: Any, context: Any) -> Any:
            """Streams' behaviours are coroutines here, too: they write with their context."""
            await check(context)
            return await behaviour(request, context)

        return with_behaviour(handler, answer)


def _status(error: UnknownCallerError | CallerRoleError | JobError) -> grpc.StatusCode:
    return error.status if isinstance(error, JobError) else caller_status(error)


def _token_of(metadata: Mapping[str, str | bytes]) -> str:
    value = metadata.get(HEADER, "")
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    return text.removeprefix(SCHEME) if text.startswith(SCHEME) else ""


def _is_any(token: str, allowed: Iterable[str]) -> bool:
    """Compare in constant time; an unset token matches nothing."""
    given = token.encode()
    matches = [bool(one) and hmac.compare_digest(given, one.encode()) for one in allowed]
    return any(matches)
