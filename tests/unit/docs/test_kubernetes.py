# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Manifests in examples/clusters/kubernetes: schema, what refers to what, options, privileges."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from switchfold.controller.cli.manual.programs import children, program_context
from switchfold.controller.config import load_config
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.parameter_server.command import make_parser

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "clusters" / "kubernetes"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.stem != "kustomization")
PAGE = (ROOT / "docs" / "clusters" / "kubernetes.md").read_text("utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


OBJECTS = [each for path in FILES for each in read(path)]


def kind(name: str) -> list[dict[str, Any]]:
    return [each for each in OBJECTS if each["kind"] == name]


def workloads() -> list[dict[str, Any]]:
    return [each for each in OBJECTS if "template" in each.get("spec", {})]


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each container with the specification of its pod."""
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        for container in pod["containers"]:
            yield pod, container


def test_all_parts_are_there() -> None:
    found = {(each["kind"], each["metadata"]["name"]) for each in OBJECTS}
    assert len(found) == len(OBJECTS)
    assert found >= {
        ("DaemonSet", "softswitch"),
        ("Deployment", "controller"),
        ("StatefulSet", "parameter-server"),
        ("Job", "training"),
    }


def test_kustomization_lists_all_files_and_sets_the_image() -> None:
    (listed,) = read(FOLDER / "kustomization.yaml")
    assert sorted(listed["resources"]) == [path.name for path in FILES]
    assert listed["namespace"] == kind("Namespace")[0]["metadata"]["name"]
    assert {container["image"] for _, container in containers()} == {listed["images"][0]["name"]}
    for made in listed["configMapGenerator"]:
        assert all((FOLDER / name).is_file() for name in made["files"])


def test_selectors_find_pods_and_services_find_ports() -> None:
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in workloads()]
    for workload in workloads():
        selector = workload["spec"].get("selector")
        if selector is not None:
            assert selector["matchLabels"] == workload["spec"]["template"]["metadata"]["labels"]
    for service in kind("Service"):
        assert service["spec"]["selector"] in labels
        ports = {
            port["name"] for _, container in containers() for port in container.get("ports", [])
        }
        for port in service["spec"]["ports"]:
            assert port.get("targetPort", port["name"]) in ports


def test_volumes_and_probes_refer_to_what_is_there() -> None:
    claims = {each["metadata"]["name"] for each in kind("PersistentVolumeClaim")}
    (listed,) = read(FOLDER / "kustomization.yaml")
    maps = {each["metadata"]["name"] for each in kind("ConfigMap")}
    maps |= {made["name"] for made in listed["configMapGenerator"]}
    templates = {
        made["metadata"]["name"]
        for workload in kind("StatefulSet")
        for made in workload["spec"]["volumeClaimTemplates"]
    }
    for pod, container in containers():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            assert mount["name"] in volumes.keys() | templates
        for volume in volumes.values():
            if "configMap" in volume:
                assert volume["configMap"]["name"] in maps
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims
        ports = {port["name"] for port in container.get("ports", [])}
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            if probe in container:
                assert container[probe]["tcpSocket"]["port"] in ports


def test_secrets_are_made_on_the_page() -> None:
    text = json.dumps(OBJECTS)
    named = set(re.findall(r'"secretName": "([\w-]+)"', text))
    named |= set(re.findall(r'"secretKeyRef": {"name": "([\w-]+)"', text))
    assert named == set(re.findall(r"create secret generic ([\w-]+)", PAGE))


@pytest.mark.parametrize("command", [each["command"] for _, each in containers()], ids=" ".join)
def test_commands_have_options_of_the_programs(command: list[str]) -> None:
    if command[0] == "python":
        return
    if command[:3] == ["switchfold", "ps", "run"]:
        words = [word.replace("$(SHARD)", "0") for word in command[3:]]
        assert make_parser().parse_args(words).shard == 0
        return
    context = program_context(command[0])
    words = command[1:]
    while isinstance(context.command, click.Group):
        context = next(each for each in children(context) if each.info_name == words[0])
        words = words[1:]
    given, rest, _ = context.command.make_parser(context).parse_args(list(words))
    assert rest == []
    assert given


def test_configuration_is_the_controllers() -> None:
    config = load_config(FOLDER / "controller.toml")
    (service,) = (each for each in kind("Service") if each["metadata"]["name"] == "controller")
    assert config.listen.rpartition(":")[2] == str(service["spec"]["ports"][0]["port"])
    (pod, container) = next(pair for pair in containers() if pair[1]["name"] == "controller")
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(config.credentials), str(Path(config.database).parent)} <= mounts
    assert pod["securityContext"]["runAsNonRoot"]


def test_workers_have_documented_variables_and_a_program_that_compiles() -> None:
    (job,) = kind("Job")
    (worker,) = job["spec"]["template"]["spec"]["containers"]
    documented = join_from_environment.__globals__["__doc__"]
    variables = {variable["name"]: variable.get("value") for variable in worker["env"]}
    assert all(name in documented for name in variables)
    assert variables["SWITCHFOLD_NUM_WORKERS"] == str(job["spec"]["completions"])
    assert job["spec"]["completions"] == job["spec"]["parallelism"]
    (program,) = kind("ConfigMap")[0]["data"].values()
    compile(program, "train.py", "exec")
    # The servers wait for as many workers.
    (server,) = (each for _, each in containers() if each["name"] == "parameter-server")
    place = server["command"].index("--num-workers")
    assert server["command"][place + 1] == variables["SWITCHFOLD_NUM_WORKERS"]


def test_privileges_are_no_wider_than_needed() -> None:
    for pod, container in containers():
        context = container["securityContext"]
        has_packet_sockets = container["name"] in ("softswitch", "worker")
        assert context["capabilities"]["drop"] == ["ALL"]
        assert context["capabilities"].get("add", []) == ["NET_RAW"] * has_packet_sockets
        assert not context["allowPrivilegeEscalation"]
        assert "privileged" not in context
        assert pod.get("hostNetwork", False) == has_packet_sockets


def test_manifests_follow_the_schema_of_the_version_that_the_page_names() -> None:
    version = kubernetes_validate.latest_version()
    assert f"the schema of Kubernetes {'.'.join(version.split('.')[:2])}" in PAGE
    for each in OBJECTS:
        kubernetes_validate.validate(each, version, strict=True)


def test_schema_is_strict() -> None:
    """A check that accepts a misspelt field would prove little."""
    changed = copy.deepcopy(kind("Deployment")[0])
    changed["spec"]["template"]["spec"]["contaners"] = []
    with pytest.raises(kubernetes_validate.ValidationError, match="contaners"):
        kubernetes_validate.validate(changed, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
def test_kustomize_puts_everything_into_the_namespace() -> None:
    command = ["kubectl", "kustomize", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert len(made) == len(OBJECTS) + 1  # with the generated ConfigMap
    spaces = {each["metadata"].get("namespace") for each in made if each["kind"] != "Namespace"}
    assert spaces == {"switchfold"}
    # A pod sees a changed configuration: its ConfigMap has another name.
    assert re.search(r"configMap:\n +name: controller-\w{10}\n", done.stdout)
