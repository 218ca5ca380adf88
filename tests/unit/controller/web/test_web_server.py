# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The web page's server: what it answers, what it refuses, whom it lets wait."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller_fixtures import run
from switchfold.controller.errors import ConfigError
from switchfold.controller.web import server as web_server
from switchfold.controller.web.server import MAX_CALLERS, WebServer
from switchfold.controller.web.state import PageState
from time_bound import until

PAGE = Path(web_server.__file__).with_name("page")
STATE = PageState(is_leader=False)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No caller is too slow, however slow the machine is."""
    monkeypatch.setattr(web_server, "REQUEST_S", 3600.0)


def show() -> PageState:
    return STATE


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes


async def send(address: str, data: bytes) -> bytes:
    """Return all that is answered to these bytes."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        writer.write(data)
        return await reader.read()
    finally:
        writer.close()


async def ask(address: str, target: str = "/", *, method: str = "GET", host: str = "") -> Answered:
    request = f"{method} {target} HTTP/1.1\r\nHost: {host or address}\r\n\r\n"
    head, _, body = (await send(address, request.encode())).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answered(int(first.split()[1]), headers, body)


@pytest.mark.parametrize(
    ("target", "kind", "part"),
    [
        ("/", "text/html", b"<title>Switchfold</title>"),
        ("/?x=1", "text/html", b"<title>Switchfold</title>"),
        ("/page.js", "text/javascript", b"state.json"),
        ("/picture.js", "text/javascript", b"drawFabric"),
        ("/page.css", "text/css", b"body {"),
        ("/icon.svg", "image/svg+xml", b"<svg"),
    ],
)
def test_page_and_its_parts_are_answered(target: str, kind: str, part: bytes) -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            answer = await ask(web.address, target)
        assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (200, kind)
        assert part in answer.body
        assert int(answer.headers["Content-Length"]) == len(answer.body)

    run(scenario())


def test_state_is_what_is_shown_at_each_request() -> None:
    states = iter((PageState(is_leader=False), PageState(is_leader=True, is_database_up=False)))

    async def scenario() -> None:
        web = WebServer("0", lambda: next(states))
        async with web.listen():
            first = json.loads((await ask(web.address, "/state.json")).body)
            second = json.loads((await ask(web.address, "/state.json")).body)
        assert (first["is_leader"], first["is_database_up"]) == (False, True)
        assert (second["is_leader"], second["is_database_up"]) == (True, False)

    run(scenario())


@pytest.mark.parametrize(
    ("target", "method", "host", "status"),
    [
        ("/nothing", "GET", "", 404),
        ("/../server.py", "GET", "", 404),
        ("/page/page.html", "GET", "", 404),
        ("/", "POST", "", 405),
        ("/state.json", "DELETE", "", 405),
        ("/state.json", "GET", "attacker.example", 421),
        ("/", "GET", "127.0.0.1.attacker.example:80", 421),
        ("/", "HEAD", "attacker.example", 421),
    ],
)
def test_anything_else_is_refused(target: str, method: str, host: str, status: int) -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            answer = await ask(web.address, target, method=method, host=host)
        assert answer.status == status
        assert b"is_leader" not in answer.body

    run(scenario())


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9470", "127.0.0.1:1", "[::1]:9470"])
def test_names_of_loopback_are_answered(host: str) -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            assert (await ask(web.address, host=host)).status == 200

    run(scenario())


def test_named_address_answers_to_any_name(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        caplog.set_level(logging.WARNING)
        web = WebServer("0.0.0.0:0", show)
        async with web.listen():
            assert f"whoever reaches {web.address} can look at the web page" in caplog.text
            near = web.address.replace("0.0.0.0", "127.0.0.1")
            assert (await ask(near, host="controller.example:9470")).status == 200

    run(scenario())


def test_loopback_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        caplog.set_level(logging.WARNING)
        web = WebServer("0", show)
        async with web.listen():
            assert web.address.startswith("127.0.0.1:")
        assert not caplog.records

    run(scenario())


def test_head_has_the_headers_alone() -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            answer = await ask(web.address, method="HEAD")
            assert answer.body == b""
            whole = await ask(web.address)
        assert answer.headers == whole.headers

    run(scenario())


@pytest.mark.parametrize("target", ["/", "/state.json", "/nothing"])
def test_every_answer_lets_no_other_site_in(target: str) -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            headers = (await ask(web.address, target)).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"

    run(scenario())


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", b""),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 421 Misdirected Request"),
    ],
    ids=["tls", "proxy request", "too long", "no host"],
)
def test_what_is_no_request_gets_no_page(data: bytes, answer: bytes) -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            try:
                found = await send(web.address, data)
            except ConnectionResetError:
                found = b""  # closed with bytes unread
            assert found.split(b"\r\n")[0] == answer
            assert (await ask(web.address)).status == 200

    run(scenario())


def test_silent_callers_hold_nobody_up_and_are_few() -> None:
    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            host, port = web.address.split(":")
            silent = [
                await asyncio.open_connection(host, int(port)) for _ in range(MAX_CALLERS - 1)
            ]
            assert (await ask(web.address)).status == 200
            callers = web._callers  # pyright: ignore[reportPrivateUsage]
            await until(lambda: len(callers) == len(silent))  # that one's place is free
            last, last_writer = await asyncio.open_connection(host, int(port))
            surplus, surplus_writer = await asyncio.open_connection(host, int(port))
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await surplus.readexactly(1)
            for _, writer in [*silent, (last, last_writer), (surplus, surplus_writer)]:
                writer.close()

    run(scenario())


def test_slow_caller_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "REQUEST_S", 0.05)

    async def scenario() -> None:
        web = WebServer("0", show)
        async with web.listen():
            host, port = web.address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\n")
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()

    run(scenario())


def test_failure_is_told_and_the_next_request_answered(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> PageState:
        raise KeyError("s1")

    async def scenario() -> None:
        web = WebServer("0", fail)
        async with web.listen():
            failed = await ask(web.address, "/state.json")
            assert (failed.status, b"its log" in failed.body) == (500, True)
            headless = await ask(web.address, "/state.json", method="HEAD")
            assert (headless.status, headless.body) == (500, b"")
            assert (await ask(web.address)).status == 200
        assert "the web page could not be made" in caplog.text
        assert "KeyError: 's1'" in caplog.text

    run(scenario())


def test_port_that_is_taken_is_a_typed_error() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigError, match=f"cannot serve the web page at {port}: .*in use"):
                async with WebServer(str(port), show).listen():
                    pass

    run(scenario())


def test_address_that_is_none_is_a_typed_error() -> None:
    text = "the address for the web page is 'host.example:9470'; write PORT for 127.0.0.1"
    with pytest.raises(ConfigError, match=re.escape(text)):
        WebServer("host.example:9470", show)


def test_sources_make_no_markup_out_of_names() -> None:
    for path in PAGE.glob("*.js"):
        text = path.read_text("utf-8")
        for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert name not in text, f"{path.name} uses {name}"


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in PAGE.iterdir():
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+", path.read_text("utf-8")))
        assert not {a for a in addresses if a.startswith("http")} - {"http://www.w3.org"}, path.name
