# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The addresses at which processes serve by plain HTTP: loopback, unless another one is named."""

from __future__ import annotations

import ipaddress
from typing import Final

DEFAULT_HOST: Final = "127.0.0.1"


def listening_address(text: str, what: str) -> tuple[str, int]:
    """Return host and port of PORT, HOST:PORT or [IPV6]:PORT; without a host it is 127.0.0.1.

    Raises ValueError, whose text says what `what`, such as "metrics", may be served at.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or DEFAULT_HOST
    try:
        ipaddress.ip_address(host)
    except ValueError:
        port = ""
    if not port.isdecimal() or int(port) > 65535 or text.startswith(":"):
        raise ValueError(
            f"the address for {what} is {text!r}; write PORT for {DEFAULT_HOST}, or ADDRESS:PORT"
            " with the IP address of an interface, such as 0.0.0.0:9464"
        )
    return host, int(port)


def shown_address(host: str, port: int) -> str:
    """Return an address as it stands in a URL: with brackets about that of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
