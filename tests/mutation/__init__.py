# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The mutation fuzzer: distorted frames through the generated code under sanitizers."""
