/* SPDX-FileCopyrightText: 2026 The Switchfold Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The values of one hot row: docs/protocol.md, "Hot rows: workers and servers". A server writes versions of the values to a
 * root, which passes them on to a leaf; a worker reads them from the leaf.
 *
 * A version is the length of the server's log. The model keeps a log as bits: which of two records came first, second ...
 * So two logs of one length may differ, after a crash. A packet that was sent may arrive at any later time, any number of
 * times, or never. Each switch gets its entries of the row by itself, and loses its registers at any time.
 *
 * Defects that the checker must find:
 *   WRITES_LOGGED=0  the server writes what is not in its log
 *   NEW_VERSION=0    the server writes an old version for a new entry of the row
 *   NEWER_ONLY=0     switches take over every version
 *   ASKS=0           the worker does not say which version it has seen
 */
#ifndef VERSIONS
#define VERSIONS 3
#endif
#ifndef ENTRIES
#define ENTRIES 2
#endif
#ifndef WRITES_LOGGED
#define WRITES_LOGGED 1
#endif
#ifndef NEW_VERSION
#define NEW_VERSION 1
#endif
#ifndef NEWER_ONLY
#define NEWER_ONLY 1
#endif
#ifndef ASKS
#define ASKS 1
#endif

#define BIT(i) (1 << (i))
#define PREFIX(n) (BIT(n) - 1)

/* ---- server ---- */

byte records;   /* bit i: record i + 1 */
byte version;   /* how many records there are */
byte logged;    /* how many of them are in the log */
byte known = 1; /* the epoch that the server knows of */
byte since;     /* version with which it began to write for this entry */

byte written;               /* versions that were ever written */
byte values[VERSIONS + 1];  /* the records behind each of them */

/* ---- switches ---- */

typedef copy_t {
  byte entry; /* epoch of the row in this switch's table */
  byte version;
  byte epoch
};
copy_t copies[2]; /* of the root, and of the leaf */
#define ROOT 0
#define LEAF 1
byte sent[ENTRIES + 1];      /* versions that the server has sent, by epoch */
byte sent_down[ENTRIES + 1]; /* versions that the root has sent to the leaf */
byte answers[ENTRIES + 1];   /* versions that the leaf has answered */
byte newest;                 /* version that the leaf has answered, of this epoch, since it last lost its registers */

inline write() {
  assert(!(written & BIT(version)) || values[version] == (records & PREFIX(version)));
  written = written | BIT(version);
  values[version] = records & PREFIX(version);
  sent[known] = sent[known] | BIT(version)
}

/* A WRITE of epoch e and version v. Versions are compared whatever the epoch is. */
inline receive_write(c, e, v) {
  if
  :: copies[c].entry != e /* COLD */
  :: copies[c].entry == e && v == copies[c].version && copies[c].epoch != e ->
    assert(false) /* MISMATCH: the row would stay cold */
  :: else ->
    if
    :: v > copies[c].version || !NEWER_ONLY -> copies[c].version = v; copies[c].epoch = e
    :: else
    fi;
    if
    :: c == ROOT && v == copies[c].version -> sent_down[e] = sent_down[e] | BIT(v)
    :: else
    fi
  fi
}

/* ---- the worker ---- */

byte seen;           /* the newest version in this epoch */
byte seen_entry = 1; /* the epoch for which the worker asks; it follows the leaf's at any time */
#if ASKS
#define LEAST seen
#else
#define LEAST 0
#endif

init {
  byte e, v;
  copies[ROOT].entry = 1;
  copies[LEAF].entry = 1;
  do
  :: d_step { version < VERSIONS -> version++ }
  :: d_step { version < VERSIONS -> records = records | BIT(version); version++ }
  :: d_step { logged < version -> logged++ }
  :: d_step { version > logged -> version = logged; records = records & PREFIX(logged) } /* a crash */
#if WRITES_LOGGED
  :: d_step { version > since && version == logged -> write() }
#else
  :: d_step { version > since -> write() }
#endif
  :: d_step { copies[ROOT].entry < ENTRIES -> copies[ROOT].entry++ }
  :: d_step { copies[LEAF].entry < ENTRIES -> copies[LEAF].entry++; newest = 0 }
  :: d_step { known < copies[ROOT].entry && version == logged -> known++;
       if
       :: NEW_VERSION -> since = version
       :: else -> since = 0
       fi }
  :: d_step { copies[ROOT].version = 0; copies[ROOT].epoch = 0 } /* loses its registers, or moves the row */
  :: d_step { copies[LEAF].version = 0; copies[LEAF].epoch = 0; newest = 0 }
  :: d_step { seen_entry < copies[LEAF].entry -> seen_entry++; seen = 0 }
  :: atomic { /* Something arrives. */
       select(e : 1 .. ENTRIES);
       select(v : 1 .. VERSIONS);
       if
       :: sent[e] & BIT(v) -> d_step { receive_write(ROOT, e, v) }
       :: sent_down[e] & BIT(v) -> d_step { receive_write(LEAF, e, v) }
       :: else
       fi;
       e = 0; v = 0 }
  :: atomic { /* A READ arrives; its answer arrives now, or later than others. */
       copies[LEAF].entry == seen_entry && copies[LEAF].epoch == seen_entry &&
           copies[LEAF].version >= LEAST && copies[LEAF].version > 0 ->
       d_step {
         assert(copies[LEAF].version >= newest);
         newest = copies[LEAF].version;
         answers[seen_entry] = answers[seen_entry] | BIT(copies[LEAF].version) } }
  :: atomic {
       select(v : 1 .. VERSIONS);
       if
       :: (answers[seen_entry] & BIT(v)) && v >= LEAST ->
         d_step {
           assert(v >= seen); /* within an epoch, versions do not go backwards */
           assert(written & BIT(v));
           assert(v <= logged && values[v] == (records & PREFIX(v))); /* durable: no crash takes it back */
           seen = v }
       :: else
       fi;
       v = 0 }
  od
}
