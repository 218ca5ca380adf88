# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a request to a parameter server goes, and files that say so."""

from .parquet_log import ParquetLog
from .request_meter import RequestMeter, WorkerLog
from .schema import ARRIVALS, FORMAT, NO_VALUE, PATHS, REQUESTS, SAMPLES, UPDATES, FileKind
from .served_requests import ServedRequests
from .server_log import ServerLog
from .switch_meter import PULL, PUSH, SwitchMeter, SwitchRequest

__all__ = [
    "ARRIVALS",
    "FORMAT",
    "NO_VALUE",
    "PATHS",
    "PULL",
    "PUSH",
    "REQUESTS",
    "SAMPLES",
    "UPDATES",
    "FileKind",
    "ParquetLog",
    "RequestMeter",
    "ServedRequests",
    "ServerLog",
    "SwitchMeter",
    "SwitchRequest",
    "WorkerLog",
]
