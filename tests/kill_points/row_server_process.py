# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A row server that sets a few rows in each view, and writes what it has set as lines of JSON."""

from __future__ import annotations

import json
import os
import queue
import sys
from typing import Final

import numpy as np

from switchfold.hostlib.control.row_server_link import (
    ROW_DTYPE,
    RowServerLink,
    RowServerRequest,
    RowView,
)
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import HostlibError

SERVER_ID: Final = 0
_ROWS: Final = 4
_EPOCH: Final = 32
_UDP_PORT: Final = 21320


def run(arguments: list[str]) -> None:
    """Attach to the job of the environment: address and MAC address of the host."""
    address, mac = arguments
    events: queue.SimpleQueue[RowView | HostlibError] = queue.SimpleQueue()
    request = RowServerRequest(
        job=os.environ["SWITCHFOLD_JOB"],
        server_id=SERVER_ID,
        identity=os.urandom(16),
        local=Endpoint(address=address, mac=mac, udp_port=_UDP_PORT),
        rows_wanted=_ROWS,
        token=os.environ["SWITCHFOLD_TOKEN"],
        credentials=os.environ["SWITCHFOLD_CREDENTIALS"],
    )
    link = RowServerLink(
        os.environ["SWITCHFOLD_CONTROLLER"],
        request,
        on_view=events.put,
        on_installed=lambda generation, number: _write(generation=generation, installed=number),
        on_down=events.put,
    )
    link.start()
    number = 0
    while isinstance(view := events.get(), RowView):
        rows = [[view.first_row + i, _EPOCH, -i] for i in range(view.num_rows)]
        _write(generation=view.generation, rows=rows)
        if view.generation:
            number += 1
            link.set_rows(view.generation, number, np.array([*map(tuple, rows)], ROW_DTYPE))
    _write(error=f"{type(view).__name__}: {view}")


def _write(**line: object) -> None:
    # In one piece: the log of other threads goes to the same file.
    sys.stdout.write(json.dumps(line) + "\n")
