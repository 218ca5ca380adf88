# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Who may call P4Runtime: controllers and operators, by their certificates."""

from collections.abc import Callable
from typing import Any, Final

import grpc

from ....hostlib.credentials import Credentials, Role
from ....hostlib.credentials.callers import CallerCertificates
from ....hostlib.credentials.grpc_guard import behaviour_of, caller_status, with_behaviour
from ....hostlib.errors import CallerRoleError, UnknownCallerError

_ALLOWED: Final = frozenset((Role.CONTROLLER, Role.OPERATOR))


class CallerGuard(grpc.ServerInterceptor):
    """Checks the certificate of every call; gRPC has verified its signature."""

    def __init__(self, credentials: Credentials) -> None:
        """Raises CredentialsError if the list of revoked certificates cannot be used."""
        self._callers = CallerCertificates(credentials)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler with the check before it."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None  # gRPC answers UNIMPLEMENTED
        behaviour = behaviour_of(handler)

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                self._callers.check(context.auth_context(), _ALLOWED)
            except (UnknownCallerError, CallerRoleError) as exc:
                context.abort(caller_status(exc), str(exc))
            return behaviour(request, context)

        return with_behaviour(handler, answer)
