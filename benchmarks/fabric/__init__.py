# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainings whose updates the controller's scheduler plans, beside plainer systems."""
