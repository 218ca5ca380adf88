# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operator API server, activity: what a job's slots and links do now."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from ..api.operator_api import activity_pb2 as pb
from ..api.operator_api import activity_pb2_grpc
from ..database.database import Database
from ..errors import UnknownJobError
from ..fabric.fabric_state import FabricState
from .job_activity import ReadableSwitch, read_activity


class ActivityService(activity_pb2_grpc.ActivityServicer):
    """Reads the switches at each call."""

    def __init__(
        self, database: Database, state: FabricState, switches: Mapping[str, ReadableSwitch]
    ) -> None:
        self._database = database
        self._state = state
        self._switches = switches

    async def ShowActivity(  # noqa: N802
        self,
        request: pb.ShowActivityRequest,
        context: grpc.aio.ServicerContext[pb.ShowActivityRequest, pb.JobActivity],
    ) -> pb.JobActivity:
        """Return the activity of a live job."""
        jobs = [j for j in self._database.jobs(is_live_only=True) if j.name == request.name]
        view = jobs[-1].view if jobs else None
        if view is None:
            what = "has no view yet" if jobs else "is not running"
            raise UnknownJobError(f"job {request.name!r} {what}; see 'switchfold job list'")
        activity = await read_activity(view, self._switches, self._state.fabric)
        activity.job = request.name
        return activity
