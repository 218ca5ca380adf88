# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Access to methods: tokens, the role that a method needs, and the guard before every method.

No service checks tokens itself. The guard checks every call, and a method that it does not know
needs the strictest role, so that no new method is open by mistake.
"""

from __future__ import annotations

import enum
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from ...hostlib.control.session_api import session_pb2
from ...hostlib.credentials.tokens import HEADER, SCHEME, token_problem
from ..errors import ConfigError, RoleError, TokenError

_LOGGER = logging.getLogger(__name__)
_SESSIONS: Final = session_pb2.DESCRIPTOR.services_by_name["SwitchfoldSession"].full_name
_LOG_INTERVAL_S: Final = 10.0
"""Refusals within this time share one line of the log."""


class Role(enum.StrEnum):
    """The right that a method demands of its caller."""

    WORKER = "worker"
    """Take part in jobs."""
    READER = "read-only"
    """Look at jobs, switches and links."""
    OPERATOR = "operator"
    """Change them."""


def required_role(method: MethodDescriptor) -> Role:
    """Return the role that a method needs; its .proto file says whether it has side effects."""
    if method.containing_service.full_name == _SESSIONS:
        return Role.WORKER
    level = method.GetOptions().idempotency_level
    return Role.READER if level == MethodOptions.NO_SIDE_EFFECTS else Role.OPERATOR


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
            Role.OPERATOR: (operator,),
            Role.READER: (operator, self.read_only),
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
    """Checks every call of every service; reads only the call's metadata."""

    def __init__(self, tokens: Tokens, services: Iterable[ServiceDescriptor]) -> None:
        self._tokens = tokens
        self._roles = {
            f"/{service.full_name}/{method.name}": required_role(method)
            for service in services
            for method in service.methods
        }
        self._num_refused = 0
        self._logged_s = float("-inf")

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler, or one that refuses the call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None  # gRPC answers UNIMPLEMENTED
        details = cast("Any", handler_call_details)
        role = self._roles.get(details.method, Role.OPERATOR)
        try:
            self._tokens.check(_token_of(dict(details.invocation_metadata or ())), role)
        except (TokenError, RoleError) as exc:
            return self._refusing(handler, exc)
        return handler

    def _refusing(self, handler: Any, error: TokenError | RoleError) -> Any:
        """Return a handler of the same kind that aborts before it reads a message."""

        async def refuse(_request: object, context: Any) -> NoReturn:
            self._log(error, context.peer())
            await context.abort(error.status, str(error))
            raise AssertionError("abort raises")

        kinds: dict[tuple[bool, bool], Any] = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }
        return kinds[handler.request_streaming, handler.response_streaming](refuse)

    def _log(self, error: Exception, peer: str) -> None:
        """Log refusals, but not each one: otherwise strangers could fill the disk."""
        self._num_refused += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= _LOG_INTERVAL_S:
            _LOGGER.warning("%d calls refused, last from %s: %s", self._num_refused, peer, error)
            self._num_refused, self._logged_s = 0, now_s


def _token_of(metadata: Mapping[str, str | bytes]) -> str:
    value = metadata.get(HEADER, "")
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    return text.removeprefix(SCHEME) if text.startswith(SCHEME) else ""


def _is_any(token: str, allowed: Iterable[str]) -> bool:
    """Compare in constant time; an unset token matches nothing."""
    given = token.encode()
    matches = [bool(one) and hmac.compare_digest(given, one.encode()) for one in allowed]
    return any(matches)
