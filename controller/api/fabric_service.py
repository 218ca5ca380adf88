# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operator API server, the fabric: trees and their cost, links and switches up or down."""

from __future__ import annotations

import dataclasses

import grpc

from ..config import LinkConfig
from ..database.database import Database
from ..errors import NoTreeError, UnknownJobError
from ..fabric.fabric import Direction
from ..fabric.fabric_state import FabricState
from ..fabric.link_meter import LinkMeter
from ..fabric.replanner import Replanner
from ..fabric.trees.frame_cost import Traffic
from ..fabric.trees.ring_cost import predict_ring
from ..fabric.trees.tree_plan import TreePlan, describe_trees
from ..fabric.trees.tree_report import add_measurement, add_prediction, report_tree
from ..jobs.job import View
from ..views.view_trees import planned_trees, slot_bases
from .operator_api import fabric_pb2 as pb
from .operator_api import fabric_pb2_grpc

_DEFAULT_BYTES = 64 << 20
_NUM_ALTERNATIVES = 5


class FabricService(fabric_pb2_grpc.FabricServicer):
    """Answers from the fabric's state and the switches' counters."""

    def __init__(
        self,
        database: Database,
        state: FabricState,
        meter: LinkMeter,
        replanner: Replanner,
        traffic: Traffic,
    ) -> None:
        self._database = database
        self._state = state
        self._meter = meter
        self._replanner = replanner
        self._traffic = traffic

    async def ShowTree(  # noqa: N802
        self,
        request: pb.ShowTreeRequest,
        context: grpc.aio.ServicerContext[pb.ShowTreeRequest, pb.TreeReport],
    ) -> pb.TreeReport:
        """Return the trees of a live job, their cost now, and what was measured."""
        jobs = [j for j in self._database.jobs(is_live_only=True) if j.name == request.name]
        view = jobs[-1].view if jobs else None
        if view is None:
            what = "has no view yet" if jobs else "is not running"
            raise UnknownJobError(f"job {request.name!r} {what}; see 'switchfold job list'")
        size = request.tensor_bytes or _DEFAULT_BYTES
        report = self._report(view, dataclasses.replace(self._traffic, tensor_bytes=size))
        report.job = request.name
        if view.trees:
            sample = await self._meter.sample()
            try:
                add_measurement(report, *self._meter.measured(view, sample))
            except KeyError:
                report.measured_error = "the view has just begun; ask again"
        return report

    async def ListLinks(  # noqa: N802
        self,
        request: pb.ListLinksRequest,
        context: grpc.aio.ServicerContext[pb.ListLinksRequest, pb.ListLinksResponse],
    ) -> pb.ListLinksResponse:
        """Return all configured links."""
        return pb.ListLinksResponse(links=[self._link(x) for x in self._state.fabric.links])

    async def SetLink(  # noqa: N802
        self,
        request: pb.SetLinkRequest,
        context: grpc.aio.ServicerContext[pb.SetLinkRequest, pb.Link],
    ) -> pb.Link:
        """Take a link out of use, or back into use."""
        return self._link(self._state.set_link(request.name, is_up=request.is_up))

    async def SetSwitch(  # noqa: N802
        self,
        request: pb.SetSwitchRequest,
        context: grpc.aio.ServicerContext[pb.SetSwitchRequest, pb.SetSwitchResponse],
    ) -> pb.SetSwitchResponse:
        """Take a switch out of use, or back into use."""
        self._state.set_switch(request.name, is_up=request.is_up)
        return pb.SetSwitchResponse(name=request.name, state="up" if request.is_up else "down")

    def _report(self, view: View, traffic: Traffic) -> pb.TreeReport:
        fabric = self._state.fabric_for(view.job_number)
        trees = planned_trees(view)
        report = pb.TreeReport(
            generation=view.generation,
            path="switch" if trees else "host",
            reason=view.reason,
            num_workers=view.num_workers,
            tensor_bytes=traffic.tensor_bytes,
            values_per_packet=traffic.values_per_packet,
            label=describe_trees(trees) if trees else "between the hosts",
            trees=[
                report_tree(
                    fabric,
                    planned,
                    slot_count=tree.slot_count,
                    tree_id=tree.tree_id,
                    slot_bases=slot_bases(tree),
                )
                for tree, planned in zip(view.trees, trees, strict=True)
            ],
        )
        if trees:
            add_prediction(report, self._replanner.predict(view, traffic))
        else:
            ring = predict_ring(fabric, view.members, traffic)
            if ring is not None:
                add_prediction(report, ring)
        try:
            plan = self._replanner.plan(view, traffic)
        except NoTreeError:
            return report
        report.lower_bound_s = plan.lower_bound_s
        report.alternatives.extend(_alternatives(plan, report.label))
        return report

    def _link(self, link: LinkConfig) -> pb.Link:
        forward, backward = (Direction(*end) for end in link.ends)
        used = self._state.fabric.used_bits_per_s
        return pb.Link(
            name=link.name,
            key=link.key,
            state=str(self._state.condition(link)),
            rate_bits_per_s=link.rate_bits_per_s,
            forward_bits_per_s=used.get(forward, 0.0),
            backward_bits_per_s=used.get(backward, 0.0),
        )


def _alternatives(plan: TreePlan, label: str) -> list[pb.ReportedAlternative]:
    """Return the trees that the planner would choose now, then the next best, without `label`."""
    found = [pb.ReportedAlternative(label=plan.label, seconds=plan.seconds)]
    found += [pb.ReportedAlternative(label=x.label, seconds=x.seconds) for x in plan.alternatives]
    return [each for each in found if each.label != label][:_NUM_ALTERNATIVES]
