# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Services of docker-compose.yml as processes in network namespaces on a bridge, without Docker.

Each runs the command that the file has, with eth0, a host name, the names of the others in
/etc/hosts, and the file's variables. Its image is this environment. Paths of the image and of
volumes are replaced by folders of the test.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from veth_pair import ip

ROOT = Path(__file__).resolve().parents[2]
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::[?-][^}]*)?\}")
_BRIDGE = "br0"
_ENTER = 'mount --bind "$1" /etc/hosts; hostname "$2"; shift 2; exec "$@"'
_numbers = itertools.count()


def read_compose(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return docker-compose.yml with the values of variables, which `.env` and these have."""
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    values = {**{name: value for name, _, value in pairs}, **variables}
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    filled = _VARIABLE.sub(lambda found: values[found[1]] if found[1] else "$", text)
    return yaml.safe_load(filled)


@dataclass(frozen=True, kw_only=True)
class Container:
    """A running service, or a replica of one."""

    service: str
    host_name: str
    namespace: str
    process: subprocess.Popen[str]
    log: Path


class ComposeContainers:
    """The bridge and the containers; removed at the end of a `with` block."""

    def __init__(self, compose: Mapping[str, Any], folder: Path) -> None:
        """`folder`: takes logs, volumes and a copy of what the containers see of the checkout."""
        self._services = compose["services"]
        subnet = compose["networks"]["data"]["ipam"]["config"][0]["subnet"]
        self._prefix, _, self._length = subnet.partition("/")
        self._folder = folder
        self._name = f"sfc{os.getpid()}x{next(_numbers)}"
        self._hosts = folder / "hosts"
        self._stack = contextlib.ExitStack()
        self._addresses: dict[str, str] = {}

    def __enter__(self) -> ComposeContainers:
        with contextlib.ExitStack() as stack:
            self._add_namespace(stack, self._name)
            ip("-n", self._name, "link", "add", _BRIDGE, "type", "bridge")
            ip("-n", self._name, "link", "set", _BRIDGE, "up")
            self._make_programs()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def name(self, host_names: Mapping[str, Sequence[str]]) -> None:
        """Give all containers addresses, by host name; their other names are those of services."""
        first = self._prefix.rpartition(".")[0]
        lines = ["127.0.0.1 localhost"]
        for number, (host_name, others) in enumerate(host_names.items(), start=2):
            self._addresses[host_name] = f"{first}.{number}"
            lines.append(" ".join([self._addresses[host_name], *others, host_name]))
        self._hosts.write_text("\n".join(lines) + "\n", "ascii")

    def start(self, service: str, host_name: str) -> Container:
        """Start a service."""
        namespace = f"{self._name}n{len(self._addresses)}{host_name[-8:]}"
        self._add_namespace(self._stack, namespace)
        cable = f"c{list(self._addresses).index(host_name)}"
        ip("-n", self._name, "link", "add", cable, "type", "veth",
           "peer", "name", "eth0", "netns", namespace)  # fmt: skip
        ip("-n", self._name, "link", "set", cable, "master", _BRIDGE, "up")
        address = f"{self._addresses[host_name]}/{self._length}"
        ip("-n", namespace, "addr", "add", address, "dev", "eth0")
        for interface in ("lo", "eth0"):
            ip("-n", namespace, "link", "set", interface, "up")
        definition = self._services[service]
        log = self._folder / f"{host_name}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                self._inside(namespace, host_name, self._mapped(service, definition["command"])),
                env=self._environment(definition.get("environment", {})),
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self._stack.callback(_stop, process)
        return Container(
            service=service, host_name=host_name, namespace=namespace, process=process, log=log
        )

    def is_healthy(self, container: Container) -> bool:
        """Run the service's health check once; raise AssertionError if the service has ended."""
        ended = container.process.poll()
        assert ended is None, f"{container.service} ended ({ended}): {container.log.read_text()}"
        kind, *words = self._services[container.service]["healthcheck"]["test"]
        assert kind == "CMD"
        command = self._inside(container.namespace, container.host_name, words)
        environment = self._environment({})
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        return done.returncode == 0

    def _add_namespace(self, stack: contextlib.ExitStack, name: str) -> None:
        ip("netns", "add", name)
        stack.callback(ip, "netns", "delete", name)

    def _inside(self, namespace: str, host_name: str, words: Sequence[str]) -> list[str]:
        enter = ["nsenter", f"--net=/run/netns/{namespace}", "unshare", "--mount", "--uts"]
        return [*enter, "sh", "-ec", _ENTER, "sh", str(self._hosts), host_name, *words]

    def _mapped(self, service: str, words: Sequence[str]) -> list[str]:
        """Return a command with paths of this machine in place of those of the volumes."""
        return [self._with_paths(service, word) for word in words]

    def _with_paths(self, service: str, text: str) -> str:
        for volume in self._services[service].get("volumes", []):
            source, target, *_ = volume.split(":")
            folder = self._folder / "volumes" / source.removeprefix("./")
            if source.startswith("./") and not folder.exists():
                self._copy(service, ROOT / source, folder)
            folder.mkdir(parents=True, exist_ok=True)
            text = text.replace(target, str(folder))
        return text

    def _copy(self, service: str, source: Path, folder: Path) -> None:
        """Copy the files of a folder, whose texts may name paths of volumes, too."""
        folder.mkdir(parents=True)
        for file in source.glob("*.*"):
            (folder / file.name).write_text(self._with_paths(service, file.read_text("utf-8")))

    def _environment(self, variables: Mapping[str, object]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "SWITCHFOLD" not in name}
        path = os.pathsep.join([str(self._folder / "bin"), os.environ["PATH"]])
        own = {name: str(value) for name, value in variables.items()}  # YAML has numbers, too
        return {**kept, **own, "PATH": path, "PYTHONPATH": str(ROOT / "src")}

    def _make_programs(self) -> None:
        """Make the commands of the wheel: those installed here may be of another version."""
        folder = self._folder / "bin"
        folder.mkdir()
        for name, words in {
            "python": "",
            "softswitch": "-m switchfold.softswitch",
            "switchfold": "-m switchfold.controller",
        }.items():
            program = folder / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
            program.chmod(0o755)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
