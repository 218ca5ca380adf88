# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The TCP parameter server of the transport benchmark: runs until SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions

PORT: Final = 47_200


def main(arguments: list[str]) -> None:
    """Serve at an address for a number of workers, whose updates may take a time."""
    address, num_workers, timeout_s, ready = arguments
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before threads start
    options = ServerOptions(num_workers=int(num_workers), timeout_s=float(timeout_s))
    with ParameterServer(options, address=address, port=PORT, insecure=True):
        os.write(int(ready), b"\n")
        os.close(int(ready))
        signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main(sys.argv[1:])
