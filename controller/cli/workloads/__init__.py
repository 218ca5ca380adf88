# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Loads that stand in for training data, for demos, benchmarks and tests. They need numpy alone."""
