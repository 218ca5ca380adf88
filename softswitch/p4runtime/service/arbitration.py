# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Client arbitration (P4Runtime 1.4 section 5): the primary of each role. Does not use gRPC."""

from collections.abc import Callable
from dataclasses import dataclass, field

from finsy.proto import U128, p4r, rpc_code, rpc_status

from .status import RequestError

MAX_CLIENTS_PER_ROLE = 16
"""Live streams of one role; more are refused with RESOURCE_EXHAUSTED."""
MAX_ROLES = 256
"""Roles that clients have used, kept for their election ids; more are refused likewise."""


@dataclass(eq=False, kw_only=True)
class Client:
    """One open stream."""

    send: Callable[[p4r.StreamMessageResponse], None]
    """Puts a message on the stream; must not block."""
    role: str | None = None
    """Role name, "" for the default role; None before the first arbitration update."""
    election_id: int | None = None
    """None: not set, never primary."""


@dataclass(eq=False)
class _Role:
    clients: list[Client] = field(default_factory=list[Client])
    primary: Client | None = None
    highest: int | None = None
    """Highest election id of any primary so far (`election_id_past`)."""


class Arbitration:
    """The clients of one device. The caller serialises its calls together with writes."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {"": _Role()}

    def update(self, client: Client, request: p4r.MasterArbitrationUpdate) -> None:
        """Take an arbitration update and notify the clients that it concerns.

        Raises RequestError with the code that the stream must end with.
        """
        role_name = request.role.name
        self._check_stream(client, request, role_name)
        role = self._roles.get(role_name, _Role())
        election_id: int | None = None
        if request.HasField("election_id"):
            election_id = U128.decode(request.election_id)
        self._check_election_id(client, role, election_id)
        if client.role is None:
            if len(role.clients) >= MAX_CLIENTS_PER_ROLE:
                raise RequestError(
                    rpc_code.RESOURCE_EXHAUSTED,
                    f"role {role_name!r} has {MAX_CLIENTS_PER_ROLE} clients already; close one",
                )
            if role_name not in self._roles and len(self._roles) >= MAX_ROLES:
                raise RequestError(
                    rpc_code.RESOURCE_EXHAUSTED,
                    f"role {role_name!r}: no more than {MAX_ROLES} roles are possible",
                )
            self._roles[role_name] = role
            client.role = role_name
            role.clients.append(client)
        client.election_id = election_id
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            self._promote(role, role_name, client, election_id)
        elif role.primary is client:
            role.primary = None
            self._notify(role, role_name, role.clients)
        else:
            self._notify(role, role_name, [client])

    def remove(self, client: Client) -> None:
        """Forget a client whose stream has ended; notify the others if it was primary."""
        if client.role is None:
            return
        role = self._roles[client.role]
        role.clients.remove(client)
        if role.primary is client:
            role.primary = None
            self._notify(role, client.role, role.clients)

    def check_primary(self, role_name: str, election_id: p4r.Uint128, *, is_set: bool) -> None:
        """Raise PERMISSION_DENIED unless the role's primary has this election id.

        Raises NOT_FOUND for a role that no client has had.
        """
        self.check_role(role_name)
        primary = self._roles[role_name].primary
        if primary is None:
            reason = f"role {role_name!r} has no primary"
        elif not is_set:
            reason = "the request has no election_id"
        elif primary.election_id != U128.decode(election_id):
            reason = (
                f"election_id {U128.decode(election_id)} is not the primary's; "
                f"role {role_name!r} has primary {primary.election_id}"
            )
        else:
            return
        raise RequestError(
            rpc_code.PERMISSION_DENIED,
            f"not primary: {reason}; become primary by an arbitration update on StreamChannel",
        )

    def check_role(self, role_name: str) -> None:
        """Raise NOT_FOUND for a role that no client has had."""
        if role_name not in self._roles:
            raise RequestError(
                rpc_code.NOT_FOUND,
                f"role {role_name!r}: no client has it; send an arbitration update with it",
            )

    def is_primary(self, client: Client) -> bool:
        """Return whether this client is primary of its role."""
        return client.role is not None and self._roles[client.role].primary is client

    def primaries(self) -> list[Client]:
        """Return the primary of each role that has one."""
        return [role.primary for role in list(self._roles.values()) if role.primary is not None]

    def _check_stream(
        self, client: Client, request: p4r.MasterArbitrationUpdate, role_name: str
    ) -> None:
        is_new = client.role is None
        if request.device_id != self._device_id:
            code = rpc_code.NOT_FOUND if is_new else rpc_code.FAILED_PRECONDITION
            raise RequestError(
                code, f"device_id {request.device_id}: this switch is device {self._device_id}"
            )
        if not is_new and client.role != role_name:
            raise RequestError(
                rpc_code.FAILED_PRECONDITION,
                f"role {role_name!r}: this stream has role {client.role!r}; open a new one",
            )
        if request.role.HasField("config"):
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                "role.config: no scheme for role configurations is agreed; leave it unset",
            )

    def _check_election_id(self, client: Client, role: _Role, election_id: int | None) -> None:
        if election_id is None:
            return
        for other in role.clients:
            if other is not client and other.election_id == election_id:
                raise RequestError(
                    rpc_code.INVALID_ARGUMENT,
                    f"Election ID {election_id} is already used by another client of this role",
                )

    def _promote(self, role: _Role, role_name: str, client: Client, election_id: int) -> None:
        role.primary = client
        role.highest = election_id
        # Section 5.3: the other clients are notified before the new primary.
        others = [other for other in role.clients if other is not client]
        self._notify(role, role_name, others)
        self._notify(role, role_name, [client])

    def _notify(self, role: _Role, role_name: str, clients: list[Client]) -> None:
        for client in clients:
            if client is role.primary:
                status = rpc_status.Status(code=rpc_code.OK)
            elif role.primary is not None:
                status = rpc_status.Status(
                    code=rpc_code.ALREADY_EXISTS, message="another client is primary"
                )
            else:
                status = rpc_status.Status(code=rpc_code.NOT_FOUND, message="there is no primary")
            update = p4r.MasterArbitrationUpdate(device_id=self._device_id, status=status)
            if role_name:
                update.role.name = role_name
            if role.highest is not None:
                update.election_id.CopyFrom(U128.encode(role.highest))
            client.send(p4r.StreamMessageResponse(arbitration=update))
