# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Controls: a function per pipeline whose labels are its tables and conditionals."""

from ..program.model import Conditional, Control, ProgramTable
from .c_text import comment, identifier
from .context import Context, Refusal
from .expressions.expressions import Expressions
from .ir.jumps import can_exit
from .ir.lowering import Lowering
from .tables.tables import table_symbol


class ControlWriter:
    """Writes the pipelines of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.lowering = Lowering(context)
        self.expressions = Expressions(context)
        self.exiting = {
            action.position for action in context.program.actions if can_exit(action.primitives)
        }

    def emit(self) -> str:
        """C functions p4_control_ingress and p4_control_egress."""
        return "\n".join(self._control(control) for control in self.context.program.controls)

    def _control(self, control: Control) -> str:
        nodes: dict[str, ProgramTable | Conditional] = {}
        nodes.update({table.name: table for table in control.tables})
        nodes.update({item.name: item for item in control.conditionals})
        labels = {
            name: f"node_{index}_{identifier(name)}" for index, name in enumerate(sorted(nodes))
        }
        text = [
            f"static void p4_control_{identifier(control.name)}(pipeline_t *s, phv_t *p) {{",
            "bool is_hit = false;",
            "uint32_t action = 0;",
            "(void)s; (void)p; (void)is_hit; (void)action;",
        ]
        if control.init is not None:
            text.append(f"goto {labels[control.init]};")
        with self.context.refusals(f"control {control.name}"):
            if _has_cycle(nodes, control.init):
                raise Refusal(
                    "a control that comes back to a node",
                    "a packet would never leave it",
                    "Compile with an unmodified p4c",
                )
        for name in _reachable(nodes, control.init):
            node = nodes[name]
            text.append(f"{labels[name]}:; {comment(node.source)}")
            if isinstance(node, ProgramTable):
                text += self._table(node, labels)
            else:
                text += self._conditional(node, labels)
        return "\n".join([*text, "}", ""])

    def _conditional(self, node: Conditional, labels: dict[str, str]) -> list[str]:
        with self.context.refusals(node.source):
            test = self.expressions.condition(self.lowering.expression(node.expression))
            item = self.context.json_node(node.name)
            point = self.context.point("condition", node.name, item, "is_true")
            if point:
                head = [f"{{ const bool is_true = {test};", *point]
                return [
                    *head,
                    f"if (is_true) {_jump(node.true_next, labels)} }}",
                    _jump(node.false_next, labels),
                ]
            return [
                f"if ({test}) {_jump(node.true_next, labels)}",
                _jump(node.false_next, labels),
            ]
        return []

    def _table(self, table: ProgramTable, labels: dict[str, str]) -> list[str]:
        text = [f"action = {table_symbol(table)}(s, p, &is_hit);"]
        if any(action.position in self.exiting for action in table.actions):
            text.append("if (p->exited) return;")
        nexts = table.next_by_action
        if "__HIT__" in nexts:
            text.append(f"if (is_hit) {_jump(nexts['__HIT__'], labels)}")
            text.append(_jump(nexts.get("__MISS__"), labels))
            return text
        targets = {
            action.position: nexts.get(action.name, table.default_next) for action in table.actions
        }
        if len(set(targets.values()) | {table.default_next}) > 1:
            text.append("switch (action) {")
            for position, target in targets.items():
                text.append(f"case {position}: {_jump(target, labels)}")
            text += ["default: break;", "}"]
        text.append(_jump(table.default_next, labels))
        return text


def _jump(target: str | None, labels: dict[str, str]) -> str:
    return "return;" if target is None else f"goto {labels[target]};"


def _successors(node: ProgramTable | Conditional) -> list[str]:
    if isinstance(node, Conditional):
        found = [node.true_next, node.false_next]
    else:
        found = [*node.next_by_action.values(), node.default_next]
    return [name for name in found if name is not None]


def _has_cycle(nodes: dict[str, ProgramTable | Conditional], start: str | None) -> bool:
    done: set[str] = set()
    path: set[str] = set()
    # Names to enter, and each once more to leave it.
    waiting: list[tuple[str, bool]] = [(start, True)] if start is not None else []
    while waiting:
        name, is_entered = waiting.pop()
        if not is_entered:
            path.discard(name)
            done.add(name)
        elif name in path:
            return True
        elif name not in done:
            path.add(name)
            waiting.append((name, False))
            waiting += [(following, True) for following in _successors(nodes[name])]
    return False


def _reachable(nodes: dict[str, ProgramTable | Conditional], start: str | None) -> list[str]:
    found: list[str] = []
    waiting = [start] if start is not None else []
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting += _successors(nodes[name])
    return found
