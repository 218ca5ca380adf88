# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a job from several looks at its slots and links, and what limits it."""
