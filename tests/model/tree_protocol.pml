/* SPDX-FileCopyrightText: 2026 The Switchfold Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The slot protocol of docs/protocol.md on a tree: one slot (two copies) of an inner switch and of the root above it.
 *
 *        root
 *       /    \          worker 2 is the root's own; workers 0 and 1 are the inner switch's.
 *    inner    2
 *    /   \
 *   0     1
 *
 * The network is the worst possible on every hop, also between the switches: any packet that was sent may be delivered at
 * any later time, any number of times, or never. So a packet in flight needs no state beyond "was sent" and its contents.
 *
 * Time is one number, the epoch, which counts the rounds of all generations. The model keeps a lane's sum as the set of
 * workers whose values it holds (`content`), and `is_wrong`: a value was added twice, or belongs to another epoch. A packet
 * that leaves a switch must hold exactly the values that its header names.
 *
 * Variants, by -D:
 *   PARTIAL=1   any worker may flush at any time; the root also closes with QUORUM contributors.
 *   CONTRIBUTIONS_EXPECT=n, FLUSHES_EXPECT=n  the field `expected`, with PARTIAL: the root closes with n workers, and each
 *               switch ignores a flush while fewer are in its sum. 0: none, as in version 1 of the wire format.
 *   HOT=1       a hot row, with PARTIAL: workers push without waiting for results, and switches lose their registers at
 *               any time. So a round may have several sums, and each must hold what it names. The inner switch may have
 *               sent any sum of what its workers have pushed. So may the root, as is checked; and so may any switch whose
 *               children do.
 *   LIVENESS=1  each worker's retransmission gets through eventually, to the root and back; check that all rounds end.
 *               With PARTIAL, worker DEAD may stop for ever.
 *   ROGUE=1     a child also sends results with contents of its own.
 * Defects that the checker must find:
 *   CONTRIBUTION_CHECK=0  the inner switch adds contributions of any round
 *   RESULT_CHECK=0        the inner switch stores results of any round
 *   OPEN_CHECK=0          the inner switch stores a result of any round while its own is open
 *   PARENT_CHECK=0        the inner switch stores results from children
 *   STORES=0              the inner switch passes a result on without storing it over its own sum
 *   ADDS_LATE=1           the inner switch adds a contribution after it has sent its sum up
 *   RESENDS=0             the inner switch does not send up again
 *   RELAYS=0              the inner switch does not pass flushes on
 *   FLUSHES=0             workers do not flush, though the root has a quorum
 *   FLUSHES_RISE=0        all flushes name the lowest level, the inner switch's
 *   INNER_EXPECTS=0       the inner switch obeys flushes whatever they expect
 *   EARLY_LEAF=1          the inner switch sends up its first contribution, if contributions say what they expect
 *   CHILD_CHECK=0         the root adds a second contribution of a child to the same round
 *   NOTICES=0             no notice tells workers that a round is past
 */
#ifndef ROUNDS
#define ROUNDS 4
#endif
#ifndef GENERATIONS
#define GENERATIONS 1
#endif
#ifndef PARTIAL
#define PARTIAL 0
#endif
#ifndef QUORUM
#define QUORUM 3
#endif
#ifndef CONTRIBUTIONS_EXPECT
#define CONTRIBUTIONS_EXPECT 0
#endif
#ifndef FLUSHES_EXPECT
#define FLUSHES_EXPECT 0
#endif
#ifndef INNER_EXPECTS
#define INNER_EXPECTS 1
#endif
#ifndef EARLY_LEAF
#define EARLY_LEAF 0
#endif
#ifndef CHILD_CHECK
#define CHILD_CHECK 1
#endif
#ifndef HOT
#define HOT 0
#endif
#ifndef LIVENESS
#define LIVENESS 0
#endif
#ifndef DEAD
#define DEAD 1
#endif
#ifndef ROGUE
#define ROGUE 0
#endif
#ifndef CONTRIBUTION_CHECK
#define CONTRIBUTION_CHECK 1
#endif
#ifndef RESULT_CHECK
#define RESULT_CHECK 1
#endif
#ifndef OPEN_CHECK
#define OPEN_CHECK 1
#endif
#ifndef PARENT_CHECK
#define PARENT_CHECK 1
#endif
#ifndef STORES
#define STORES 1
#endif
#ifndef ADDS_LATE
#define ADDS_LATE 0
#endif
#ifndef RELAYS
#define RELAYS 1
#endif
#ifndef FLUSHES
#define FLUSHES 1
#endif
#ifndef FLUSHES_RISE
#define FLUSHES_RISE 1
#endif
#ifndef NOTICES
#define NOTICES 1
#endif
#ifndef RESENDS
#define RESENDS 1
#endif

#define NUM_WORKERS 3
#define ALL 7
#define ALIVE (3 - DEAD) /* besides worker 0 */
#define BELOW 3 /* the inner switch's workers: bits 0 and 1; these are also its children's bits */
#define INNER_BIT 1 /* the root's children: the inner switch and worker 2 */
#define CHILDREN 3
#define EPOCHS (ROUNDS * GENERATIONS)
#define GENERATION(e) (((e) - 1) / ROUNDS + 1)
#define COUNT(b) (((b) & 1) + (((b) >> 1) & 1) + (((b) >> 2) & 1))
#if CONTRIBUTIONS_EXPECT
#define ENOUGH CONTRIBUTIONS_EXPECT
#else
#define ENOUGH QUORUM
#endif
/* A round that ends has as many workers as contributions or flushes have said. */
#define IS_PAID(workers) (COUNT(workers) >= ENOUGH || COUNT(workers) >= FLUSHES_EXPECT)
#define INNER_LEVEL 0 /* level of a switch; flushes name the highest level whose rounds they end */
#define ROOT_LEVEL 1
#define OPEN 0
#define SENT_UP 1
#define CLOSED 2

typedef copy_t {
  byte epoch; /* zero: never used */
  byte state;
  byte arrived;      /* which children have contributed */
  byte contributors; /* which workers the header names */
  byte content;      /* which workers' values the lanes hold */
  bool is_wrong
};
copy_t copies[4]; /* the inner switch's two, then the root's */
#define INNER(e) ((e) & 1)
#define ROOT(e) (2 + ((e) & 1))

byte inner_generation = 1; /* of each switch's table entries */
byte root_generation = 1;
byte at[NUM_WORKERS]; /* the epoch each worker has sent and waits for; EPOCHS + 1: finished */

/* What was ever sent, by epoch; zero: nothing. */
byte up[EPOCHS + 1];     /* contributors of the inner switch's contribution */
byte result[EPOCHS + 1]; /* contributors of the root's result */
#if HOT
#define NOTE(sent, workers) skip
#define WAS_SENT(sent, workers) true
#else
#define NOTE(sent, workers) assert(sent == 0 || sent == (workers)); sent = (workers)
#define WAS_SENT(sent, workers) (sent == (workers))
#endif
#if !PARTIAL || LIVENESS
bool down[EPOCHS + 1]; /* whether the inner switch has sent the result to its workers */
#define SAY_DOWN(e) down[e] = true
#else
/* Workers may go on with any result that exists, since they may get it from each other. */
#define SAY_DOWN(e) skip
#endif
#if PARTIAL && LIVENESS && NOTICES
bool told[EPOCHS + 1]; /* whether a notice told the inner switch's workers that the round is past */
#define SAY_PAST(e, copy_epoch) told[e] = told[e] || GENERATION(copy_epoch) == GENERATION(e)
#else
#define SAY_PAST(e, copy_epoch) skip
#endif

/* A result holds exactly what its header names, whenever it is sent. */
inline check_exact(c, e) {
  assert(copies[c].epoch == e && !copies[c].is_wrong && copies[c].content == copies[c].contributors);
  assert(PARTIAL || copies[c].contributors == ALL)
}

inline start_afresh(c, e, child, workers) {
  copies[c].epoch = e;
  copies[c].state = OPEN;
  copies[c].arrived = child;
  copies[c].contributors = workers;
  copies[c].content = workers;
  copies[c].is_wrong = false
}

inline forget_copy(c) {
  copies[c].epoch = 0;
  copies[c].state = OPEN;
  copies[c].arrived = 0;
  copies[c].contributors = 0;
  copies[c].content = 0;
  copies[c].is_wrong = false
}

inline add(c, e, child, workers) {
  copies[c].is_wrong = copies[c].is_wrong || copies[c].epoch != e || (copies[c].content & (workers)) != 0;
  copies[c].content = copies[c].content | (workers);
  copies[c].contributors = copies[c].contributors | (workers);
  copies[c].arrived = copies[c].arrived | (child)
}

/* ---- the root ---- */

inline emit_result(e) {
  check_exact(ROOT(e), e);
  assert(IS_PAID(copies[ROOT(e)].contributors));
  NOTE(result[e], copies[ROOT(e)].contributors)
}

/* A contribution of `workers` in epoch e from the child with bit `child`. */
inline receive_at_root(e, child, workers) {
  if
  :: GENERATION(e) != root_generation /* dropped: BAD_GENERATION */
  :: GENERATION(e) == root_generation && e < copies[ROOT(e)].epoch -> /* STALE or NOTIFIED */
    if
    :: child == INNER_BIT -> SAY_PAST(e, copies[ROOT(e)].epoch)
    :: else
    fi
  :: else ->
    if
    :: e > copies[ROOT(e)].epoch -> start_afresh(ROOT(e), e, child, workers)
    :: e == copies[ROOT(e)].epoch && copies[ROOT(e)].state == OPEN &&
         (!CHILD_CHECK || !(copies[ROOT(e)].arrived & (child))) ->
      add(ROOT(e), e, child, workers)
    :: else /* DUPLICATE or REPLAYED */
    fi;
    if
    :: copies[ROOT(e)].state == OPEN &&
         (copies[ROOT(e)].arrived == CHILDREN ||
             (PARTIAL && COUNT(copies[ROOT(e)].contributors) >= ENOUGH)) ->
      copies[ROOT(e)].state = CLOSED
    :: else
    fi;
    if
    :: copies[ROOT(e)].state == CLOSED -> emit_result(e)
    :: else
    fi
  fi
}

/* A flush closes an open round that has a contributor, and gets the result of a closed round. */
inline flush_at_root(e, level) {
  if
  :: GENERATION(e) == root_generation && e == copies[ROOT(e)].epoch &&
       (copies[ROOT(e)].state == CLOSED ||
           (level >= ROOT_LEVEL && COUNT(copies[ROOT(e)].contributors) >= FLUSHES_EXPECT)) ->
    copies[ROOT(e)].state = CLOSED;
    emit_result(e)
  :: else
  fi
}

/* ---- the inner switch ---- */

inline send_up(e) {
  assert(copies[INNER(e)].epoch == e && !copies[INNER(e)].is_wrong);
  assert(copies[INNER(e)].content == copies[INNER(e)].contributors);
  assert(PARTIAL || copies[INNER(e)].contributors == BELOW);
  NOTE(up[e], copies[INNER(e)].contributors)
}

inline send_down(e) {
  check_exact(INNER(e), e);
  assert(WAS_SENT(result[e], copies[INNER(e)].contributors)); /* what the root's own workers see */
  SAY_DOWN(e)
}

#if PARTIAL
#define MAY_STORE(c, e) (e > copies[c].epoch || (e == copies[c].epoch && copies[c].state != CLOSED))
#elif !RESULT_CHECK
#define MAY_STORE(c, e) (copies[c].state == SENT_UP)
#elif !OPEN_CHECK
#define MAY_STORE(c, e) \
  ((copies[c].epoch != 0 && copies[c].state == OPEN) || (e == copies[c].epoch && copies[c].state == SENT_UP))
#else
#define MAY_STORE(c, e) (e == copies[c].epoch && copies[c].state == SENT_UP)
#endif

/* A result of epoch e that holds `workers`. A copy that takes a result of another epoch keeps its own epoch. */
inline store(e, workers, is_right) {
  if
  :: GENERATION(e) == inner_generation && MAY_STORE(INNER(e), e) ->
    copies[INNER(e)].is_wrong = !(is_right) || (e < copies[INNER(e)].epoch) ||
      (!PARTIAL && e != copies[INNER(e)].epoch);
    if
    :: PARTIAL -> copies[INNER(e)].epoch = e
    :: else
    fi;
#if STORES
    copies[INNER(e)].content = workers;
#endif
    copies[INNER(e)].contributors = workers;
    copies[INNER(e)].state = CLOSED;
    send_down(e)
  :: else
    /* Only if rounds may end without all workers can a result meet an open round, or a round that this
     * switch does not know. */
    assert(PARTIAL || GENERATION(e) != inner_generation || !(is_right) ||
           e < copies[INNER(e)].epoch || copies[INNER(e)].state == CLOSED)
  fi
}

#if LIVENESS
/* The packet that the inner switch has just sent gets through to the root, and the answer gets back. */
#define GO_THROUGH(e) \
  receive_at_root(e, INNER_BIT, up[e]); \
  if \
  :: result[e] != 0 && copies[ROOT(e)].epoch == (e) -> store(e, result[e], true) \
  :: else \
  fi
#else
#define GO_THROUGH(e) skip
#endif

/* A contribution of worker w in epoch e. */
inline receive_at_inner(w, e, is_through) {
  if
  :: GENERATION(e) != inner_generation /* dropped: BAD_GENERATION */
#if CONTRIBUTION_CHECK
  :: GENERATION(e) == inner_generation && e < copies[INNER(e)].epoch -> /* STALE or NOTIFIED */
    SAY_PAST(e, copies[INNER(e)].epoch)
#endif
  :: else ->
    if
    :: e > copies[INNER(e)].epoch -> start_afresh(INNER(e), e, 1 << (w), 1 << (w))
    :: e <= copies[INNER(e)].epoch &&
         (copies[INNER(e)].state == OPEN || (ADDS_LATE && copies[INNER(e)].state == SENT_UP)) &&
         !(copies[INNER(e)].arrived & (1 << (w))) ->
      add(INNER(e), e, 1 << (w), 1 << (w))
    :: else /* DUPLICATE, or as below */
    fi;
    if
    :: copies[INNER(e)].state == CLOSED && copies[INNER(e)].epoch == e -> send_down(e) /* REPLAYED */
    :: copies[INNER(e)].state == OPEN &&
         (copies[INNER(e)].arrived == BELOW || (EARLY_LEAF && CONTRIBUTIONS_EXPECT)) ->
      copies[INNER(e)].state = SENT_UP;
      send_up(e);
      if
      :: is_through -> GO_THROUGH(e)
      :: else
      fi
    :: copies[INNER(e)].state == SENT_UP && copies[INNER(e)].epoch == e && RESENDS -> /* RESENT */
      send_up(e);
      if
      :: is_through -> GO_THROUGH(e)
      :: else
      fi
    :: else
    fi
  fi
}

/* A flush of epoch e from a child. No level is too low for the inner switch. */
#define OBEYS(workers) (!INNER_EXPECTS || COUNT(workers) >= FLUSHES_EXPECT)
inline flush_at_inner(e, level, is_through) {
  if
  :: GENERATION(e) == inner_generation && e == copies[INNER(e)].epoch ->
    if
    :: copies[INNER(e)].state == OPEN && !OBEYS(copies[INNER(e)].contributors) /* FLUSH_IGNORED */
    :: copies[INNER(e)].state == OPEN && OBEYS(copies[INNER(e)].contributors) ->
      copies[INNER(e)].state = SENT_UP;
      send_up(e);
      if
      :: is_through -> GO_THROUGH(e)
      :: else
      fi
    :: copies[INNER(e)].state == SENT_UP -> /* RELAYED */
      if
      :: is_through && RELAYS && level > INNER_LEVEL ->
        flush_at_root(e, level);
        if
        :: result[e] != 0 && copies[ROOT(e)].epoch == e -> store(e, result[e], true)
        :: else
        fi
      :: else
      fi
    :: copies[INNER(e)].state == CLOSED -> send_down(e)
    fi
  :: else
  fi
}

/* ---- workers ---- */

#define HAS_STARTED(e) (at[0] >= e || at[1] >= e || at[2] >= e)
#define HAVE_SENT(e, b) ((!((b) & 1) || at[0] >= e) && (!((b) & 2) || at[1] >= e) && (!((b) & 4) || at[2] >= e))
#define IS_WAITING(w) (at[w] <= EPOCHS)
#define HAS_RESULT(w) (IS_WAITING(w) && result[at[w]] != 0)
#if HOT
#define MAY_GO_ON(w) IS_WAITING(w)
#elif !PARTIAL
#define MAY_GO_ON(w) (HAS_RESULT(w) && ((w) == 2 || down[at[w]]))
#elif LIVENESS && !NOTICES
#define MAY_GO_ON(w) (HAS_RESULT(w) && ((w) == 2 || down[at[w]]))
#elif LIVENESS
/* A worker that knows from a notice that its round is past gets the result from another worker. */
#define MAY_GO_ON(w) (HAS_RESULT(w) && ((w) == 2 || down[at[w]] || told[at[w]]))
#else
#define MAY_GO_ON(w) HAS_RESULT(w)
#endif
#define IS_LEFT_BEHIND(w) \
  (IS_WAITING(w) && inner_generation > GENERATION(at[w]) && root_generation > GENERATION(at[w]))

inline contribute(w, e, is_through) {
  if
  :: (w) == 2 -> receive_at_root(e, 2, 4)
  :: else -> receive_at_inner(w, e, is_through)
  fi
}

inline send_flush(w, e, level, is_through) {
  if
  :: (w) == 2 -> flush_at_root(e, level)
  :: else -> flush_at_inner(e, level, is_through)
  fi
}

inline go_on(w) {
  if
  :: MAY_GO_ON(w) -> at[w]++
  :: IS_LEFT_BEHIND(w) -> at[w] = GENERATION(at[w]) * ROUNDS + 1
  :: else
  fi
}

#if LIVENESS
/* A worker's timer: the packet that it sends gets through. */
proctype Worker(byte w) {
  do
  :: atomic { IS_WAITING(w) && !MAY_GO_ON(w) && !IS_LEFT_BEHIND(w) -> d_step { contribute(w, at[w], true) } }
  :: atomic { MAY_GO_ON(w) || IS_LEFT_BEHIND(w) -> go_on(w) }
  :: !IS_WAITING(w) -> break
  od
}

/* A worker's flushes, on a timer of their own: each names a higher level than the one before. */
proctype Flusher(byte w) {
  byte level, since;
  do
  :: atomic {
       IS_WAITING(w) && !MAY_GO_ON(w) ->
       if
       :: since != at[w] || !FLUSHES_RISE -> level = INNER_LEVEL
       :: else -> level = ROOT_LEVEL
       fi;
       since = at[w];
       d_step { send_flush(w, at[w], level, true) };
       level = 0 /* It has no meaning between two flushes: the fewer states. */ }
  :: !IS_WAITING(w) -> break
  od
}

#if GENERATIONS > 1 /* With weak fairness, each process more multiplies the states to visit. */
active proctype Controller() {
  do
  :: atomic { inner_generation < GENERATIONS -> inner_generation++ }
  :: atomic { root_generation < GENERATIONS -> root_generation++ }
  :: inner_generation == GENERATIONS && root_generation == GENERATIONS -> break
  od
}
#endif
#endif

/*
 * After the start, this process is the network. It does everything that may happen, without fairness: any packet that was
 * ever sent arrives at any time; workers go on.
 *
 * What a packet does is deterministic, so d_step makes it one transition; the choice of the packet stays outside.
 */
init {
  byte w, e;
#if HOT
  byte b;
#endif
  atomic {
    at[0] = 1; at[1] = 1; at[2] = 1;
#if LIVENESS
    run Worker(0);
    run Worker(ALIVE);
#if !PARTIAL
    run Worker(DEAD);
#elif FLUSHES /* Only the network, below, moves worker DEAD. */
    run Flusher(0);
    run Flusher(ALIVE);
#endif
#endif
  }
  do
  :: atomic {
       select(e : 1 .. EPOCHS);
#if HOT
       select(b : 1 .. ALL);
#endif
       if
#if HOT
       :: HAVE_SENT(e, b) && (b & ~BELOW) == 0 -> d_step { receive_at_root(e, INNER_BIT, b) }
#else
       :: up[e] != 0 -> d_step { receive_at_root(e, INNER_BIT, up[e]) }
       :: result[e] != 0 -> d_step { store(e, result[e], true) }
#endif
#if PARTIAL && FLUSHES && RELAYS
       /* Flushes of the highest level: those of lower levels do less. */
       :: HAS_STARTED(e) -> d_step { flush_at_root(e, ROOT_LEVEL) } /* passed on by the inner switch */
#endif
#if ROGUE
       :: !PARENT_CHECK -> d_step { store(e, ALL, false) } /* a child's own result */
#endif
       :: else
       fi;
#if HOT
       b = 0;
#endif
       e = 0 }
#if HOT
  :: d_step { forget_copy(2); forget_copy(3) }
#endif
  :: atomic {
       select(e : 1 .. EPOCHS);
       if :: w = 0 :: w = 1 :: w = 2 fi;
       if
       :: at[w] >= e && (!HOT || w == 2) -> d_step { contribute(w, e, false) }
#if PARTIAL && FLUSHES
       :: at[w] >= e && (!HOT || w == 2) -> d_step { send_flush(w, e, ROOT_LEVEL, false) }
#endif
       :: else
       fi;
       w = 0; e = 0 }
  :: atomic {
       if :: w = 0 :: w = 1 :: w = 2 fi;
       go_on(w);
       w = 0 }
  :: atomic { inner_generation < GENERATIONS -> inner_generation++ }
  :: atomic { root_generation < GENERATIONS -> root_generation++ }
  od
}

#if LIVENESS
#if PARTIAL
ltl all_rounds_end { <> (at[0] > EPOCHS && at[ALIVE] > EPOCHS) }
#else
ltl all_rounds_end { <> (at[0] > EPOCHS && at[1] > EPOCHS && at[2] > EPOCHS) }
#endif
#endif
