/* SPDX-FileCopyrightText: 2026 The Switchfold Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pushes to one hot row: docs/protocol.md, "Hot rows: workers and servers". NUM_WORKERS workers push PUSHES times each
 * without waiting, a switch adds the pushes of a round up in a slot with two copies, and a server counts the sums.
 *
 * The network is the worst possible: any packet that was sent may arrive at any later time, any number of times, or never.
 * The same holds for what workers send by TCP, since a worker sends it again over a new connection. The server reads and
 * changes its memory, and logs all of it at any time; a crash takes it back to its log. What the server says is in its log,
 * and never becomes untrue; so workers simply look at the log.
 *
 * A time is one number: the rounds of all generations, counted. The values of a push are its number; a sum holds the
 * pushes that its workers have given the name (worker, time). So a push counts once if all of its names that
 * the server has counted are one.
 *
 * Variants, by -D:
 *   CRASHES=1   the server crashes at any time (with LIVENESS: once).
 *   RESTARTS=1  the switch loses its registers at any time, also without a new generation.
 *   EPOCHS=n, GENERATIONS=n  entries of the row one after the other, and views of the job.
 *   REFUSES_ANY=1  the server refuses the sums of any round at any time, as it does after OVERFLOW.
 *   FORGETS=0   the server forgets no rounds: the fewer states.
 *   ANY_TREE=1  instead of the switch: the sum of any workers' pushes of one round may reach the server at any time. This
 *               stands for trees of any depth, whose switches lose their registers at any time.
 *   LIVENESS=1  the packets of all get through eventually; check that all pushes are settled by way of the switch alone.
 *   LIVENESS=2  only TCP gets through eventually; check that all pushes are settled.
 * Defects that the checker must find:
 *   REFUSES=0      the server applies a late sum after it has counted a push of the round by TCP
 *   FIRST_ONLY=0   the server applies a second sum of a round if it has other workers
 *   KEEPS_ROUNDS=0 the server forgets its rounds in a crash, and keeps its sum
 *   LOGS_FIRST=0   the server says what is not in its log
 *   FLOOR_CHECK=0  the server applies sums of rounds that it has forgotten
 *   FLOOR_WAITS=0  the server forgets a round that a worker has not settled
 *   KEEPS_NAME=0   a worker pushes again in another round before the server has decided the first one
 *   COLD_KEEPS_NAME=0  a worker pushes again in another round what it has sent by TCP
 *   ROUNDS_GROW=0  a worker counts its rounds from the start when the row has a new epoch
 *   NEW_EPOCH=0    a new entry of the row has the epoch of the last one
 *   SLOT_RULE=0    workers do not wait for the round before the last
 *   COLD=0         workers never send by TCP
 */
#ifndef NUM_WORKERS
#define NUM_WORKERS 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef GENERATIONS
#define GENERATIONS 1
#endif
#ifndef EPOCHS
#define EPOCHS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef REFUSES_ANY
#define REFUSES_ANY 0
#endif
#ifndef FORGETS
#define FORGETS 1
#endif
#ifndef ANY_TREE
#define ANY_TREE 0
#endif
#ifndef LIVENESS
#define LIVENESS 0
#endif
#ifndef REFUSES
#define REFUSES 1
#endif
#ifndef FIRST_ONLY
#define FIRST_ONLY 1
#endif
#ifndef KEEPS_ROUNDS
#define KEEPS_ROUNDS 1
#endif
#ifndef LOGS_FIRST
#define LOGS_FIRST 1
#endif
#ifndef FLOOR_CHECK
#define FLOOR_CHECK 1
#endif
#ifndef FLOOR_WAITS
#define FLOOR_WAITS 1
#endif
#ifndef KEEPS_NAME
#define KEEPS_NAME 1
#endif
#ifndef COLD_KEEPS_NAME
#define COLD_KEEPS_NAME 1
#endif
#ifndef ROUNDS_GROW
#define ROUNDS_GROW 1
#endif
#ifndef NEW_EPOCH
#define NEW_EPOCH 1
#endif
#ifndef SLOT_RULE
#define SLOT_RULE 1
#endif
#ifndef COLD
#define COLD 1
#endif

#define TIMES (ROUNDS * GENERATIONS)
#define GENERATION(t) (((t) - 1) / ROUNDS + 1)
#define HAS_OLDER_ROUND(t) (((t) - 1) % ROUNDS >= 2)
#define ALL ((1 << NUM_WORKERS) - 1)
#define BIT(i) (1 << (i))
#define AT(w, t) ((w) * (TIMES + 1) + (t))
#define PUSH(w, p) ((w) * PUSHES + (p) - 1)

/* ---- workers ---- */

byte push_of[NUM_WORKERS * (TIMES + 1)]; /* the push that has the name (worker, time); zero: none */
byte name_of[NUM_WORKERS * PUSHES];      /* the time in the newest name of each push; zero: none yet */
byte pushed[NUM_WORKERS];                /* how many pushes have names */
byte least[NUM_WORKERS];                 /* the next name of the worker has this time, or a later one */
byte cold[NUM_WORKERS];                  /* the times whose pushes the worker has sent by TCP */
byte settled[NUM_WORKERS];               /* which pushes the worker has dropped, since they are durable */

#define IS_SETTLED(w, p) ((settled[w] & BIT(p)) != 0)
#define ALL_PUSHES (2 * ((1 << PUSHES) - 1))

/* ---- server ---- */

typedef server_t {
  byte floor;                           /* rounds up to this one are decided and forgotten */
  byte decided;                         /* rounds above it that are decided */
  byte holds[NUM_WORKERS];              /* rounds above it whose push of this worker is in the sum */
  byte counted[NUM_WORKERS * PUSHES]    /* how often each push is in the sum */
};
server_t memory;
#if CRASHES
server_t log;
#else
#define log memory /* Without crashes the server logs whatever it does at once: the fewer states. */
#endif
#if LOGS_FIRST
#define SAID log
#else
#define SAID memory
#endif
#define IS_DECIDED(server, t) ((t) <= server.floor || (server.decided & BIT(t)) != 0)
#define HOLDS(server, w, t) ((server.holds[w] & BIT(t)) != 0)

byte i; /* loop variable inside d_step; zero in between */

inline count(w, t) {
  memory.holds[w] = memory.holds[w] | BIT(t);
  memory.counted[PUSH(w, push_of[AT(w, t)])]++;
  assert(memory.counted[PUSH(w, push_of[AT(w, t)])] == 1)
}

/* A sum of time t arrives, with the pushes of the workers in `summed`. */
inline apply_sum(t, summed) {
  if
  :: FLOOR_CHECK && t <= memory.floor
  :: (memory.decided & BIT(t)) && FIRST_ONLY
  :: (memory.decided & BIT(t)) && !FIRST_ONLY &&
       (((summed & 1) && HOLDS(memory, 0, t)) || ((summed & 2) && HOLDS(memory, 1, t)))
  :: else ->
    memory.decided = memory.decided | BIT(t);
    do
    :: i < NUM_WORKERS && (summed & BIT(i)) -> count(i, t); i++
    :: i < NUM_WORKERS && !(summed & BIT(i)) -> i++
    :: else -> break
    od;
    i = 0
  fi
}

/* The server will take no sum of this round. */
#define MAY_DECIDE(t) (!IS_DECIDED(memory, t))
inline refuse(t) {
  memory.decided = memory.decided | BIT(t)
}

/* A push arrives by TCP. Unless a sum has decided the round, no sum ever will. */
inline receive_cold(w, t) {
  if
  :: t <= memory.floor
  :: t > memory.floor && HOLDS(memory, w, t)
  :: else ->
#if REFUSES
    memory.decided = memory.decided | BIT(t);
#endif
    count(w, t)
  fi
}

inline copy_server(from, to) {
  to.floor = from.floor;
  to.decided = from.decided;
  do
  :: i < NUM_WORKERS -> to.holds[i] = from.holds[i]; i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < NUM_WORKERS * PUSHES -> to.counted[i] = from.counted[i]; i++
  :: else -> break
  od;
  i = 0
}

inline crash() {
  copy_server(log, memory);
#if !KEEPS_ROUNDS
  memory.decided = 0;
  do
  :: i < NUM_WORKERS -> memory.holds[i] = 0; i++
  :: else -> break
  od;
  i = 0
#endif
}

/* No worker will ever ask for the push of time t, nor give another push this time. */
#define IS_DONE(w, t) \
  (least[w] > (t) && (push_of[AT(w, t)] == 0 || IS_SETTLED(w, push_of[AT(w, t)]) || \
    name_of[PUSH(w, push_of[AT(w, t)])] != (t)))
#if NUM_WORKERS == 3
#define ARE_DONE(t) (IS_DONE(0, t) && IS_DONE(1, t) && IS_DONE(2, t))
#else
#define ARE_DONE(t) (IS_DONE(0, t) && IS_DONE(1, t))
#endif
#define MAY_FORGET (memory.floor < TIMES && (!FLOOR_WAITS || ARE_DONE(memory.floor + 1)))

inline forget() {
  memory.floor++;
  memory.decided = memory.decided & ~BIT(memory.floor);
  do
  :: i < NUM_WORKERS -> memory.holds[i] = memory.holds[i] & ~BIT(memory.floor); i++
  :: else -> break
  od;
  i = 0
}

/* ---- the switch ---- */

byte entry = 1;        /* number of the row's entry in table hot_row, which also stands for its exponent */
bool is_cold;          /* there is no entry now */
byte generation = 1;   /* of the table entries */
#if EPOCHS > 1
byte made_for[NUM_WORKERS * (TIMES + 1)]; /* the entry for whose exponent the push of this name was scaled */
#define MAKE(w, t) made_for[AT(w, t)] = entry
#define MADE_FOR(w, t) made_for[AT(w, t)]
#else
#define MAKE(w, t) skip
#define MADE_FOR(w, t) 1
#endif
#if NEW_EPOCH
#define EPOCH(entry) (entry)
#else
#define EPOCH(entry) 1
#endif

#if !ANY_TREE
typedef copy_t {
  byte round; /* zero: never used */
  byte made_for;
  byte bitmap;
  bool is_closed
};
copy_t copies[2];
byte sums[TIMES + 1]; /* bit b: a sum of this time with bitmap b was sent */
#define COPY(t) (((t) - 1) & 1)
#define IS_HOT(t, made) (GENERATION(t) == generation && !is_cold && EPOCH(made) == EPOCH(entry))

/* The server takes the lanes for numbers of the entry's exponent. */
inline send_sum(t) {
  assert(copies[COPY(t)].made_for == entry);
  sums[t] = sums[t] | BIT(copies[COPY(t)].bitmap)
}

inline clear_copies() {
  copies[0].round = 0; copies[0].made_for = 0; copies[0].bitmap = 0; copies[0].is_closed = false;
  copies[1].round = 0; copies[1].made_for = 0; copies[1].bitmap = 0; copies[1].is_closed = false
}

inline receive_push(w, t) {
  if
  :: !IS_HOT(t, MADE_FOR(w, t)) || t < copies[COPY(t)].round /* dropped, COLD, STALE or NOTIFIED */
  :: else ->
    if
    :: t > copies[COPY(t)].round ->
      /* No sum is lost that the server has not, unless the switch loses its registers. */
      assert(EPOCHS > 1 || copies[COPY(t)].round == 0 || GENERATION(copies[COPY(t)].round) != generation ||
             IS_DECIDED(log, copies[COPY(t)].round));
      copies[COPY(t)].round = t;
      copies[COPY(t)].made_for = MADE_FOR(w, t);
      copies[COPY(t)].bitmap = BIT(w);
      copies[COPY(t)].is_closed = false
    :: t == copies[COPY(t)].round && !copies[COPY(t)].is_closed && !(copies[COPY(t)].bitmap & BIT(w)) &&
         EPOCH(copies[COPY(t)].made_for) == EPOCH(MADE_FOR(w, t)) ->
      assert(copies[COPY(t)].made_for == MADE_FOR(w, t));
      copies[COPY(t)].bitmap = copies[COPY(t)].bitmap | BIT(w)
    :: else /* MISMATCH, NOTIFIED or REPLAYED */
    fi;
    if
    :: copies[COPY(t)].round == t && copies[COPY(t)].bitmap == ALL -> copies[COPY(t)].is_closed = true; send_sum(t)
    :: else
    fi
  fi
}

/* A push of the round closes it, since it expects no more workers; or a flush does. */
#define MAY_CLOSE(c) \
  (copies[c].round != 0 && !copies[c].is_closed && IS_HOT(copies[c].round, copies[c].made_for))
inline close(c) {
  copies[c].is_closed = true;
  send_sum(copies[c].round)
}
#endif

/* ---- what workers do ---- */

#define MAY_USE(t) ((t) <= TIMES && (!SLOT_RULE || !HAS_OLDER_ROUND(t) || IS_DECIDED(SAID, (t) - 2)))
#define IS_USED(t) (push_of[AT(0, t)] != 0 || push_of[AT(1, t)] != 0 || push_of[AT(NUM_WORKERS - 1, t)] != 0)
/* Enough are left for the pushes to come: the model ends where a job goes on. */
#define HAS_ROUNDS(w) (TIMES - least[w] >= PUSHES - pushed[w])
/* A worker leaves no round out that might not be over. */
#define MAY_LEAVE_OUT(w) \
  (least[w] <= TIMES && HAS_ROUNDS(w) && \
    (IS_USED(least[w]) || IS_DECIDED(SAID, least[w]) || GENERATION(least[w]) < generation))
#define IS_UNSETTLED(w, p) (name_of[PUSH(w, p)] != 0 && !IS_SETTLED(w, p))
#define MAY_PUSH(w) (pushed[w] < PUSHES && MAY_USE(least[w]))

inline give_name(w, p) {
  push_of[AT(w, least[w])] = p;
  name_of[PUSH(w, p)] = least[w];
  MAKE(w, least[w]);
  least[w]++
}

/* The worker may push in another round what the server will never count under its old name. */
#if !KEEPS_NAME
#define MAY_RENAME(w, p) (IS_UNSETTLED(w, p) && MAY_USE(least[w]) && HAS_ROUNDS(w))
#else
#define MAY_RENAME(w, p) \
  (IS_UNSETTLED(w, p) && MAY_USE(least[w]) && HAS_ROUNDS(w) && \
    IS_DECIDED(SAID, name_of[PUSH(w, p)]) && !HOLDS(SAID, w, name_of[PUSH(w, p)]) && \
    (!COLD_KEEPS_NAME || !(cold[w] & BIT(name_of[PUSH(w, p)]))))
#endif
#define MAY_SETTLE(w, p) \
  (IS_UNSETTLED(w, p) && \
    (HOLDS(SAID, w, name_of[PUSH(w, p)]) || name_of[PUSH(w, p)] <= SAID.floor))
inline settle(w, p) {
  assert(log.counted[PUSH(w, p)] == 1);
  settled[w] = settled[w] | BIT(p)
}

#define HAS_PUSHED(w, t, b) (!((b) & BIT(w)) || push_of[AT(w, t)] != 0)
#if NUM_WORKERS == 3
#define choose_worker if :: w = 0 :: w = 1 :: w = 2 fi
#define HAVE_PUSHED(t, b) (HAS_PUSHED(0, t, b) && HAS_PUSHED(1, t, b) && HAS_PUSHED(2, t, b))
#define EVERYTHING_SETTLED (settled[0] == ALL_PUSHES && settled[1] == ALL_PUSHES && settled[2] == ALL_PUSHES)
#else
#define choose_worker if :: w = 0 :: w = 1 fi
#define HAVE_PUSHED(t, b) (HAS_PUSHED(0, t, b) && HAS_PUSHED(1, t, b))
#define EVERYTHING_SETTLED (settled[0] == ALL_PUSHES && settled[1] == ALL_PUSHES)
#endif

#if LIVENESS
/* Push p of worker w: what it sends gets through. */
proctype Push(byte w, p) {
  do
  :: atomic { pushed[w] == p - 1 && MAY_PUSH(w) -> d_step { pushed[w]++; give_name(w, p) } }
  :: atomic { MAY_SETTLE(w, p) -> d_step { settle(w, p) } }
#if LIVENESS == 1
  :: atomic { IS_UNSETTLED(w, p) && !IS_DECIDED(log, name_of[PUSH(w, p)]) ->
       d_step { receive_push(w, name_of[PUSH(w, p)]) } }
  :: atomic { MAY_RENAME(w, p) -> d_step { give_name(w, p) } }
#else
  :: atomic { IS_UNSETTLED(w, p) && !MAY_SETTLE(w, p) ->
       d_step {
         cold[w] = cold[w] | BIT(name_of[PUSH(w, p)]);
         receive_cold(w, name_of[PUSH(w, p)]) } }
#endif
  :: IS_SETTLED(w, p) -> break
  od
}

#define IS_AWAITED(t) (sums[t] != 0 && !IS_DECIDED(memory, t))
#define A_SUM(t) ((sums[t] & 2) -> 1 : ((sums[t] & 4) -> 2 : 3))
proctype Server() {
  do
#if LIVENESS == 1 /* A flush gets through, and so does the sum. */
  :: d_step { MAY_CLOSE(0) -> close(0) }
  :: d_step { MAY_CLOSE(1) -> close(1) }
  :: d_step { IS_AWAITED(1) -> apply_sum(1, A_SUM(1)) }
  :: d_step { IS_AWAITED(2) -> apply_sum(2, A_SUM(2)) }
#if TIMES > 2
  :: d_step { IS_AWAITED(3) -> apply_sum(3, A_SUM(3)) }
#endif
#if TIMES > 3
  :: d_step { IS_AWAITED(4) -> apply_sum(4, A_SUM(4)) }
#endif
#endif
#if CRASHES
  :: d_step { copy_server(memory, log) }
#endif
  :: EVERYTHING_SETTLED -> break
  od
}
#endif

/* Everything that may happen, without fairness. What happens is deterministic; the choice stays outside the d_step. */
init {
  byte w, t, p, b;
#if CRASHES && LIVENESS
  bool has_crashed;
#endif
  d_step {
    do
    :: w < NUM_WORKERS -> least[w] = 1; w++
    :: else -> break
    od;
    w = 0
  }
#if LIVENESS
  atomic { run Server(); run Push(0, 1); run Push(1, 1)
#if PUSHES > 1
    ; run Push(0, 2); run Push(1, 2)
#endif
  }
#endif
  do
  :: atomic { /* A worker pushes, or leaves a round out. */
       choose_worker;
       if
       :: MAY_PUSH(w) -> d_step { pushed[w]++; give_name(w, pushed[w]) }
#if LIVENESS != 1
       :: MAY_LEAVE_OUT(w) -> least[w]++
#endif
       :: else
       fi;
       w = 0 }
  :: atomic { /* A worker hears of the server's log, or sends by TCP. */
       choose_worker;
       select(p : 1 .. PUSHES);
       if
       :: MAY_SETTLE(w, p) -> d_step { settle(w, p) }
       :: MAY_RENAME(w, p) -> d_step { give_name(w, p) }
#if COLD
       :: IS_UNSETTLED(w, p) -> cold[w] = cold[w] | BIT(name_of[PUSH(w, p)])
#endif
       :: else
       fi;
       w = 0; p = 0 }
  :: atomic { /* Something arrives. */
       choose_worker;
       select(t : 1 .. TIMES);
       if
       :: cold[w] & BIT(t) -> d_step { receive_cold(w, t) }
#if !ANY_TREE
       :: push_of[AT(w, t)] != 0 -> d_step { receive_push(w, t) }
#endif
       :: else
       fi;
       w = 0; t = 0 }
  :: atomic { /* A sum arrives. */
       select(t : 1 .. TIMES);
       select(b : 1 .. ALL);
       if
#if ANY_TREE
       :: HAVE_PUSHED(t, b) -> d_step { apply_sum(t, b) }
#else
       :: sums[t] & BIT(b) -> d_step { apply_sum(t, b) }
#endif
       :: else
       fi;
       t = 0; b = 0 }
#if REFUSES_ANY
  :: atomic {
       select(t : 1 .. TIMES);
       if
       :: MAY_DECIDE(t) -> refuse(t)
       :: else
       fi;
       t = 0 }
#endif
#if FORGETS
  :: d_step { MAY_FORGET -> forget() }
#endif
#if CRASHES
  :: d_step { copy_server(memory, log) }
#if LIVENESS
  :: d_step { !has_crashed -> has_crashed = true; crash() }
#else
  :: d_step { crash() }
#endif
#endif
#if !ANY_TREE
  :: d_step { MAY_CLOSE(0) -> close(0) }
  :: d_step { MAY_CLOSE(1) -> close(1) }
#if RESTARTS
  :: d_step { clear_copies() }
#endif
  :: d_step { generation < GENERATIONS -> generation++ }
#if EPOCHS > 1
  :: d_step { !is_cold && entry < EPOCHS -> is_cold = true }
  :: atomic { is_cold -> is_cold = false; entry++;
#if !ROUNDS_GROW
       least[0] = 1; least[1] = 1;
#endif
       if
       :: d_step { clear_copies() } /* The row has another slot. */
       :: skip
       fi }
#endif
#endif
  od
}

#if LIVENESS
ltl all_pushes_settle { <> EVERYTHING_SETTLED }
#endif
