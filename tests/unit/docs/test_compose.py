# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docker-compose.yml: services, images by name from .env, no host path outside the checkout."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from switchfold.controller.config import load_config
from switchfold.hostlib.config import join_from_environment

ROOT = Path(__file__).resolve().parents[3]
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<rest>:[?-][^}]*)?\}")


def read_compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))


def read_variables() -> dict[str, str]:
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


def test_services_are_there() -> None:
    assert set(read_compose()["services"]) == {"p4c", "bmv2", "controller", "worker"}


def test_images_are_named_in_the_env_file() -> None:
    variables = read_variables()
    images: dict[str, str] = {}
    for name, service in read_compose()["services"].items():
        found = VARIABLE.fullmatch(service["image"])
        assert found is not None, f"{name}: {service['image']} does not come from .env"
        images[name] = variables[found["name"]]
        assert "build" not in service
    assert images["p4c"].startswith("p4lang/p4c")
    assert images["bmv2"].startswith("p4lang/behavioral-model")
    assert images["controller"] == images["worker"]


def test_every_variable_is_in_the_env_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    used = {found["name"] for found in VARIABLE.finditer(text)}
    assert used == set(read_variables())


def test_no_host_path_leaves_the_checkout() -> None:
    compose = read_compose()
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            is_checkout = source == "." or source in compose["volumes"]
            assert is_checkout, f"{name} mounts {source}"
        assert "ports" not in service, f"{name} opens ports of the host"


def test_privileges_are_no_wider_than_needed() -> None:
    allowed = {"bmv2": {"NET_RAW", "NET_ADMIN"}, "worker": {"NET_RAW"}}
    for name, service in read_compose()["services"].items():
        assert not service.get("privileged", False)
        assert set(service.get("cap_add", [])) == allowed.get(name, set())
        assert service.get("network_mode") != "host"


def test_services_wait_for_healthy_ones() -> None:
    services = read_compose()["services"]
    assert services["controller"]["depends_on"]["bmv2"]["condition"] == "service_healthy"
    assert services["worker"]["depends_on"]["controller"]["condition"] == "service_healthy"
    assert all("healthcheck" in services[name] for name in ("bmv2", "controller"))


@pytest.mark.parametrize("service", ["controller", "worker"])
def test_package_is_built_from_all_its_sources(service: str) -> None:
    definition = read_compose()["services"][service]
    found = re.search(r"cp -r (.+) /tmp/source$", definition["command"][-1], re.MULTILINE)
    assert found is not None
    copied = set(found[1].split())
    links = {path.name for path in (ROOT / "src" / "switchfold").iterdir() if path.is_symlink()}
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "src", *links} == copied
    # The checkout itself holds no library that was compiled for this image.
    assert "PYTHONPATH" not in definition.get("environment", {})


def test_controller_configuration_fits() -> None:
    compose = read_compose()
    config = load_config(ROOT / "examples" / "controller.toml")
    switch = config.switches[0]
    assert switch.address == "bmv2:9559"
    pool = compose["networks"]["data"]["ipam"]["config"][0]
    service = ipaddress.ip_address(switch.service_address)
    assert service in ipaddress.ip_network(pool["subnet"])
    assert service not in ipaddress.ip_network(pool["ip_range"])
    port = config.listen.rpartition(":")[2]
    environment = compose["services"]["worker"]["environment"]
    assert environment["SWITCHFOLD_CONTROLLER"] == f"controller:{port}"


def test_worker_variables_are_those_of_the_host_library() -> None:
    documented = join_from_environment.__globals__["__doc__"]
    environment = read_compose()["services"]["worker"]["environment"]
    for name in environment:
        if name.startswith("SWITCHFOLD_"):
            assert name in documented


@pytest.mark.skipif(
    shutil.which("docker") is None
    or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    != 0,
    reason="docker with its compose plugin is not here",
)
def test_docker_compose_accepts_the_file() -> None:
    command = ["docker", "compose", "--profile", "build", "config", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
