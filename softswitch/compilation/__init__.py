# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""From a program's JSON to native code: stages, compiler, cache, the runtime library."""
