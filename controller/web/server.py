# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Serves the web page by HTTP, in the controller's event loop: GET and HEAD, nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from ...hostlib.observing.listening_address import listening_address, shown_address
from ..errors import ConfigError
from .state import PageState

_LOGGER = logging.getLogger(__name__)
MAX_CALLERS: Final = 32
"""Connections at a time; more are closed when they are accepted."""
REQUEST_S: Final = 5.0
"""How long a caller may take to send its request, and to take the answer."""
_MAX_REQUEST_BYTES: Final = 16384
_PAGE: Final = Path(__file__).with_name("page")
_FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/picture.js": ("picture.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_REQUEST = re.compile(rb"([A-Z]+) (/[^ ?#]*)(?:\?[^ ]*)? HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*\r\n", re.IGNORECASE)
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Connection": "close",
}
"""Of every answer. No other page may show or read it, and it loads nothing from elsewhere."""

ShowState = Callable[[], PageState]


@dataclass(frozen=True, kw_only=True)
class _Answer:
    status: HTTPStatus
    kind: str = "text/plain; charset=utf-8"
    body: bytes
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])

    def encoded(self, *, has_body: bool) -> bytes:
        headers = {
            "Content-Type": self.kind,
            "Content-Length": str(len(self.body)),
            **HEADERS,
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join((*lines, "", "")).encode()
        return head + self.body if has_body else head


class WebServer:
    """Answers browsers until it is closed.

    Whoever reaches the address can look at the page: there is neither TLS nor a token. Requests
    change nothing.
    """

    def __init__(self, address: str, show: ShowState) -> None:
        """`address` is as `--web` has it; ConfigError if it is none. `show` is called in the loop.

        `listen` opens it.
        """
        try:
            self._host, self._port = listening_address(address, "the web page")
        except ValueError as exc:
            raise ConfigError(str(exc)) from None
        self._asked = address
        self.address = ""
        """Where it listens, with the port that was taken."""
        shown = shown_address(self._host, self._port).rpartition(":")[0]
        self._names = frozenset({"localhost", "127.0.0.1", "[::1]", shown})
        self._show = show
        self._files = {
            path: ((_PAGE / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()
        }
        self._callers: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncGenerator[None]:
        """Serve in this context; port 0 takes a free one. Raises ConfigError."""
        try:
            server = await asyncio.start_server(
                self._accept, self._host, self._port, limit=_MAX_REQUEST_BYTES
            )
        except OSError as exc:
            raise ConfigError(
                f"cannot serve the web page at {self._asked}: {exc.strerror}; choose a free port of"
                " an address of this machine, or 0 for any port"
            ) from exc
        self.address = shown_address(self._host, server.sockets[0].getsockname()[1])
        _LOGGER.info("the web page is at http://%s/", self.address)
        if not ipaddress.ip_address(self._host).is_loopback:
            _LOGGER.warning("whoever reaches %s can look at the web page", self.address)
        try:
            yield
        finally:
            server.close()
            for task in self._callers:
                task.cancel()
            await asyncio.gather(*self._callers, return_exceptions=True)
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._callers) >= MAX_CALLERS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._callers.add(task)
        task.add_done_callback(self._callers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._checked_answer(head))
                writer.write_eof()
                await writer.drain()
                while await reader.read(4096):  # the caller closes first, having all of the answer
                    pass
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # callers that vanish, are slow or send too much are no defect of this process
        finally:
            writer.transport.abort()

    def _checked_answer(self, head: bytes) -> bytes:
        try:
            return self._answer(head)
        except Exception:
            _LOGGER.exception("the web page could not be made")
            return _FAILED.encoded(has_body=not head.startswith(b"HEAD "))

    def _answer(self, head: bytes) -> bytes:
        request = _REQUEST.match(head)
        if request is None:
            return _BAD_REQUEST.encoded(has_body=True)
        method, path = request[1], request[2].decode("latin-1")
        has_body = method != b"HEAD"
        if method not in (b"GET", b"HEAD"):
            return _NOT_ALLOWED.encoded(has_body=True)
        if not self._is_addressed(head):
            return _MISDIRECTED.encoded(has_body=has_body)
        if path == "/state.json":
            state = json.dumps(dataclasses.asdict(self._show()), separators=(",", ":"))
            answer = _Answer(status=HTTPStatus.OK, kind="application/json", body=state.encode())
        elif path in self._files:
            body, kind = self._files[path]
            answer = _Answer(status=HTTPStatus.OK, kind=kind, body=body)
        else:
            answer = _NOT_FOUND
        return answer.encoded(has_body=has_body)

    def _is_addressed(self, head: bytes) -> bool:
        """Return whether the caller asked for this machine by a name that only we can have.

        Else a page of another site could have its own name resolve to 127.0.0.1, and read the
        answers in the browser of a person on this machine.
        """
        if not ipaddress.ip_address(self._host).is_loopback:
            return True
        host = _HOST.search(head)
        name = host[1].decode("latin-1").lower() if host is not None else ""
        return re.sub(r":\d*$", "", name) in self._names


def _failure(status: HTTPStatus, text: str, **headers: str) -> _Answer:
    return _Answer(status=status, body=f"{text}\n".encode(), headers=headers)


_BAD_REQUEST = _failure(HTTPStatus.BAD_REQUEST, "this is no HTTP request")
_NOT_ALLOWED = _failure(
    HTTPStatus.METHOD_NOT_ALLOWED, "nothing can be changed here; use GET", Allow="GET, HEAD"
)
_MISDIRECTED = _failure(
    HTTPStatus.MISDIRECTED_REQUEST,
    "ask for http://127.0.0.1 or http://localhost: this page answers to no other name",
)
_FAILED = _failure(
    HTTPStatus.INTERNAL_SERVER_ERROR, "the controller failed at this; its log has the reason"
)
_NOT_FOUND = _failure(HTTPStatus.NOT_FOUND, "there is / and /state.json")
