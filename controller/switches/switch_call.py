# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns finsy's and gRPC's errors into ours, and makes the calls that need no primary."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import grpc
from finsy import GRPCStatusCode, P4Client, P4ClientError, Switch, p4client
from finsy.grpcutil import GRPCCredentialsTLS, GRPCOptions
from finsy.proto import p4r

from ...hostlib.credentials import Credentials, CredentialsError, Role, role_name
from ...hostlib.credentials.grpc_channels import handshake_problem
from ..config import SwitchConfig
from ..errors import SwitchError, SwitchUnreachableError, SwitchUpdateError

PROGRAM_TIMEOUT_S: Final = 180.0
"""softswitch compiles a new program to native code before it answers."""
_FETCH_TIMEOUT_S: Final = 5.0


class _LongCalls(grpc.aio.UnaryUnaryClientInterceptor):
    """Lifts finsy's limit of 10 s, which is too short to load a program.

    The callers limit their calls themselves. Reads keep finsy's limit: ours is as long and starts
    earlier.
    """

    async def intercept_unary_unary(
        self,
        continuation: Callable[[grpc.aio.ClientCallDetails, Any], Awaitable[Any]],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,
    ) -> Any:
        """Make the call with the longest limit that any caller needs."""
        asked = client_call_details
        details = grpc.aio.ClientCallDetails(
            asked.method,
            PROGRAM_TIMEOUT_S,
            asked.metadata,
            asked.credentials,
            asked.wait_for_ready,
        )
        return await continuation(details, request)


def _fresh_channel(
    address: str, *, credentials: GRPCCredentialsTLS | None, options: GRPCOptions, **_: object
) -> grpc.aio.Channel:
    """Return a channel that tries to connect at once.

    gRPC's channels to one address share their pauses between attempts, which finsy lets grow to
    15 s. The controller would find a restarted switch that much later.
    """
    all_options: list[tuple[str, Any]] = [
        *options.to_native(),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if credentials is None:
        return grpc.aio.insecure_channel(address, all_options, interceptors=[_LongCalls()])
    all_options.append(("grpc.ssl_target_name_override", credentials.target_name_override))
    return grpc.aio.secure_channel(
        address, credentials.to_client_credentials(), all_options, interceptors=[_LongCalls()]
    )


# finsy accepts no channel from its caller: it makes each with this public function of its own.
p4client.__dict__["grpc_channel"] = _fresh_channel


def switch_credentials(config: SwitchConfig) -> GRPCCredentialsTLS | None:
    """Return what shows our certificate to a switch and wants the switch's; None: without TLS.

    Files are read when a channel opens. Raises CredentialsError.
    """
    if config.credentials is None:
        return None
    ours = Credentials(config.credentials)
    if problem := ours.own_problem():
        raise CredentialsError(problem)
    return GRPCCredentialsTLS(
        cacert=ours.authority,
        cert=ours.certificate,
        private_key=ours.key,
        target_name_override=role_name(Role.SWITCH, config.name),
    )


def switch_problem(config: SwitchConfig) -> str:
    """Return why the TLS handshake with a switch fails, "" if it does not. It blocks."""
    ours = None if config.credentials is None else Credentials(config.credentials)
    return handshake_problem(config.address, ours, role_name(Role.SWITCH, config.name))


@contextmanager
def closing_is_unreachable(config: SwitchConfig, switch: Switch) -> Generator[None]:
    """Turn what finsy and gRPC raise when a connection closes during a call into our error."""
    try:
        yield
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise unreachable_error(config, "connection lost during a call") from exc
    except (AssertionError, grpc.aio.UsageError) as exc:
        if isinstance(exc, AssertionError) and switch.is_up:
            raise
        raise unreachable_error(config, "connection lost before a call") from exc


def unreachable_error(config: SwitchConfig, detail: str) -> SwitchUnreachableError:
    """Return the error for a switch that does not answer."""
    return SwitchUnreachableError(
        f"switch {config.name} at {config.address} is not reachable ({detail}); is it running "
        "and is the address right?"
    )


def refusal(config: SwitchConfig, what: str, exc: P4ClientError) -> SwitchError:
    """Return the typed error for a failed P4Runtime call."""
    if exc.code in (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED):
        return unreachable_error(config, _reason(exc))
    details = "; ".join(error.message for error in exc.details.values() if error.message)
    return SwitchUpdateError(
        f"switch {config.name} at {config.address} refused {what}: {exc.code.name} "
        f"{details or exc.message}; see the switch's log"
    )


def _reason(exc: P4ClientError) -> str:
    """Return why the switch did not answer, without gRPC's chain of nested errors and addresses."""
    message = exc.message.strip()
    if message.startswith("failed to connect to all addresses"):
        return message.rpartition(": ")[2]
    return message or exc.code.name


async def fetch_pipeline(config: SwitchConfig) -> p4r.ForwardingPipelineConfig | None:
    """Return the program of a switch, None if it has none; needs no primary role."""
    client = P4Client(config.address, switch_credentials(config), wait_for_ready=False)
    request = p4r.GetForwardingPipelineConfigRequest(
        device_id=config.device_id,
        response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
    )
    try:
        async with asyncio.timeout(_FETCH_TIMEOUT_S), client:
            reply = await client.request(request)
    except P4ClientError as exc:
        if exc.is_pipeline_missing:
            return None
        if exc.code is GRPCStatusCode.UNAVAILABLE:
            problem = await asyncio.to_thread(switch_problem, config)
            if problem:
                raise unreachable_error(config, problem) from exc
        raise refusal(config, "a read of its program", exc) from exc
    except TimeoutError as exc:
        raise unreachable_error(config, f"no answer in {_FETCH_TIMEOUT_S:.0f} s") from exc
    return reply.config if reply.config.HasField("p4info") else None
