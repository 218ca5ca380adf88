# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docker-compose.yml and Dockerfile: services, images from .env, no path outside the checkout."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from switchfold.controller.config import load_config
from switchfold.hostlib.config import join_from_environment

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<rest>:[?-][^}]*)?\}")


def read_compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))


def read_variables() -> dict[str, str]:
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


OURS = ("softswitch", "controller", "parameter-server", "worker")
"""Services that run the image of Dockerfile."""


def test_services_are_there() -> None:
    assert set(read_compose()["services"]) == {"p4c", "bmv2", *OURS}


def test_images_are_named_in_the_env_file() -> None:
    variables = read_variables()
    images: dict[str, str] = {}
    for name, service in read_compose()["services"].items():
        found = VARIABLE.fullmatch(service["image"])
        assert found is not None, f"{name}: {service['image']} does not come from .env"
        images[name] = variables[found["name"]]
    # A release or a digest: what compiles today compiles tomorrow.
    assert re.fullmatch(r"p4lang/p4c(:\d+(\.\d+){3}|@sha256:[0-9a-f]{64})", images["p4c"])
    assert images["bmv2"].startswith("p4lang/behavioral-model")
    assert {images[name] for name in OURS} == {"switchfold:local"}


def test_one_image_is_built_for_all_services_of_ours() -> None:
    services = read_compose()["services"]
    assert {name for name, service in services.items() if "build" in service} == set(OURS)
    assert all(services[name]["build"] == services["worker"]["build"] for name in OURS)
    # Compose's values and those of a plain `docker build` are the same.
    variables = read_variables()
    for name in services["worker"]["build"]["args"]:
        assert f"ARG {name}={variables[name]}\n" in DOCKERFILE


def test_one_switch_runs_by_default() -> None:
    services = read_compose()["services"]
    assert read_variables()["COMPOSE_PROFILES"] == "softswitch"
    profiles = {name: service.get("profiles") for name, service in services.items()}
    assert profiles["softswitch"] == ["softswitch"]
    assert profiles["bmv2"] == ["bmv2"]
    assert services["softswitch"]["networks"] == services["bmv2"]["networks"]
    assert services["softswitch"]["networks"]["data"]["aliases"] == ["switch"]


def test_every_variable_is_in_the_env_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    used = {found["name"] for found in VARIABLE.finditer(text)}
    assert used | {"COMPOSE_PROFILES"} == set(read_variables())


def test_no_host_path_leaves_the_checkout() -> None:
    compose = read_compose()
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            is_checkout = source in (".", "./examples") or source in compose["volumes"]
            assert is_checkout, f"{name} mounts {source}"
        assert "ports" not in service, f"{name} opens ports of the host"


def test_privileges_are_no_wider_than_needed() -> None:
    added = {"bmv2": {"NET_RAW", "NET_ADMIN"}, "worker": {"NET_RAW"}, "softswitch": {"NET_RAW"}}
    services = read_compose()["services"]
    for name, service in services.items():
        assert not service.get("privileged", False)
        assert set(service.get("cap_add", [])) == added.get(name, set())
        assert service.get("network_mode") != "host"
    # Without the user root, a container has no capability, though one was added.
    for name in OURS:
        assert services[name]["cap_drop"] == ["ALL"]
        assert (services[name].get("user") == "root") == (name in added)
    assert "\nUSER switchfold\n" in DOCKERFILE


def test_services_wait_for_healthy_ones() -> None:
    services = read_compose()["services"]
    for switch in ("softswitch", "bmv2"):  # that which runs
        waits = services["controller"]["depends_on"][switch]
        assert waits == {"condition": "service_healthy", "required": False}
    for name in ("controller", "parameter-server"):
        assert services["worker"]["depends_on"][name]["condition"] == "service_healthy"
    waited_for = ("bmv2", "softswitch", "controller", "parameter-server")
    assert all("healthcheck" in services[name] for name in waited_for)


def test_image_is_built_from_all_sources_of_the_wheel() -> None:
    links = {path.name for path in (ROOT / "src" / "switchfold").iterdir() if path.is_symlink()}
    sources = {"pyproject.toml", "setup.py", "README.md", "LICENSE", "src", *links}
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert {word for words in copied for word in words.split()} == sources
    # A pattern of .dockerignore that begins with "!" lets a path in again.
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert ignored[1] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == sources
    assert "**/*.so" in ignored  # what was compiled for this machine


def test_image_installs_the_wheel_with_an_extra_that_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (default,) = re.findall(r"^ARG EXTRAS=(\w+)$", DOCKERFILE, re.MULTILINE)
    named = re.findall(r"EXTRAS=(\w+)", DOCKERFILE)
    assert default == "controller"
    assert set(named) <= set(extras["optional-dependencies"])
    assert 'pip install --no-cache-dir "$(echo /wheels/*.whl)[$EXTRAS]"' in DOCKERFILE


@pytest.mark.parametrize("service", OURS)
def test_commands_are_those_of_the_package(service: str) -> None:
    words = read_compose()["services"][service]["command"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    if words[0] == "sh":
        for script in re.findall(r"python (/\S+\.py)", words[-1]):
            assert (ROOT / script.lstrip("/")).is_file()
    else:
        assert words[0] in scripts


def test_controller_configuration_fits() -> None:
    compose = read_compose()
    config = load_config(ROOT / "examples" / "controller.toml")
    switch = config.switches[0]
    assert switch.address == "switch:9559"
    pool = compose["networks"]["data"]["ipam"]["config"][0]
    service = ipaddress.ip_address(switch.service_address)
    assert service in ipaddress.ip_network(pool["subnet"])
    assert service not in ipaddress.ip_network(pool["ip_range"])
    port = config.listen.rpartition(":")[2]
    environment = compose["services"]["worker"]["environment"]
    assert environment["SWITCHFOLD_CONTROLLER"] == f"controller:{port}"
    # The folder of the database is in a volume of the controller.
    volumes = [text.split(":")[1] for text in compose["services"]["controller"]["volumes"]]
    assert str(Path(config.database).parent) in volumes


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
    command = ["docker", "compose", "--profile", "*", "config", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
