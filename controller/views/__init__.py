# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views of jobs: planned, recorded, changed, and told to workers."""
