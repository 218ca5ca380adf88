# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's web page: topology, trees, link rates and jobs, to be looked at only."""
