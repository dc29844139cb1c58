/*
 * Takeover of a node by a second agent, model for Spin (rules K04 K05 K07 K16, T01-T13, S01 S03).
 *
 * WHAT IT MODELS
 *  - Agents 0 (owner at the start), 1 and, with NA=3, 2. Agent 1 is a standby that may start at any moment (STANDBY=1: it is
 *    attached and complete at the start, 2: attached only); agent 2 may start at any moment, so it is also "the container that
 *    is started again".
 *  - flock: one variable. It goes with the process and stays while the process is stopped. A process ends in three kernel
 *    steps in any order (lock, listeners, connections): the others see them one by one.
 *  - Listening sockets: a socket lives as long as anybody holds it. Whoever holds the lock accepts. With the last holder its
 *    waiting connections are reset. The path names one socket; a rename moves it in one step. cni.sock and handover.sock are
 *    bound, handed over and replaced together, so one number stands for both.
 *  - Standbys: boot, attach (waits to be accepted by the owner), duplicates, complete, chosen (waits in flock), takeover.
 *  - Owner: accept, check of the caller, record, replacement of the pod's older sandbox, answer, undo; DEL; tombstones at
 *    takeover and while serving; SIGTERM, "ready", drain, take-back, "yours", exit.
 *  - Files: rec[k] (record of sandbox k, its value is the stamp of its ADD) and tomb[k]. They change only in the step that
 *    stands for fsync + rename or unlink.
 *  - The runtime of one pod with two sandboxes (k = 0, 1): ADD, DEL, repeated DEL, in any order a runtime may choose; a DEL
 *    follows every failed ADD. The plugin is part of that process: connect, wait, retry after a reset, deadline, tombstone. The
 *    stamp of a call is its number plus one. A call that timed out stays in the queue or in the agent's hands.
 *  - Chaos: at most KILLS kill -9, STOPS stops (each continued later or killed), TERMS SIGTERMs, RMLOCKS removals of the lock
 *    file by hand, between any two steps.
 *
 * WHAT IT LEAVES OUT
 *  - Time. ANYTIME=1: every deadline may pass at any moment. ANYTIME=0: only when nothing else can move or when the exception
 *    of T10 holds; a failed call is then a violation.
 *  - The order of a listen queue (any order is tried, so first-in-first-out is too), damaged files, power cuts, xDS, modules,
 *    agents older than the hand-over, paths changed by strangers, a standby that drops its duplicates when nobody greets it (one
 *    socket stands for both paths). The simulation (agent-core/sim) has these.
 *
 * HOW TO RUN
 *   spin -a -DNA=3 -DKILLS=1 takeover.pml && gcc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *   spin -t -p takeover.pml        prints the trail of a violation
 *   cargo xtask model runs every check of checks.txt.
 *
 * SWITCHES
 *   NA NCALLS KILLS STOPS TERMS RMLOCKS   bounds: agents (2, 3), plugin calls (2-4), kill -9, stops, SIGTERMs, removed lock files
 *   STANDBY ANYTIME               see above
 *   REUSE                         the runtime adds the same sandbox id again after its DEL
 *   REPEAT                        the runtime repeats an acknowledged ADD
 *   REPLACE                       the second sandbox is added while the first is still there
 *   NODEL                         the runtime sends no DEL after a failed ADD
 *   BUG_x                         breaks or weakens one rule on purpose; checks.txt names them all
 *
 * WHAT MUST HOLD (asserted where it happens, or by Judge when nothing moves any more)
 *   I1 at most one agent serves, and only with the lock
 *   I2 an acknowledged ADD has its record on disk, and in the table of the quiescent owner
 *   I3 after a successful DEL as the last word: no record on disk or in the table, no tombstone
 *   I4 no call fails but in T10's exception
 *   I5 if an agent runs, one serves in the end (with check "no-livelock": every run ends)
 *   I6 the path then names the socket that this agent serves
 *   I7 a newer sandbox of the pod is never removed or replaced by an older call
 */

#ifndef NA
#define NA 2
#endif
#ifndef NCALLS
#define NCALLS 3
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef TERMS
#define TERMS 0
#endif
#ifndef RMLOCKS
#define RMLOCKS 0
#endif
#ifndef STANDBY
#define STANDBY 0
#endif
#ifndef ANYTIME
#define ANYTIME 1
#endif
#ifndef REUSE
#define REUSE 0
#endif
#ifndef REPLACE
#define REPLACE 0
#endif
#ifndef REPEAT
#define REPEAT 0
#endif
#ifndef NODEL
#define NODEL 0
#endif

#define NONE 7

/* phases of an agent */
#define OFF   0    /* not started */
#define BOOT  1    /* started; about to try the lock */
#define SBY   2    /* standby, not attached */
#define ATT   3    /* standby, attached, has duplicates */
#define TRY   4    /* standby whose owner's connection has closed */
#define LOCKD 5    /* has the lock */
#define TOMB  6    /* applies tombstones */
#define RECON 7    /* reconciles the records */
#define BIND  8    /* about to serve */
#define SERVE 9
#define DRAIN 10   /* SIGTERM: accepts nothing, finishes what is in flight */
#define YOURS 11   /* flushed; about to say "yours" and exit */
#define LEFT  12   /* has said "yours" and let the lock go; not ended yet (T07) */
#define DYING 13   /* the kernel takes it apart */
#define DEAD  14

/* states of a call's connection */
#define FREE   0
#define QUEUED 1   /* in the queue of socket at[i] */
#define ACC    2   /* accepted by agent at[i] */
#define CHKD   3   /* has its key, caller seen alive */
#define RECD   4   /* record durable (ADD), record gone (DEL) */
#define RECD2  5   /* older sandbox of the pod gone too */
#define ANSW   6   /* answered: success */
#define REFU   7   /* answered: error */
#define RST    8   /* reset */

#define ADD 1
#define DEL 2

/* the runtime's last word on a sandbox */
#define W_NONE 0   /* nothing, or a call is under way */
#define W_ADD  1   /* ADD succeeded */
#define W_DEL  2   /* DEL succeeded */
#define W_SUP  3   /* superseded by a later sandbox of the pod */
#define W_FAIL 4   /* ADD failed; DEL follows */

byte lock = NONE;
byte path = NONE;
byte nsock = 1;
byte ph[NA], dup[NA], att[NA], hq[NA], cho[NA];
bit stp[NA], comp[NA], term[NA], took[NA], infl[NA], open_[NA];
bit lost[NA];                                /* owns by a lock whose file was removed by hand */
byte tbl[NA * 2], mem[NA * 2], key[NA * 2];  /* table, remembered DEL stamps, key held by: 0, call + 1, 15 = tombstone */
byte tst[NA * 2];                            /* stamp of the tombstone in hand */
bit tdel[NA * 2];                            /* its record was seen and is older: goes in the next step */
bit tdone[NA * 2];                           /* its record is gone, the tombstone itself not yet */
#ifdef BUG_ANSWER_EARLY
byte late[NA * 2];                           /* answered, not yet written */
#define LATE0(a) late[(a) * 2 + y] = 0
#else
#define LATE0(a) skip
#endif
byte rec[2], tomb[2];
byte cs[NCALLS], at[NCALLS], op[NCALLS], ky[NCALLS];
bit gone[NCALLS], mine[NCALLS];
byte word[2];
bit rdone, chaosdone;
bit gaveup;             /* an owner left although its standby had died before */
byte due[2];            /* tombstones that were there when the lock was taken */
byte x, y;               /* scratch of one step, 0 between steps */

#define STAMP(i) ((i) + 1)
#define RUN(a) (ph[a] != OFF && ph[a] < DYING && !stp[a])
#define LIVE(a) (ph[a] != OFF && ph[a] < DYING)
#define T(a, k) tbl[(a) * 2 + (k)]
#define M(a, k) mem[(a) * 2 + (k)]
#define K(a, k) key[(a) * 2 + (k)]

#if NA == 3
#define HELD(s) (dup[0] == (s) || dup[1] == (s) || dup[2] == (s))
#define HELDRUN(s) ((dup[0] == (s) && RUN(0)) || (dup[1] == (s) && RUN(1)) || (dup[2] == (s) && RUN(2)))
#define HELDSTOP(s) ((dup[0] == (s) && stp[0]) || (dup[1] == (s) && stp[1]) || (dup[2] == (s) && stp[2]))
#define ANYRUN (RUN(0) || RUN(1) || RUN(2))
#define ANYATT(a) (att[0] == (a) || att[1] == (a) || att[2] == (a))
#define STOPPEDLOCK ((lock == 0 && stp[0]) || (lock == 1 && stp[1]) || (lock == 2 && stp[2]))
#define NOSTOPPED (!stp[0] && !stp[1] && !stp[2])
#else
#define HELD(s) (dup[0] == (s) || dup[1] == (s))
#define HELDRUN(s) ((dup[0] == (s) && RUN(0)) || (dup[1] == (s) && RUN(1)))
#define HELDSTOP(s) ((dup[0] == (s) && stp[0]) || (dup[1] == (s) && stp[1]))
#define ANYRUN (RUN(0) || RUN(1))
#define ANYATT(a) (att[0] == (a) || att[1] == (a))
#define STOPPEDLOCK ((lock == 0 && stp[0]) || (lock == 1 && stp[1]))
#define NOSTOPPED (!stp[0] && !stp[1])
#endif
/* another agent owns, or still ends, by a lock whose file was removed: it greets whoever calls, so an heir knows of it (T01) */
#if NA == 3
#define OTHEROWNER(a) ((lost[0] && (a) != 0) || (lost[1] && (a) != 1) || (lost[2] && (a) != 2))
#else
#define OTHEROWNER(a) ((lost[0] && (a) != 0) || (lost[1] && (a) != 1))
#endif
/* the newest complete standby of its owner is the chosen one (T13); a higher number is newer */
#define BETTER(b, a) ((b) < NA && (b) > (a) && ph[(b) % NA] == ATT && att[(b) % NA] == att[a] && comp[(b) % NA])
#define NEWEST(a) (!BETTER(1, a) && !BETTER(2, a))
#define LISTENING (path != NONE && HELD(path))
/* T10's exception: the owner is stopped, or nobody runs, or everybody who holds the caller's queue is stopped */
#define NOOWNER (STOPPEDLOCK || !ANYRUN)
#define STUCK(i) (NOOWNER || (cs[i] == QUEUED && HELDSTOP(at[i]) && !HELDRUN(at[i])))
#ifdef BUG_T10_NARROW
#define EXCUSED(i) (!gaveup && NOOWNER)
#else
#define EXCUSED(i) (!gaveup && STUCK(i))
#endif

/* ---- kernel ---- */

/* agent a lets go of its listener; the last holder's queue is reset */
inline release(a) {
  x = dup[a]; dup[a] = NONE;
  if
  :: x != NONE && !HELD(x) ->
     for (y : 0 .. NCALLS - 1) {
       if
       :: cs[y] == QUEUED && at[y] == x -> at[y] = 0; if :: gone[y] -> cs[y] = FREE :: else -> cs[y] = RST fi
       :: else
       fi
     }
     for (y : 0 .. NA - 1) { if :: hq[y] == x -> hq[y] = NONE :: else fi }
  :: else
  fi;
  x = 0; y = 0
}

/* agent a's connections close: its callers see a reset, its standbys an end of stream */
inline hangup(a) {
  for (y : 0 .. NCALLS - 1) {
    if
    :: (cs[y] >= ACC && cs[y] <= RECD2 && at[y] == a) ->
       at[y] = 0; mine[y] = 0; if :: gone[y] -> cs[y] = FREE :: else -> cs[y] = RST fi
    :: else
    fi
  }
  for (y : 0 .. NA - 1) { if :: att[y] == a -> att[y] = NONE :: else fi }
  y = 0
}

inline forget(a) {
  stp[a] = 0; lost[a] = 0; comp[a] = 0; term[a] = 0; took[a] = 0; infl[a] = 0; att[a] = NONE; hq[a] = NONE; cho[a] = NONE;
  for (y : 0 .. 1) {
    T(a, y) = 0; M(a, y) = 0; K(a, y) = 0; LATE0(a);
    tst[a * 2 + y] = 0; tdone[a * 2 + y] = 0; tdel[a * 2 + y] = 0
  }
  y = 0
}

inline die(a) { ph[a] = DYING; open_[a] = 1; forget(a) }

proctype Kernel(byte me) {
end:
  do
  :: d_step { ph[me] == DYING && lock == me -> lock = NONE }
  :: d_step { ph[me] == DYING && dup[me] != NONE -> release(me) }
  :: d_step { ph[me] == DYING && open_[me] -> hangup(me); open_[me] = 0 }
  :: d_step { ph[me] == DYING && lock != me && dup[me] == NONE && !open_[me] -> ph[me] = DEAD }
  od
}

/* ---- agent ---- */

/* the record of sandbox k leaves the disk and agent a's table; only an acknowledged ADD with no later DEL may not go (I2) */
inline rmrec(a, k) {
  assert(word[k] != W_ADD);
  rec[k] = 0; T(a, k) = 0
}

/* an attachment stays: its end says that the owner has ended (T01) */
inline take(a) { due[0] = tomb[0]; due[1] = tomb[1]; lock = a; hq[a] = NONE; infl[a] = 0; ph[a] = LOCKD }

inline readtable(a) { T(a, 0) = rec[0]; T(a, 1) = rec[1] }

/* one tombstone, in two steps: the record first, then the tombstone; the key is held (K16's order holds for tombstones too) */
#ifdef BUG_TOMB_NO_KEY
#define KEYFREE(k) true
#else
#define KEYFREE(k) (K(me, k) == 0)
#endif
#ifdef BUG_TOMB_TABLE
#define RECSTAMP(k) T(me, k)
#else
#define RECSTAMP(k) rec[k]
#endif
#ifdef BUG_TOMB_UNLINK_ANY
#define SAMETOMB(k) true
#else
#define SAMETOMB(k) (tomb[k] == tst[me * 2 + k])
#endif
#ifdef BUG_TOMB_NO_STAMP
#define OLDER(r, k) true
#else
#define OLDER(r, k) ((r) < tst[me * 2 + k])
#endif
#ifdef BUG_NO_TOMB_WATCH
#define TPH (ph[me] == TOMB)
#else
#define TPH (ph[me] == TOMB || ph[me] == SERVE)
#endif

#ifdef BUG_SERVE_FIRST
#define FIRST RECON
#else
#define FIRST TOMB
#endif

/* the owner whose connection still stands has ended; nobody else owns by a lock whose file is gone */
#ifdef BUG_NO_YIELD
#define HISEND(a) true
#else
#define HISEND(a) ((att[a] == NONE || ph[att[a] % NA] == LEFT) && !OTHEROWNER(a))
#endif

#define TOMBSTEPS(k) \
  :: d_step { RUN(me) && TPH && tomb[k] != 0 && tst[me * 2 + k] == 0 && KEYFREE(k) -> \
       tst[me * 2 + k] = tomb[k]; tdel[me * 2 + k] = (RECSTAMP(k) != 0 && OLDER(RECSTAMP(k), k)); TOMBLOCK(k) } \
  :: d_step { RUN(me) && (ph[me] == TOMB || ph[me] >= SERVE) && tst[me * 2 + k] != 0 && !tdone[me * 2 + k] -> \
       if :: tdel[me * 2 + k] -> rmrec(me, k) :: else fi; tdel[me * 2 + k] = 0; \
       if :: M(me, k) < tst[me * 2 + k] -> REMEMBER(me, k, tst[me * 2 + k]) :: else fi; \
       tdone[me * 2 + k] = 1 } \
  :: d_step { RUN(me) && (ph[me] == TOMB || ph[me] >= SERVE) && tdone[me * 2 + k] -> \
       if :: SAMETOMB(k) -> tomb[k] = 0 :: else fi; \
       tst[me * 2 + k] = 0; tdone[me * 2 + k] = 0; TOMBUNLOCK(k) }
#ifdef BUG_TOMB_NO_KEY
#define TOMBLOCK(k) skip
#define TOMBUNLOCK(k) skip
#else
#define TOMBLOCK(k) K(me, k) = 15
#define TOMBUNLOCK(k) K(me, k) = 0
#endif
#ifdef BUG_NO_MEMORY
#define REMEMBER(a, k, s) skip
#else
#define REMEMBER(a, k, s) M(a, k) = s
#endif

/* one call; k is its sandbox, 1 - k the pod's other one */
#define BUSY (ph[me] == SERVE || ph[me] == DRAIN || ALSO)
#ifdef BUG_LOCK_EARLY
#define ALSO (ph[me] == YOURS)
#else
#define ALSO false
#endif
#ifdef BUG_CHECK_AT_ACCEPT
#define GONE_AT_ACCEPT(i) (op[i] == ADD && gone[i])
#else
#define GONE_AT_ACCEPT(i) false
#endif
#if defined(BUG_NO_CHECK) || defined(BUG_CHECK_AT_ACCEPT)
#define CALLERGONE(i) false
#else
#define CALLERGONE(i) gone[i]
#endif
#ifdef BUG_NO_UNDO
#define UNDO(i) false
#else
#define UNDO(i) gone[i]
#endif
#ifdef BUG_UNDO_ALL
#define MINE(i) true
#else
#define MINE(i) mine[i]
#endif
#ifdef BUG_NO_ADD_STAMP
#define TOOOLD(i) (M(me, ky[i]) > STAMP(i))
#else
#define TOOOLD(i) (M(me, ky[i]) > STAMP(i) || rec[ky[i]] > STAMP(i) || rec[1 - ky[i]] > STAMP(i))
#endif

#ifdef BUG_REPLACE_ANY
#define REPLACES(i) true
#else
#define REPLACES(i) (rec[1 - ky[i]] < STAMP(i))
#endif
#ifdef BUG_ANSWER_EARLY
#define WRITE(i) late[me * 2 + ky[i]] = STAMP(i); cs[i] = (gone[i] -> FREE : ANSW); at[i] = 0
#else
#define WRITE(i) mine[i] = (rec[ky[i]] == 0 || rec[ky[i]] == STAMP(i)); \
       rec[ky[i]] = STAMP(i); T(me, ky[i]) = STAMP(i); cs[i] = RECD
#endif
#define CALLSTEPS(i) \
  :: d_step { RUN(me) && ph[me] == SERVE && cs[i] == QUEUED && at[i] == dup[me] -> \
       assert(lock == me || lost[me]); \
       if :: GONE_AT_ACCEPT(i) -> cs[i] = FREE; at[i] = 0 :: else -> cs[i] = ACC; at[i] = me fi } \
  :: d_step { RUN(me) && ph[me] == DRAIN && cs[i] == ACC && at[i] == me -> /* GOAWAY: not begun, tried again */ \
       at[i] = 0; if :: gone[i] -> cs[i] = FREE :: else -> cs[i] = RST fi } \
  :: d_step { RUN(me) && BUSY && cs[i] == ACC && at[i] == me && K(me, ky[i]) == 0 -> \
       if \
       :: op[i] == ADD && CALLERGONE(i) -> cs[i] = FREE; at[i] = 0 \
       :: else -> cs[i] = CHKD; K(me, ky[i]) = STAMP(i) \
       fi } \
  :: d_step { RUN(me) && BUSY && cs[i] == CHKD && at[i] == me && op[i] == ADD -> \
       if \
       :: TOOOLD(i) -> cs[i] = (gone[i] -> FREE : REFU); at[i] = 0; K(me, ky[i]) = 0 \
       :: else -> WRITE(i) \
       fi } \
  :: d_step { RUN(me) && BUSY && cs[i] == RECD && at[i] == me && op[i] == ADD -> \
       if :: rec[1 - ky[i]] != 0 && REPLACES(i) -> rmrec(me, 1 - ky[i]) :: else fi; cs[i] = RECD2 } \
  :: d_step { RUN(me) && BUSY && cs[i] == RECD2 && at[i] == me && op[i] == ADD -> \
       if \
       :: UNDO(i) -> if :: MINE(i) -> rmrec(me, ky[i]) :: else fi; cs[i] = FREE \
       :: else -> assert(rec[ky[i]] == STAMP(i)); cs[i] = (gone[i] -> FREE : ANSW) \
       fi; at[i] = 0; mine[i] = 0; K(me, ky[i]) = 0 } \
  :: d_step { RUN(me) && BUSY && cs[i] == CHKD && at[i] == me && op[i] == DEL -> \
       if :: rec[ky[i]] != 0 && rec[ky[i]] < STAMP(i) -> rmrec(me, ky[i]) :: else fi; \
       if :: M(me, ky[i]) < STAMP(i) -> REMEMBER(me, ky[i], STAMP(i)) :: else fi; \
       cs[i] = RECD } \
  :: d_step { RUN(me) && BUSY && cs[i] == RECD && at[i] == me && op[i] == DEL -> \
       cs[i] = (gone[i] -> FREE : ANSW); at[i] = 0; K(me, ky[i]) = 0 }

#if NCALLS == 2
#define INFLIGHT(a) (FL(0, a) || FL(1, a))
#elif NCALLS == 3
#define INFLIGHT(a) (FL(0, a) || FL(1, a) || FL(2, a))
#else
#define INFLIGHT(a) (FL(0, a) || FL(1, a) || FL(2, a) || FL(3, a))
#endif
#define FL(i, a) (cs[i] >= ACC && cs[i] <= RECD2 && at[i] == (a))

#ifdef BUG_CLOSE_EARLY
#define CLOSE release(me)
#else
#define CLOSE skip
#endif
/* SIGTERM meets a complete standby b: it says "ready" */
#define READY(b) \
  :: d_step { RUN(me) && ph[me] == SERVE && term[me] && b < NA && b != me && att[b] == me && comp[b] && RUN(b) -> \
       ph[me] = DRAIN; cho[me] = b; infl[b] = 1 }
/* a standby's attachment is accepted; it gets duplicates and lets older ones go */
#define ATTACH(b) \
  :: d_step { RUN(me) && (ph[me] == SERVE || ph[me] == DRAIN) && b != me && RUN(b) && hq[b] == dup[me] && hq[b] != NONE -> \
       hq[b] = NONE; if :: dup[b] != dup[me] -> release(b); dup[b] = dup[me] :: else fi; \
       att[b] = me; infl[b] = 0; ph[b] = ATT }

#if ANYTIME
#define EXPIRED true
#define DEADLINE(i) true
#else
#define EXPIRED timeout
#define DEADLINE(i) (timeout || STUCK(i))
#endif

proctype Agent(byte me) {
end:
  do
  /* start (T01, T02, T03) */
  :: d_step { ph[me] == OFF -> ph[me] = BOOT }
  :: d_step { RUN(me) && ph[me] == BOOT -> if :: lock == NONE -> take(me) :: else -> ph[me] = SBY fi }

  /* standby (T03, T04, T13) */
  :: d_step { RUN(me) && ph[me] == SBY && hq[me] == NONE && LISTENING -> hq[me] = path }
#ifndef BUG_ATTACH_ONCE
  :: d_step { RUN(me) && ph[me] == SBY && hq[me] != NONE && hq[me] != path -> hq[me] = NONE } /* not greeted: again */
#endif
  :: d_step { RUN(me) && ph[me] == ATT && !comp[me] && att[me] != NONE ->
       comp[me] = 1; readtable(me) }
  :: d_step { RUN(me) && ph[me] == ATT && comp[me] && att[me] != NONE && !infl[me] && RUN(att[me]) && NEWEST(me) ->
       for (x : 0 .. NA - 1) { if :: att[x] == att[me] -> infl[x] = 0 :: else fi } x = 0; infl[me] = 1 }
  :: d_step { RUN(me) && ph[me] == ATT && att[me] == NONE -> ph[me] = TRY }
  :: d_step { RUN(me) && ph[me] == TRY -> if :: lock == NONE -> take(me) :: else -> ph[me] = SBY fi }
  :: d_step { RUN(me) && ph[me] >= SBY && ph[me] <= TRY && infl[me] && lock == NONE -> take(me) }
#ifndef BUG_TRY_ONCE
  :: d_step { RUN(me) && ph[me] == SBY && lock == NONE -> take(me) }  /* not attached: tries the lock again and again */
#endif

  /* takeover (T05, T08) */
#ifdef BUG_WAIT_LIVE
  :: d_step { RUN(me) && ph[me] == LOCKD && HISEND(me) && (dup[me] != NONE || !LISTENING) -> ph[me] = FIRST }
#else
  :: d_step { RUN(me) && ph[me] == LOCKD && HISEND(me) -> ph[me] = FIRST }
#endif
  TOMBSTEPS(0)
  TOMBSTEPS(1)
  :: d_step { RUN(me) && ph[me] == TOMB && tomb[0] == 0 && tomb[1] == 0 && tst[me * 2] == 0 && tst[me * 2 + 1] == 0 ->
       ph[me] = RECON }
  :: d_step { RUN(me) && ph[me] == RECON ->
#ifndef BUG_STALE_TABLE
       readtable(me);
#endif
       ph[me] = BIND }
  :: d_step { RUN(me) && ph[me] == BIND ->
       if
#ifdef BUG_PATH_UNCHECKED
       :: dup[me] != NONE -> skip
#else
       :: dup[me] != NONE && path == dup[me] -> skip
#endif
       :: else -> release(me); dup[me] = nsock; path = nsock; nsock++
       fi;
       ph[me] = SERVE;
       assert((due[0] == 0 || tomb[0] != due[0]) && (due[1] == 0 || tomb[1] != due[1])); /* T05: tombstones first */
       due[0] = 0; due[1] = 0;
       for (x : 0 .. NA - 1) { assert(x == me || (ph[x] != SERVE && ph[x] != DRAIN)) }  /* I1 */
       x = 0
     }

  /* owner (T07, T12, T13) */
#ifdef BUG_ANSWER_EARLY
  :: d_step { RUN(me) && late[me * 2] != 0 -> rec[0] = late[me * 2]; T(me, 0) = rec[0]; late[me * 2] = 0; K(me, 0) = 0 }
  :: d_step { RUN(me) && late[me * 2 + 1] != 0 -> rec[1] = late[me * 2 + 1]; T(me, 1) = rec[1]; late[me * 2 + 1] = 0; K(me, 1) = 0 }
#endif
  ATTACH(0)
  ATTACH(1)
#if NA == 3
  ATTACH(2)
#endif
  CALLSTEPS(0)
  CALLSTEPS(1)
#if NCALLS > 2
  CALLSTEPS(2)
#endif
#if NCALLS > 3
  CALLSTEPS(3)
#endif
  READY(0)
  READY(1)
#if NA == 3
  READY(2)
#endif
#ifdef BUG_DRAIN_AGAIN
  :: d_step { RUN(me) && ph[me] == SERVE && term[me] && !ANYATT(me) ->
       gaveup = took[me]; took[me] = 0; ph[me] = DRAIN; cho[me] = NONE; CLOSE }
#else
  :: d_step { RUN(me) && ph[me] == SERVE && term[me] && !ANYATT(me) && !took[me] -> ph[me] = DRAIN; cho[me] = NONE; CLOSE }
#endif
  :: RUN(me) && ph[me] == SERVE && term[me] && (ANYATT(me) || took[me]) && EXPIRED -> /* half of the grace is over */
     d_step { if :: RUN(me) && ph[me] == SERVE -> ph[me] = DRAIN; cho[me] = NONE :: else fi }
#ifdef BUG_NO_TAKEBACK
#define STILL true
  :: d_step { RUN(me) && ph[me] == YOURS && cho[me] != NONE && att[cho[me]] != me && !gaveup -> gaveup = 1 }
#else
#define STILL (cho[me] == NONE || att[cho[me]] == me)
  :: d_step { RUN(me) && (ph[me] == DRAIN || ph[me] == YOURS) && cho[me] != NONE && att[cho[me]] != me && lock == me ->
       cho[me] = NONE; took[me] = 1; ph[me] = SERVE }
  :: d_step { RUN(me) && (ph[me] == DRAIN || ph[me] == YOURS) && cho[me] != NONE && lost[me] -> cho[me] = NONE }
#endif
  :: d_step { RUN(me) && ph[me] == SERVE && lost[me] -> ph[me] = DRAIN; cho[me] = NONE }    /* T01: never taken back */
#ifdef BUG_LOCK_EARLY
  :: d_step { RUN(me) && ph[me] == DRAIN -> ph[me] = YOURS; lock = NONE }
#else
  :: d_step { RUN(me) && ph[me] == DRAIN && !INFLIGHT(me) && tst[me * 2] == 0 && tst[me * 2 + 1] == 0 -> ph[me] = YOURS }
#endif
  :: d_step { RUN(me) && ph[me] == YOURS && !INFLIGHT(me) && STILL ->
#ifdef BUG_UNLINK
       if :: cho[me] == NONE && path == dup[me] -> path = NONE :: else fi;
#endif
       die(me) }
  :: d_step { RUN(me) && ph[me] == YOURS && !INFLIGHT(me) && cho[me] != NONE && STILL && lock == me -> ph[me] = LEFT; lock = NONE }
  :: d_step { RUN(me) && ph[me] == LEFT -> die(me) }
  od
}

/* ---- runtime and plugin ---- */

/* one plugin run: op o for sandbox k, call number n; ok tells the runtime's view */
inline plugin(o, k) {
  skip;
  d_step { op[n] = o; ky[n] = k; cs[n] = FREE; ok = 0; over = 0;
    if :: again -> skip :: else -> word[k] = W_NONE fi }          /* a repeated ADD leaves the first one's word */
  do
  :: over -> break
  :: d_step { !over && (cs[n] == FREE || cs[n] == RST) && LISTENING -> cs[n] = QUEUED; at[n] = path }
  :: d_step { !over && cs[n] == ANSW -> cs[n] = FREE; ok = 1; over = 1 }
  :: d_step { !over && cs[n] == REFU -> cs[n] = FREE; over = 1 }
  :: !over && op[n] == DEL && (cs[n] == FREE || cs[n] == RST) && !LISTENING -> /* nobody listens: look for a record */
     if
     :: rec[k] != 0 -> d_step { cs[n] = FREE; tomb[k] = STAMP(n); ok = 1; over = 1 }
     :: rec[k] == 0 -> d_step { cs[n] = FREE; ok = 1; over = 1 }
     fi
  :: atomic { !over && cs[n] != REFU && DEADLINE(n) -> assert(ANYTIME || op[n] == DEL || EXCUSED(n)) } /* I4 */
     if
     :: op[n] == ADD ->
        d_step { gone[n] = 1; over = 1; if :: cs[n] == RST || cs[n] == ANSW || cs[n] == REFU -> cs[n] = FREE :: else fi }
     :: op[n] == DEL ->
        d_step { gone[n] = 1; if :: cs[n] == RST || cs[n] == ANSW || cs[n] == REFU -> cs[n] = FREE :: else fi }
        d_step { tomb[k] = STAMP(n); ok = 1; over = 1 }
     fi
  od;
  skip;
  d_step {
    assert(ANYTIME || ok || gone[n]);                                  /* I4: no ADD of a waiting caller is refused */
    if
    :: op[n] == ADD && ok -> word[k] = W_ADD
    :: op[n] == ADD && !ok -> word[k] = (again && NODEL -> W_ADD : W_FAIL)
    :: else -> word[k] = W_DEL
    fi;
    n++; ok = 0; over = 0; again = 0 };
  skip
}

proctype Runtime() {
  byte n; bit ok, over, was0, was1, again;
  do
  :: n < NCALLS && word[0] == W_FAIL && !NODEL -> plugin(DEL, 0)
  :: n < NCALLS && word[1] == W_FAIL && !NODEL -> plugin(DEL, 1)
  :: (NODEL || (word[0] != W_FAIL && word[1] != W_FAIL)) ->
     if
     :: n < NCALLS - 1 && (!was0 || (REUSE && word[0] == W_DEL)) && !was1 -> was0 = 1; plugin(ADD, 0)
     :: n < NCALLS - 1 && was0 && !was1 && (word[0] == W_DEL || REPLACE) ->
        was1 = 1; if :: word[0] == W_ADD -> word[0] = W_SUP :: else fi; plugin(ADD, 1)
     :: REPEAT && n < NCALLS - 1 && word[0] == W_ADD -> again = 1; plugin(ADD, 0)
     :: n < NCALLS && was0 -> plugin(DEL, 0)
     :: n < NCALLS && was1 -> plugin(DEL, 1)
     :: break
     fi
  od;
  rdone = 1
}

/* ---- kills, stops, SIGTERM ---- */

#if STANDBY
#define TERMOK(a) (lock == a && ph[a] == SERVE && (comp[0] || comp[1]))
#else
#define TERMOK(a) (lock == a && ph[a] == SERVE)
#endif
#define HARM(a) \
  :: d_step { nk < KILLS && LIVE(a) -> nk++; die(a) } \
  :: d_step { ns < STOPS && LIVE(a) && !stp[a] -> ns++; stp[a] = 1 } \
  :: d_step { stp[a] -> stp[a] = 0 } \
  :: d_step { nr < RMLOCKS && lock == a && ph[a] == SERVE -> nr++; lost[a] = 1; lock = NONE } \
  :: d_step { nt < TERMS && TERMOK(a) && !term[a] -> nt++; term[a] = 1; took[a] = ANYATT(a) } /* T12: attached now, waited for */

proctype Chaos() {
  byte nk, ns, nt, nr;
  do
  HARM(0)
  HARM(1)
#if NA == 3
  HARM(2)
#endif
  :: NOSTOPPED -> d_step { nk = 0; ns = 0; nt = 0; nr = 0 } break
  od;
  chaosdone = 1
}

/* ---- what must hold when nothing moves any more ---- */

proctype Judge() {
  byte o = NONE, j;
end:
  (timeout && rdone && chaosdone);
  d_step {
    for (j : 0 .. NA - 1) { if :: LIVE(j) && ph[j] == SERVE && lock == j -> o = j :: else fi }
    if
    :: ANYRUN -> assert(o != NONE)                                     /* I5 */
    :: else
    fi;
    for (j : 0 .. 1) {
      assert(word[j] != W_ADD || rec[j] != 0);                         /* I2 on disk, I7 */
      if
      :: o != NONE ->
         assert(path != NONE && path == dup[o]);                       /* I6 */
         assert(tomb[j] == 0);                                         /* I3 */
         assert(T(o, j) == rec[j]);                                    /* I2, I3 in the table */
         assert(word[j] != W_DEL || rec[j] == 0);                      /* I3 */
         assert(word[j] != W_SUP || word[1 - j] != W_ADD || rec[j] == 0); /* K05 */
#if NODEL && !REPEAT
         assert(word[j] != W_FAIL || rec[j] == 0);                     /* K16 */
#endif
      :: else
      fi
    }
  }
endj:
  false
}

init {
  atomic {
    byte j;
    for (j : 0 .. NA - 1) { dup[j] = NONE; att[j] = NONE; hq[j] = NONE; cho[j] = NONE }
    lock = 0; ph[0] = SERVE; dup[0] = 0; path = 0;
#if STANDBY
    ph[1] = ATT; att[1] = 0; dup[1] = 0; if :: STANDBY == 1 -> comp[1] = 1; infl[1] = 1 :: else fi;
#endif
    for (j : 0 .. NA - 1) { run Agent(j); run Kernel(j) }
    run Runtime(); run Chaos(); run Judge()
  }
}
