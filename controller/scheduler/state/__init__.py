# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""State of a job's transfers: what waits, what is under way, and what servers and replicas have."""
