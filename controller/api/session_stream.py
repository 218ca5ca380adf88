# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One stream of the session API: checked messages of the expected type in, queued ones out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message

from ..errors import ControllerError, InvalidJobError
from ..jobs.punctual_timer import within
from .printable import details
from .request_check import REQUEST_TIMEOUT_S, check_request

_LOGGER = logging.getLogger(__name__)
_M = TypeVar("_M", bound=Message)


class SessionStream(Generic[_M]):
    """Reads and writes a stream whose caller sends messages of one type."""

    def __init__(self, context: object, message_type: type[_M]) -> None:
        self._context = cast("Any", context)
        self._type = message_type

    async def first(self, kind: str, name: str) -> _M:
        """Return the first message, which must be of a kind; errors call it by its name."""
        try:
            message = await within(REQUEST_TIMEOUT_S, self.message())
        except TimeoutError as exc:
            raise InvalidJobError(
                f"no {name} within {REQUEST_TIMEOUT_S:g} s; send it first on the stream"
            ) from exc
        if message is None or message.WhichOneof("message") != kind:
            raise InvalidJobError(f"the first message of a stream must be {name}")
        check_request(message)
        return message

    async def message(self) -> _M | None:
        """Return the next message, unchecked; None at the end of the caller's side."""
        try:
            message = cast("object", await self._context.read())
        except DecodeError as exc:
            raise InvalidJobError(
                f"a message is not a {self._type.__name__} of the session API; install the same "
                f"release on its sender and on the controller ({exc})"
            ) from exc
        return message if isinstance(message, self._type) else None

    async def write(self, outbox: asyncio.Queue[Any]) -> None:
        """Send what is queued until None; an error ends the stream with its status."""
        while (message := await outbox.get()) is not None:
            if isinstance(message, ControllerError):
                await self._context.abort(message.status, details(message))
            await self._context.write(message)

    async def read(
        self,
        outbox: asyncio.Queue[Any],
        take: Callable[[_M], bool],
        *,
        is_current: Callable[[], bool],
        job: str,
        caller: str,
        remedy: str,
    ) -> None:
        """Pass on messages until the caller's end, or until `take` says that one was the last.

        Messages of a caller that is not current are dropped. An invalid message, or a failure,
        ends the stream with an error; `remedy` is what the caller should do after a failure.
        """
        while True:
            try:
                message = await self.message()
                if message is None:
                    outbox.put_nowait(None)
                    return
                if not is_current():
                    continue
                check_request(message)
                if take(message):
                    return
            except ControllerError as exc:
                _LOGGER.info("job %s: %s is disconnected: %s", job, caller, exc)
                outbox.put_nowait(exc)
                return
            except grpc.aio.BaseError:  # the stream is over
                outbox.put_nowait(None)
                return
            except Exception:
                # Nothing reads the stream any more: its caller would be lost for silence.
                _LOGGER.exception("job %s: %s is disconnected", job, caller)
                outbox.put_nowait(
                    ControllerError(
                        f"job {job!r}: the controller failed at a message of {caller}, see its"
                        f" log; {remedy}"
                    )
                )
                return
