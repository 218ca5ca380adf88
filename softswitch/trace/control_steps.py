# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of the controls, of checksums and of the deparser."""

from collections.abc import Callable
from typing import Any

from ..generator import TracePoint
from ..program.model import Json, ProgramAction
from .snapshot import FieldChange, load_number
from .state import PacketState
from .step import Step
from .values import field_name, format_value

NO_ENTRY = 2**64 - 1
EntryText = Callable[[int, int], str | None]
"""Describes the entry of a table (position, handle), if it is known."""


class ControlSteps:
    """Turns the trace points of controls into steps."""

    def __init__(self, state: PacketState, drop_port: int, entry_text: EntryText) -> None:
        self._state = state
        self._drop_port = drop_port
        self._entry_text = entry_text
        program = state.program
        self._tables = {table.name: table for table in program.tables}
        self._actions = {action.name: action for action in program.actions}
        self._action: tuple[TracePoint, list[int]] | None = None

    def condition(self, point: TracePoint, is_true: bool) -> list[Step]:
        """Return the step of a condition and its result."""
        state = self._state
        expression = point.item.get("expression")
        text = state.expressions.text(expression)
        text = text.removeprefix("(").removesuffix(")") if text.startswith("(") else text
        return [
            state.step(
                "condition",
                f"if ({text}): {'true' if is_true else 'false'}",
                details=self._operands(expression),
                source=state.source(point),
                result=is_true,
            )
        ]

    def _operands(self, node: Any) -> tuple[str, ...]:
        state = self._state
        found: list[str] = []
        for name in state.expressions.fields(node):
            value = state.now.value(*name) if state.now is not None else None
            if value is not None and name[1] != "$valid$":
                found.append(f"{field_name(name)}={state.format(name, value)}")
        return (", ".join(found),) if found else ()

    def table(self, point: TracePoint, is_hit: bool, action: int, entry: int) -> list[Step]:
        """Return the step of a table lookup."""
        state = self._state
        state.depth = 1
        table = self._tables[point.name]
        keys: dict[str, int] = {}
        shown: list[str] = []
        for part in table.key:
            value = state.now.value(*part.target) if state.now is not None else None
            if value is not None:
                keys[part.name] = value
                shown.append(f"{part.name}={state.format(part.target, value)}")
        actions = state.program.actions
        name = actions[action].name if action < len(actions) else "no action"
        if is_hit:
            known = self._entry_text(table.position, entry)
            outcome = f"hit, entry {entry}" + (f" ({known})" if known else "")
        else:
            outcome = "miss" if table.key else "no key"
        outcome += f" -> {name}"
        data: dict[str, Any] = {"table": table.name, "keys": keys, "hit": is_hit, "action": name}
        if is_hit and entry != NO_ENTRY:
            data["entry"] = entry
        text = f"table {table.name}: {outcome}"
        source = state.source(point)
        return [
            state.step(
                "table", text, details=(", ".join(shown),) if shown else (), source=source, **data
            )
        ]

    def action(self, point: TracePoint) -> list[Step]:
        """Note that an action begins; records with its parameters follow."""
        self._action = (point, [])
        return []

    def memory(self, data: bytes) -> None:
        """Take a parameter of the action that has begun."""
        if self._action is not None:
            self._action[1].append(load_number(data))

    def finish_action(self) -> list[Step]:
        """Return the step of the action that has begun, once its parameters are known."""
        if self._action is None:
            return []
        (point, values), self._action = self._action, None
        state = self._state
        action: ProgramAction = self._actions_by_point(point)
        names = {
            i: (item.name, value)
            for i, (item, value) in enumerate(zip(action.parameters, values, strict=False))
        }
        state.expressions.parameters = names
        shown = [
            f"{item.name}={format_value(value, item.width, item.name)}"
            for item, value in zip(action.parameters, values, strict=False)
        ]
        data = {item.name: value for item, value in zip(action.parameters, values, strict=False)}
        state.depth = 2
        text = f"action {action.name}({', '.join(shown)})"
        return [
            state.step(
                "action", text, source=state.source(point), name=action.name, parameters=data
            )
        ]

    def _actions_by_point(self, point: TracePoint) -> ProgramAction:
        return self._actions[point.name]

    def statement(self, point: TracePoint) -> list[Step]:
        """Return the step of a statement that the program has executed."""
        state = self._state
        changes = state.changes()
        source = state.source(point)
        self._note_drop(point, changes)
        op = str(point.item["op"])
        details = [*self._accesses(op, point.item), *state.describe(changes)]
        text = self._statement_text(point.item)
        return [
            state.step(
                "statement",
                text,
                details=tuple(details),
                source=source,
                extra_depth=1,
                operation=op,
                changes=state.change_data(changes),
            )
        ]

    def _statement_text(self, item: Json) -> str:
        text = self._state.expressions.text
        op, parameters = item["op"], item["parameters"]
        if op == "assign":
            return f"{text(parameters[0])} = {text(parameters[1])}"
        return f"{op}({', '.join(text(part) for part in parameters)})"

    def _accesses(self, op: str, item: Json) -> list[str]:
        """Return the array cell that a statement accessed, as a line; none for other statements."""
        state = self._state
        places = {
            "register_read": (1, 2),
            "register_write": (0, 1),
            "count": (0, 1),
            "execute_meter": (0, 1),
        }
        if op not in places or state.before is None:
            return []
        array, index = (item["parameters"][slot] for slot in places[op])
        at = state.expressions.value(index, state.before)
        line = f"{array['value']}[{'?' if at is None else at}]"
        if op == "register_write":
            value = state.expressions.value(item["parameters"][2], state.before)
            line += " = " + ("?" if value is None else format_value(value, 0))
        return [line]

    def _note_drop(self, point: TracePoint, changes: list[FieldChange]) -> None:
        for change in changes:
            if (
                change.field == ("standard_metadata", "egress_spec")
                and change.after == self._drop_port
            ):
                self._state.dropped_at = self._state.source(point)

    def checksum(self, point: TracePoint) -> list[Step]:
        """Return the step of a checksum that was verified or updated."""
        state = self._state
        changes = state.changes()
        target = field_name((point.item["target"][0], point.item["target"][1]))
        condition = point.item.get("if_cond")
        holds: int | None = 1
        if condition is not None and state.before is not None:
            holds = state.expressions.value(condition, state.before)
        is_left_out = holds == 0 or (
            state.now is not None and not state.now.is_valid(point.item["target"][0])
        )
        if is_left_out:
            outcome = "left out"
        elif point.kind == "verify":
            error = ("standard_metadata", "checksum_error")
            outcome = "wrong" if any(change.field == error for change in changes) else "right"
            # An earlier checksum has set checksum_error, so that another error changes nothing.
            if outcome == "right" and state.now is not None and state.now.value(*error):
                outcome = "right, or wrong like one before"
        else:
            outcome = "changed" if changes else "unchanged"
        text = f"{point.kind} checksum {target}: {outcome}"
        details = state.describe(changes)
        source = state.source(point)
        return [
            state.step(
                "checksum", text, details=details, source=source, target=target, outcome=outcome
            )
        ]

    def emit(self, point: TracePoint, at: int, size: int) -> list[Step]:
        """Return the step of a header that the deparser has written."""
        state = self._state
        text = f"emit {point.name} ({size} bytes at {at})"
        return [
            state.step(
                "emit",
                text,
                details=(state.header(point.name),),
                header=point.name,
                at_bytes=at,
                bytes=size,
            )
        ]
