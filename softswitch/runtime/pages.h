// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Zeroed memory that costs only what is touched: large blocks are reserved as address space, so that a table can have room
// for its largest number of entries from the start and never has to move them.
#ifndef SOFTSWITCH_PAGES_H
#define SOFTSWITCH_PAGES_H

#include <stddef.h>

void *pages_reserve(size_t bytes); // NULL: no memory
void pages_release(void *memory, size_t bytes); // the same number of bytes; NULL is allowed

#endif
