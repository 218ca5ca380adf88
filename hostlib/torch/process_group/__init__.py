# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch backend: a process group over a session, with Gloo for other collectives."""
