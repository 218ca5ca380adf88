# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
#
# One image for controller, softswitch, parameter servers and workers: the wheel, and a C compiler for softswitch.
#
#   docker build --tag switchfold .
#   docker build --tag switchfold:torch --build-arg EXTRAS=torch .     # for workers that train with PyTorch
#
# Base images are named in .env for `docker compose build`; these are the same.
ARG PYTHON_IMAGE=python:3.12-bookworm
ARG SLIM_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS wheel
RUN pip install --no-cache-dir 'build>=1.2'
WORKDIR /source
COPY LICENSE README.md pyproject.toml setup.py ./
COPY src src
COPY bmv2_topos bmv2_topos
COPY controller controller
COPY hostlib hostlib
COPY p4src p4src
COPY softswitch softswitch
RUN python -m build --wheel --outdir /wheels

FROM ${SLIM_IMAGE}
# softswitch compiles a P4 program when it loads it.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
ARG EXTRAS=controller
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[$EXTRAS]"
# Packet sockets need root and NET_RAW, nothing else does: services that open some name the user root.
RUN useradd --uid 10001 --create-home switchfold \
 && install --directory --owner switchfold --group switchfold /var/lib/switchfold
USER switchfold
WORKDIR /home/switchfold
CMD ["switchfold", "--help"]
