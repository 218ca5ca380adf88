# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the token of a worker or row server may open the job that it names."""

from __future__ import annotations

from collections.abc import Callable

from ...hostlib.control.session_api import session_pb2 as pb
from ..database.database import Database
from .job_request import JobToken, spent_token, wrong_token
from .live_job import LiveJob


def proved_token(
    request: pb.JoinRequest | pb.AttachRowServer,
    who: str,
    live_job: Callable[[str], LiveJob | None],
    database: Database,
) -> JobToken:
    """Return the token of a request; JobTokenError unless it may open this, or any, job."""
    live = live_job(request.job_name)
    token = JobToken.of(request)
    is_own = live is not None and live.token.is_same(token)
    is_row_server = isinstance(request, pb.AttachRowServer)  # for all runs with its token
    if live is not None and is_own and (is_row_server or live.token.run == token.run):
        return token
    owner = database.job_of_token(token) if token.is_set else None
    if owner is not None:
        other = live_job(owner.name)
        is_live = other is not None and other.job_number == owner.job_number
        raise spent_token(request.job_name, who, owner.name, is_live=is_live)
    if live is not None and not is_own:
        raise wrong_token(request.job_name, who, token, live.token)
    return token
