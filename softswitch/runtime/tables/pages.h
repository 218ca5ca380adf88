// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Zeroed memory that takes only the pages in use: large blocks are reserved as address space, so that a table has room
// for its largest number of entries from the start and never has to move them.
#ifndef SOFTSWITCH_PAGES_H
#define SOFTSWITCH_PAGES_H

#include <stddef.h>

enum { PAGES_HUGE_BYTES = 2 * 1024 * 1024 };

void *pages_reserve(size_t bytes); // NULL: no memory
void pages_release(void *memory, size_t bytes); // the same number of bytes; NULL is allowed

// Ask for huge pages in a block that is largely in use, or soon will be: a random access then needs no walk through page
// tables. Has no effect if the machine has none.
void pages_prefer_huge(void *memory, size_t bytes);

#endif
