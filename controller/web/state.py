# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the web page shows: fabric, trees and jobs as the controller knows them, without a call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...hostlib.slots import wire
from ..config import LinkConfig
from ..fabric.fabric import Direction, Fabric
from ..fabric.fabric_state import Condition, FabricState
from ..fabric.link_meter import LinkMeter
from ..jobs.job import JobNumber, Tree, TreeNode, View, ViewState
from ..observing.controller_metrics import MeasuredController, ObservedJob, link_names
from ..switches.switch_session import SwitchSession
from .placement import PagePlace, place_stations, place_switches


@dataclass(frozen=True, kw_only=True)
class PageSwitch:
    """A switch of the picture."""

    name: str
    place: PagePlace
    state: str
    """"down" where an operator took it out of use, else the state of the controller's session."""
    error: str
    """Why it is not ready."""
    used_slots: int
    slots: int


@dataclass(frozen=True, kw_only=True)
class PageHost:
    """A host of the picture, or the workers of one that no file lists."""

    name: str
    place: PagePlace
    switch: str
    address: str
    workers: tuple[str, ...]
    """Such as "train 0": job and worker id."""


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """A link between switches, or of a host."""

    key: str
    """No other link has it."""
    name: str
    a: str
    b: str
    """The switch, for the link of a host."""
    is_host: bool
    """`a` is a host."""
    state: str
    """"up", "down" or "dead"; "" for the link of a host, of which it is not known."""
    rate_bits_per_s: float | None
    """Stated, each direction; None: not stated."""
    forward_bits_per_s: float | None
    """Measured from `a` to `b`, smoothed; None: not known."""
    backward_bits_per_s: float | None


@dataclass(frozen=True, kw_only=True)
class PageTree:
    """A tree of a job."""

    tree_id: int
    root: str
    slots: int
    links: tuple[str, ...]
    """Keys of the links that it uses, each once."""


@dataclass(frozen=True, kw_only=True)
class PageJob:
    """A live job."""

    name: str
    state: str
    num_workers: int
    """Workers that are in it."""
    missing: tuple[int, ...]
    """Workers that have not arrived, or have no session."""
    path: str
    """"switch", "host", or "" before the first view."""
    reason: str
    """Why it runs between the hosts, or has fewer slots than it asked for."""
    generation: int
    trees: tuple[PageTree, ...]
    tree_bits_per_s: float | None
    """What its trees send over the busiest link; None: not known, as without trees."""


@dataclass(frozen=True, kw_only=True)
class PageState:
    """All of it."""

    is_leader: bool
    """Other fields are empty while this controller stands by."""
    is_database_up: bool = True
    switches: tuple[PageSwitch, ...] = ()
    hosts: tuple[PageHost, ...] = ()
    links: tuple[PageLink, ...] = ()
    jobs: tuple[PageJob, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Station:
    """What hangs at a port that leads to no switch."""

    name: str
    address: str
    rate_bits_per_s: int | None = None
    workers: list[str] = field(default_factory=list[str])


_Stations = Mapping[str, Mapping[int, Sequence[_Station]]]
"""By switch and port."""


def shown_by(leader: MeasuredController | None) -> PageState:
    """Return what a controller shows; None: it stands by."""
    if leader is None or not leader.is_serving:
        return PageState(is_leader=False)
    return leader.show_state()


def page_state(
    jobs: Sequence[ObservedJob],
    sessions: Mapping[str, SwitchSession],
    state: FabricState,
    meter: LinkMeter,
    *,
    is_database_up: bool,
) -> PageState:
    """Return what a controller that leads shows of its live jobs and its fabric."""
    picture = PagePicture(state.fabric, jobs)
    views = [view for observed in jobs for view in observed.job.live_views]
    return PageState(
        is_leader=True,
        is_database_up=is_database_up,
        switches=tuple(_page_switches(picture.places, sessions, state.fabric, views)),
        hosts=tuple(picture.hosts()),
        links=tuple(picture.links(state, meter)),
        jobs=tuple(_page_job(observed, state.fabric, meter) for observed in jobs),
    )


def _page_switches(
    places: Mapping[str, PagePlace],
    sessions: Mapping[str, SwitchSession],
    fabric: Fabric,
    views: Sequence[View],
) -> Iterator[PageSwitch]:
    """Yield the switches; `views` hold slots."""
    for name, session in sessions.items():
        is_down = name in fabric.down_switches
        yield PageSwitch(
            name=name,
            place=places[name],
            state="down" if is_down else str(session.state),
            error="" if session.is_ready or session.error is None else str(session.error),
            used_slots=sum(view.slots_on(name) for view in views),
            slots=wire.NUM_SLOTS,
        )


class PagePicture:
    """The fabric as it is drawn: who stands where, and what joins them."""

    def __init__(self, fabric: Fabric, jobs: Iterable[ObservedJob]) -> None:
        self._fabric = fabric
        self._stations = _find_stations(fabric, jobs)
        numbers = {name: sum(map(len, ports.values())) for name, ports in self._stations.items()}
        self.places = place_switches(fabric, numbers)
        """By switch."""

    def hosts(self) -> Iterator[PageHost]:
        """Yield the hosts, by switch and port."""
        for switch, ports in self._stations.items():
            stations = [station for port in sorted(ports) for station in ports[port]]
            places = place_stations(self.places[switch], len(stations))
            for station, place in zip(stations, places, strict=True):
                yield PageHost(
                    name=station.name,
                    place=place,
                    switch=switch,
                    address=station.address,
                    workers=tuple(station.workers),
                )

    def links(self, state: FabricState, meter: LinkMeter) -> Iterator[PageLink]:
        """Yield links between switches, then those of hosts; rates are `meter`'s."""
        used = meter.usage.total
        names = link_names(self._fabric.links)
        for link in self._fabric.links:
            forward, backward = (Direction(*end) for end in link.ends)
            yield PageLink(
                key=link.key,
                name=names[link.key],
                a=link.a,
                b=link.b,
                is_host=False,
                state=self._condition(state, link),
                rate_bits_per_s=link.rate_bits_per_s,
                forward_bits_per_s=used.get(forward),
                backward_bits_per_s=used.get(backward),
            )
        for switch, ports in self._stations.items():
            for port in sorted(ports):
                for station in ports[port]:
                    yield PageLink(
                        key=f"{switch}:{port}",
                        name=f"{station.name}-{switch}",
                        a=station.name,
                        b=switch,
                        is_host=True,
                        state="",
                        rate_bits_per_s=station.rate_bits_per_s,
                        forward_bits_per_s=used.get(Direction(switch, port, is_inward=True)),
                        backward_bits_per_s=used.get(Direction(switch, port)),
                    )

    def _condition(self, state: FabricState, link: LinkConfig) -> str:
        """Return the condition of a link; it is down where a switch at an end is."""
        is_down = not self._fabric.down_switches.isdisjoint((link.a, link.b))
        return str(Condition.DOWN if is_down else state.condition(link))


def _page_job(observed: ObservedJob, fabric: Fabric, meter: LinkMeter) -> PageJob:
    """Return what is shown of a live job."""
    job, view = observed.job, observed.job.view
    return PageJob(
        name=job.name,
        state=str(job.state),
        num_workers=observed.num_workers,
        missing=tuple(observed.missing),
        path="" if view is None else "switch" if view.trees else "host",
        reason="" if view is None else view.reason,
        generation=job.generation,
        trees=tuple(_page_trees(view, fabric)),
        tree_bits_per_s=_busiest(job.job_number, meter),
    )


def _page_trees(view: View | None, fabric: Fabric) -> Iterator[PageTree]:
    for tree in () if view is None or view.state is ViewState.REMOVED else view.trees:
        yield PageTree(
            tree_id=tree.tree_id,
            root=tree.root.switch,
            slots=tree.slot_count,
            links=tuple(dict.fromkeys(_tree_links(tree, fabric))),
        )


def _tree_links(tree: Tree, fabric: Fabric) -> Iterator[str]:
    """Yield the key of the link to each child."""
    for node in tree.nodes:
        for child in node.children:
            yield _link_key(node, child.port, fabric)


def _link_key(node: TreeNode, port: int, fabric: Fabric) -> str:
    link = fabric.link_at(node.switch, port)
    return f"{node.switch}:{port}" if link is None else link.key


def _busiest(job_number: JobNumber, meter: LinkMeter) -> float | None:
    return max(meter.usage.own.get(job_number, {}).values(), default=None)


def _find_stations(fabric: Fabric, jobs: Iterable[ObservedJob]) -> _Stations:
    """Return what hangs at the switches: hosts that are configured, and workers on others."""
    found: dict[str, dict[int, list[_Station]]] = {}
    for switch in fabric.switches.values():
        ports = found.setdefault(switch.name, defaultdict(list))
        for host in switch.hosts:
            ports[host.port].append(
                _Station(name=host.name, address=host.address, rate_bits_per_s=host.rate_bits_per_s)
            )
    for observed in jobs:
        for worker in observed.job.workers:
            if worker.switch not in found:
                continue
            at_port = found[worker.switch][worker.port]
            station = next((s for s in at_port if s.address == worker.address), None)
            if station is None:
                station = _Station(name=worker.address, address=worker.address)
                at_port.append(station)
            station.workers.append(f"{observed.job.name} {worker.worker_id}")
    return found
