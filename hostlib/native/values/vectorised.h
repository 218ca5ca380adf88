// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// VECTORISED, before a function whose loops the compiler vectorises: where the loader can choose, the wide registers of
// newer processors are used. It chooses before the thread sanitizer is ready.
#ifndef SWITCHFOLD_VECTORISED_H
#define SWITCHFOLD_VECTORISED_H

#include <stdint.h> // defines __GLIBC__ where that is the C library

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define VECTORISED __attribute__((target_clones("avx2", "default")))
#else
#define VECTORISED
#endif

#endif
