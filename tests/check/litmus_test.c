/*
 * The checker against the literature, in small programs whose allowed outcomes are known and written by hand;
 * and against an oracle, which finds the outcomes and the number of executions independently.
 *
 * litmus.h describes the notation of outcomes. In the tables `*` is 0 or 1, and `#` is 0, 1 or 2; the allowed
 * outcomes are the first list without the second. RC11 is "Repairing Sequential Consistency in C/C++11" (Lahav
 * et al., 2017).
 *
 * An argument is a program: prints the results of the checker and of the oracle for it.
 */
#include "testing.h"

#include "litmus.h"
#include "oracle.h"

#include <inttypes.h>

typedef struct known {
    const char *name;
    const char *program;
    const char *allowed;
    const char *but_not;
} known;

/* One line for each program. */
/* clang-format off */
static const known table[] = {
/* ---- Store buffering: may both threads miss the other's store? ---- */
#define SB_ALL  "** 11", ""
#define SB_SOME "** 11", "00 11"
    {"SB, relaxed", "W x 1 rlx; R y rlx | W y 1 rlx; R x rlx", SB_ALL},
    {"SB, release and acquire", "W x 1 rel; R y acq | W y 1 rel; R x acq", SB_ALL},
    {"SB, seq_cst", "W x 1 sc; R y sc | W y 1 sc; R x sc", SB_SOME},
    {"SB, a release store among seq_cst", "W x 1 sc; R y sc | W y 1 rel; R x sc", SB_ALL},
    {"SB, an acquire load among seq_cst", "W x 1 sc; R y sc | W y 1 sc; R x acq", SB_ALL},
    {"SB, a relaxed store among seq_cst", "W x 1 sc; R y sc | W y 1 rlx; R x sc", SB_ALL},
    {"SB, seq_cst stores only", "W x 1 sc; R y acq | W y 1 sc; R x acq", SB_ALL},
    {"SB, seq_cst fences", "W x 1 rlx; F sc; R y rlx | W y 1 rlx; F sc; R x rlx", SB_SOME},
    {"SB, one seq_cst fence", "W x 1 rlx; F sc; R y rlx | W y 1 rlx; R x rlx", SB_ALL},
    {"SB, a seq_cst and an acq_rel fence", "W x 1 rlx; F sc; R y rlx | W y 1 rlx; F ar; R x rlx", SB_ALL},
    {"SB, acq_rel fences", "W x 1 rlx; F ar; R y rlx | W y 1 rlx; F ar; R x rlx", SB_ALL},
    {"SB, a seq_cst fence and seq_cst accesses", "W x 1 sc; R y sc | W y 1 rlx; F sc; R x rlx", SB_SOME},
    {"SB, a seq_cst fence and release, acquire", "W x 1 rel; R y acq | W y 1 rlx; F sc; R x rlx", SB_ALL},
    {"SB, seq_cst fences too early", "F sc; W x 1 rlx; R y rlx | F sc; W y 1 rlx; R x rlx", SB_ALL},
    {"SB, seq_cst fences too late", "W x 1 rlx; R y rlx; F sc | W y 1 rlx; R x rlx; F sc", SB_ALL},
    {"SB, acq_rel fetch_adds", "A x 1 ar; R y acq | A y 1 ar; R x acq", "0*0* 11", ""},
    {"SB, seq_cst fetch_adds", "A x 1 sc; R y sc | A y 1 sc; R x sc", "0*0* 11", "0000 11"},
    {"SB, seq_cst exchanges and acquire loads", "X x 1 sc; R y acq | X y 1 sc; R x acq", "0*0* 11", ""},
    /* Read-modify-writes of one location, in place of fences. */
    {"SB, an acq_rel fetch_add between", "W x 1 rlx; A z 0 ar; R y rlx | W y 1 rlx; A z 0 ar; R x rlx", "0*0* 110", "0000 110"},
    {"SB, an acquire fetch_add between", "W x 1 rlx; A z 0 acq; R y rlx | W y 1 rlx; A z 0 acq; R x rlx", "0*0* 110", ""},
    {"SB, compare-exchanges that fail, seq_cst", "W x 1 sc; C y 5 6 rlx sc | W y 1 sc; C x 5 6 rlx sc", "*-*- 11", "0-0- 11"},
    {"SB, compare-exchanges that fail, relaxed", "W x 1 sc; C y 5 6 sc rlx | W y 1 sc; C x 5 6 sc rlx", "*-*- 11", ""},

/*
 * ---- Elsewhere: the operations between a seq_cst store and a later one of its own location ----
 */
    {"nothing elsewhere", "W x 1 sc; W x 2 rel | R x acq; R y sc | W y 1 sc; R x sc", "#*# 21", ""},
    {"a load elsewhere", "W x 1 sc; R z rlx; W x 2 rel | R x acq; R y sc | W y 1 sc; R x sc", "0#*# 210", "0200 210"},
    {"an acquire fence elsewhere", "W x 1 sc; F acq; W x 2 rel | R x acq; R y sc | W y 1 sc; R x sc", "#*# 21", "200 21"},
    {"a relaxed fence is nowhere", "W x 1 sc; F rlx; W x 2 rel | R x acq; R y sc | W y 1 sc; R x sc", "#*# 21", ""},
    {"a light fence is nowhere", "W x 1 sc; F light; W x 2 rel | R x acq; R y sc | W y 1 sc; R x sc", "#*# 21", ""},
    {"nothing elsewhere, and a fence", "W x 1 sc; W x 2 rel | R x acq; R y sc | W y 1 sc; F sc; R x rlx", "#*# 21", ""},
    {"a relaxed fence, and a fence", "W x 1 sc; F rlx; W x 2 rel | R x acq; R y sc | W y 1 sc; F sc; R x rlx", "#*# 21", ""},

/*
 * ---- Asymmetric fences: a light and a heavy fence order each other, and nothing else orders a
 * light one ----
 */
    {"SB, light and heavy", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F heavy; R x rlx", SB_SOME},
    {"SB, two heavy", "W x 1 rlx; F heavy; R y rlx | W y 1 rlx; F heavy; R x rlx", SB_SOME},
    {"SB, heavy and a seq_cst fence", "W x 1 rlx; F sc; R y rlx | W y 1 rlx; F heavy; R x rlx", SB_SOME},
    {"SB, heavy and seq_cst accesses", "W x 1 sc; R y sc | W y 1 rlx; F heavy; R x rlx", SB_SOME},
    {"SB, two light", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F light; R x rlx", SB_ALL},
    {"SB, light and a seq_cst fence", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F sc; R x rlx", SB_ALL},
    {"SB, light and seq_cst accesses", "W x 1 rlx; F light; R y rlx | W y 1 sc; R x sc", SB_ALL},
    {"SB, heavy too early", "W x 1 rlx; F light; R y rlx | F heavy; W y 1 rlx; R x rlx", SB_ALL},
    {"SB, light too late", "W x 1 rlx; R y rlx; F light | W y 1 rlx; F heavy; R x rlx", SB_ALL},
    {"SB of three, one heavy", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F light; R z rlx | W z 1 rlx; F heavy; R x rlx", "*** 111", ""},
    {"SB of three, two heavy", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F heavy; R z rlx | W z 1 rlx; F heavy; R x rlx", "*** 111", "000 111"},
    {"SB of three, light, seq_cst, heavy", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F sc; R z rlx | W z 1 rlx; F heavy; R x rlx", "*** 111", ""},
    {"SB of three, heavy between a seq_cst and a light", "W x 1 rlx; F sc; R y rlx | W y 1 rlx; F heavy; R z rlx | W z 1 rlx; F light; R x rlx", "*** 111", ""},
    {"SB of four, heavy and light by turns", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F heavy; R z rlx | W z 1 rlx; F light; R w rlx | W w 1 rlx; F heavy; R x rlx", "**** 1111", "0000 1111"},
    /* An event that is seen through a message from after the heavy fence is after the fence. */
    {"SB, heavy, then a message to who looks", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F heavy; W z 1 rel | R z acq; R x rlx", "*** 111", "010 111"},
    {"SB, heavy, then a relaxed message", "W x 1 rlx; F light; R y rlx | W y 1 rlx; F heavy; W z 1 rlx | R z rlx; R x rlx", "*** 111", ""},
    {"MP, light in place of release", "W x 1 rlx; F light; W y 1 rlx | R y acq; R x rlx", "** 11", ""},
    {"MP, light and heavy", "W x 1 rlx; F light; W y 1 rlx | R y rlx; F heavy; R x rlx", "** 11", "10 11"},
    {"MP, heavy fences", "W x 1 rlx; F heavy; W y 1 rlx | R y rlx; F heavy; R x rlx", "** 11", "10 11"},
    {"IRIW, light and heavy", "W x 1 rlx | W y 1 rlx | R x rlx; F light; R y rlx | R y rlx; F heavy; R x rlx", "**** 11", "1010 11"},
    {"2+2W, light and heavy", "W x 1 rlx; F light; W y 2 rlx | W y 1 rlx; F heavy; W x 2 rlx", "12, 21, 22", ""},
    {"2+2W, two light", "W x 1 rlx; F light; W y 2 rlx | W y 1 rlx; F light; W x 2 rlx", "11, 12, 21, 22", ""},

/* ---- Message passing: x is the message, y its flag ---- */
#define MP_ALL  "** 11", ""
#define MP_SOME "** 11", "10 11"
    {"MP, relaxed", "W x 1 rlx; W y 1 rlx | R y rlx; R x rlx", MP_ALL},
    {"MP, release and acquire", "W x 1 rlx; W y 1 rel | R y acq; R x rlx", MP_SOME},
    {"MP, release only", "W x 1 rlx; W y 1 rel | R y rlx; R x rlx", MP_ALL},
    {"MP, acquire only", "W x 1 rlx; W y 1 rlx | R y acq; R x rlx", MP_ALL},
    {"MP, seq_cst message and relaxed flag", "W x 1 sc; W y 1 rlx | R y rlx; R x sc", MP_ALL},
    {"MP, release and acquire at the message", "W x 1 rel; W y 1 rlx | R y rlx; R x acq", MP_ALL},
    {"MP, seq_cst", "W x 1 sc; W y 1 sc | R y sc; R x sc", MP_SOME},
    {"MP, seq_cst flag", "W x 1 rlx; W y 1 sc | R y sc; R x rlx", MP_SOME},
    {"MP, seq_cst store and acquire", "W x 1 rlx; W y 1 sc | R y acq; R x rlx", MP_SOME},
    {"MP, release and seq_cst load", "W x 1 rlx; W y 1 rel | R y sc; R x rlx", MP_SOME},
    {"MP, release fence, acquire load", "W x 1 rlx; F rel; W y 1 rlx | R y acq; R x rlx", MP_SOME},
    {"MP, release store, acquire fence", "W x 1 rlx; W y 1 rel | R y rlx; F acq; R x rlx", MP_SOME},
    {"MP, both fences", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F acq; R x rlx", MP_SOME},
    {"MP, acq_rel fences", "W x 1 rlx; F ar; W y 1 rlx | R y rlx; F ar; R x rlx", MP_SOME},
    {"MP, seq_cst fences", "W x 1 rlx; F sc; W y 1 rlx | R y rlx; F sc; R x rlx", MP_SOME},
    {"MP, only a release fence", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; R x rlx", MP_ALL},
    {"MP, only an acquire fence", "W x 1 rlx; W y 1 rlx | R y rlx; F acq; R x rlx", MP_ALL},
    {"MP, only one seq_cst fence", "W x 1 rlx; F sc; W y 1 rlx | R y rlx; R x rlx", MP_ALL},
    {"MP, only the reader's seq_cst fence", "W x 1 rlx; W y 1 rlx | R y rlx; F sc; R x rlx", MP_ALL},
    {"MP, fences in the wrong roles", "W x 1 rlx; F acq; W y 1 rlx | R y rlx; F rel; R x rlx", MP_ALL},
    {"MP, a release fence in the reader", "W x 1 rlx; W y 1 rel | R y rlx; F rel; R x rlx", MP_ALL},
    {"MP, an acquire fence in the writer", "W x 1 rlx; F acq; W y 1 rlx | R y acq; R x rlx", MP_ALL},
    {"MP, relaxed fences", "W x 1 rlx; F rlx; W y 1 rlx | R y rlx; F rlx; R x rlx", MP_ALL},
    {"MP, a release fence too early", "F rel; W x 1 rlx; W y 1 rlx | R y acq; R x rlx", MP_ALL},
    {"MP, an acquire fence too early", "W x 1 rlx; W y 1 rel | F acq; R y rlx; R x rlx", MP_ALL},
    {"MP, an acquire fence too late", "W x 1 rlx; W y 1 rel | R y rlx; R x rlx; F acq", MP_ALL},
    {"MP, by fetch_adds", "W x 1 rlx; A y 1 rel | A y 0 acq; R x rlx", "0** 11", "010 11"},
    {"MP, by relaxed fetch_adds", "W x 1 rlx; A y 1 rlx | A y 0 rlx; R x rlx", "0** 11", ""},
    {"MP, by a fetch_add that only acquires", "W x 1 rlx; A y 1 acq | A y 0 acq; R x rlx", "0** 11", ""},
    {"MP, to a fetch_add that only releases", "W x 1 rlx; A y 1 rel | A y 0 rel; R x rlx", "0** 11", ""},
    {"MP, by exchanges", "W x 1 rlx; X y 1 ar | X y 0 ar; R x rlx", "00* 11, 011 10", ""},

/* ---- Load buffering. The model forbids any cycle of program order and reads-from, so 1 and 1 is
     * excluded by construction; C11 itself does not exclude it for relaxed accesses. ---- */
#define LB "** 11", "11 11"
    {"LB, relaxed", "R x rlx; W y 1 rlx | R y rlx; W x 1 rlx", LB},
    {"LB, release and acquire", "R x acq; W y 1 rel | R y acq; W x 1 rel", LB},
    {"LB, seq_cst", "R x sc; W y 1 sc | R y sc; W x 1 sc", LB},
    {"LB, fences", "R x rlx; F acq; W y 1 rlx | R y rlx; F rel; W x 1 rlx", LB},
    {"LB, of three", "R x rlx; W y 1 rlx | R y rlx; W z 1 rlx | R z rlx; W x 1 rlx", "*** 111", "111 111"},

    /* ---- Coherence ---- */
    {"CoRR, one writer", "W x 1 rlx; W x 2 rlx | R x rlx; R x rlx", "## 2", "10 2, 20 2, 21 2"},
    {"CoRR, seq_cst", "W x 1 sc; W x 2 sc | R x sc; R x sc", "## 2", "10 2, 20 2, 21 2"},
    {"CoRR, two writers", "W x 1 rlx | W x 2 rlx | R x rlx; R x rlx", "## 1, ## 2", "10 #, 20 #, 12 1, 21 2"},
    {"CoRR, two readers", "W x 1 rlx | W x 2 rlx | R x rlx; R x rlx | R x rlx; R x rlx",
     "#### 1, #### 2", "10## #, 20## #, ##10 #, ##20 #, 12## 1, ##12 1, 21## 2, ##21 2"},
    {"CoRR, two readers, seq_cst", "W x 1 sc | W x 2 sc | R x sc; R x sc | R x sc; R x sc",
     "#### 1, #### 2", "10## #, 20## #, ##10 #, ##20 #, 12## 1, ##12 1, 21## 2, ##21 2"},
    {"CoWW, relaxed", "W x 1 rlx; W x 2 rlx | R x rlx", "# 2", ""},
    {"CoWW, seq_cst", "W x 1 sc; W x 2 sc | R x sc", "# 2", ""},
    {"CoWW, through a message", "W x 1 rlx; W y 1 rel | R y acq; W x 2 rlx", "* 11, * 21", "1 11"},
    {"CoWW, through a relaxed message", "W x 1 rlx; W y 1 rlx | R y rlx; W x 2 rlx", "* 11, * 21", ""},
    {"CoRW, relaxed", "R x rlx; W x 1 rlx | W x 2 rlx", "0 1, 0 2, 2 1", ""},
    {"CoRW, seq_cst", "R x sc; W x 1 sc | W x 2 sc", "0 1, 0 2, 2 1", ""},
    {"CoRW, through a message", "R x rlx; W y 1 rel | R y acq; W x 1 rlx | W x 2 rlx", "#0 11, #0 21, 01 11, 01 21, 21 11", ""},
    {"CoRW, through a relaxed message", "R x rlx; W y 1 rlx | R y acq; W x 1 rlx | W x 2 rlx", "#0 11, #0 21, 01 11, 01 21, 21 11, 21 21", ""},
    {"CoWR, relaxed", "W x 1 rlx; R x rlx | W x 2 rlx", "1 1, 1 2, 2 2", ""},
    {"CoWR, seq_cst", "W x 1 sc; R x sc | W x 2 sc", "1 1, 1 2, 2 2", ""},
    {"CoWR, of a message", "W x 1 rlx; W x 2 rlx; W y 1 rel | R y acq; R x rlx", "0# 21, 12 21", ""},

/* ---- Independent reads of independent writes ---- */
#define IRIW_ALL  "**** 11", ""
#define IRIW_SOME "**** 11", "1010 11"
    {"IRIW, relaxed", "W x 1 rlx | W y 1 rlx | R x rlx; R y rlx | R y rlx; R x rlx", IRIW_ALL},
    {"IRIW, release and acquire", "W x 1 rel | W y 1 rel | R x acq; R y acq | R y acq; R x acq", IRIW_ALL},
    {"IRIW, seq_cst", "W x 1 sc | W y 1 sc | R x sc; R y sc | R y sc; R x sc", IRIW_SOME},
    {"IRIW, a release store among seq_cst", "W x 1 rel | W y 1 sc | R x sc; R y sc | R y sc; R x sc", IRIW_ALL},
    /* IRIW-acq-sc of RC11, which C11 forbids and Power does. */
    {"IRIW, acquire then seq_cst", "W x 1 sc | W y 1 sc | R x acq; R y sc | R y acq; R x sc", IRIW_ALL},
    {"IRIW, seq_cst then acquire", "W x 1 sc | W y 1 sc | R x sc; R y acq | R y sc; R x acq", IRIW_ALL},
    {"IRIW, seq_cst fences", "W x 1 rlx | W y 1 rlx | R x rlx; F sc; R y rlx | R y rlx; F sc; R x rlx", IRIW_SOME},
    {"IRIW, acq_rel fences", "W x 1 rlx | W y 1 rlx | R x rlx; F ar; R y rlx | R y rlx; F ar; R x rlx", IRIW_ALL},
    {"IRIW, one seq_cst fence", "W x 1 rlx | W y 1 rlx | R x rlx; F sc; R y rlx | R y rlx; F acq; R x rlx", IRIW_ALL},

/* ---- Write-to-read causality ---- */
#define WRC_ALL  "*** 11", ""
#define WRC_SOME "*** 11", "110 11"
    {"WRC, relaxed", "W x 1 rlx | R x rlx; W y 1 rlx | R y rlx; R x rlx", WRC_ALL},
    {"WRC, release and acquire", "W x 1 rel | R x acq; W y 1 rel | R y acq; R x rlx", WRC_SOME},
    {"WRC, only the second message", "W x 1 rlx | R x rlx; W y 1 rel | R y acq; R x rlx", WRC_SOME},
    {"WRC, only the first message", "W x 1 rel | R x acq; W y 1 rlx | R y rlx; R x acq", WRC_ALL},
    {"WRC, second not acquired", "W x 1 rel | R x acq; W y 1 rel | R y rlx; R x rlx", WRC_ALL},
    {"WRC, second not released", "W x 1 rel | R x acq; W y 1 rlx | R y acq; R x rlx", WRC_ALL},
    {"WRC, fences", "W x 1 rlx | R x rlx; F rel; W y 1 rlx | R y rlx; F acq; R x rlx", WRC_SOME},
    {"WRC, acquire fences only", "W x 1 rlx | R x rlx; F acq; W y 1 rlx | R y rlx; F acq; R x rlx", WRC_ALL},
    {"WRC, seq_cst fences", "W x 1 rlx | R x rlx; F sc; W y 1 rlx | R y rlx; F sc; R x rlx", WRC_SOME},
    {"WRC, seq_cst", "W x 1 sc | R x sc; W y 1 sc | R y sc; R x sc", WRC_SOME},

/* ---- Read-to-write causality ---- */
#define RWC_ALL  "*** 11", ""
#define RWC_SOME "*** 11", "100 11"
    {"RWC, relaxed", "W x 1 rlx | R x rlx; R y rlx | W y 1 rlx; R x rlx", RWC_ALL},
    {"RWC, release and acquire", "W x 1 rel | R x acq; R y acq | W y 1 rel; R x acq", RWC_ALL},
    {"RWC, seq_cst", "W x 1 sc | R x sc; R y sc | W y 1 sc; R x sc", RWC_SOME},
    /* C11 as it was written allows it; RC11's fences are stronger. */
    {"RWC, seq_cst fences", "W x 1 rlx | R x rlx; F sc; R y rlx | W y 1 rlx; F sc; R x rlx", RWC_SOME},
    {"RWC, the reader's fence is acquire", "W x 1 rlx | R x rlx; F acq; R y rlx | W y 1 rlx; F sc; R x rlx", RWC_ALL},
    {"RWC, the writer's fence is acq_rel", "W x 1 rlx | R x rlx; F sc; R y rlx | W y 1 rlx; F ar; R x rlx", RWC_ALL},
    {"RWC, acquire then seq_cst", "W x 1 sc | R x acq; R y sc | W y 1 sc; R x sc", RWC_ALL},

/* ---- W+RWC ---- */
#define W_RWC_ALL  "*** 111", ""
#define W_RWC_SOME "*** 111", "100 111"
    {"W+RWC, relaxed", "W x 1 rlx; W y 1 rlx | R y rlx; R z rlx | W z 1 rlx; R x rlx", W_RWC_ALL},
    {"W+RWC, release and acquire", "W x 1 rel; W y 1 rel | R y acq; R z acq | W z 1 rel; R x acq", W_RWC_ALL},
    {"W+RWC, seq_cst", "W x 1 sc; W y 1 sc | R y sc; R z sc | W z 1 sc; R x sc", W_RWC_SOME},
    {"W+RWC, release, seq_cst fences", "W x 1 rlx; W y 1 rel | R y acq; F sc; R z rlx | W z 1 rlx; F sc; R x rlx", W_RWC_SOME},
    {"W+RWC, relaxed flag, seq_cst fences", "W x 1 rlx; W y 1 rlx | R y acq; F sc; R z rlx | W z 1 rlx; F sc; R x rlx", W_RWC_ALL},
    /* From another location, by a message, to another location: that orders seq_cst accesses. */
    {"W+RWC, seq_cst but for the flag", "W x 1 sc; W y 1 rel | R y acq; R z sc | W z 1 sc; R x sc", W_RWC_SOME},
    {"W+RWC, seq_cst but for a relaxed flag", "W x 1 sc; W y 1 rlx | R y acq; R z sc | W z 1 sc; R x sc", W_RWC_ALL},
    {"W+RWC, seq_cst but for flag and x", "W x 1 rlx; W y 1 rel | R y acq; R z sc | W z 1 sc; R x sc", W_RWC_ALL},

/* ---- ISA2: messages through a third thread ---- */
#define ISA2_ALL  "*** 111", ""
#define ISA2_SOME "*** 111", "110 111"
    {"ISA2, relaxed", "W x 1 rlx; W y 1 rlx | R y rlx; W z 1 rlx | R z rlx; R x rlx", ISA2_ALL},
    {"ISA2, release and acquire", "W x 1 rlx; W y 1 rel | R y acq; W z 1 rel | R z acq; R x rlx", ISA2_SOME},
    {"ISA2, seq_cst", "W x 1 sc; W y 1 sc | R y sc; W z 1 sc | R z sc; R x sc", ISA2_SOME},
    {"ISA2, first not released", "W x 1 rlx; W y 1 rlx | R y acq; W z 1 rel | R z acq; R x rlx", ISA2_ALL},
    {"ISA2, first not acquired", "W x 1 rlx; W y 1 rel | R y rlx; W z 1 rel | R z acq; R x rlx", ISA2_ALL},
    {"ISA2, second not released", "W x 1 rlx; W y 1 rel | R y acq; W z 1 rlx | R z acq; R x rlx", ISA2_ALL},
    {"ISA2, second not acquired", "W x 1 rlx; W y 1 rel | R y acq; W z 1 rel | R z rlx; R x rlx", ISA2_ALL},
    {"ISA2, fences", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F ar; W z 1 rlx | R z rlx; F acq; R x rlx", ISA2_SOME},
    {"ISA2, no acquire in the middle", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F rel; W z 1 rlx | R z rlx; F acq; R x rlx", ISA2_ALL},
    {"ISA2, no release in the middle", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F acq; W z 1 rlx | R z rlx; F acq; R x rlx", ISA2_ALL},
    {"ISA2, acquire then release fence", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F acq; F rel; W z 1 rlx | R z rlx; F acq; R x rlx", ISA2_SOME},
    {"ISA2, release then acquire fence", "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F rel; F acq; W z 1 rlx | R z rlx; F acq; R x rlx", ISA2_ALL},

/* ---- 2+2W: both threads' first stores last? ---- */
#define TWO_ALL  "11, 12, 21, 22", ""
#define TWO_SOME "12, 21, 22", ""
    {"2+2W, relaxed", "W x 1 rlx; W y 2 rlx | W y 1 rlx; W x 2 rlx", TWO_ALL},
    {"2+2W, release", "W x 1 rel; W y 2 rel | W y 1 rel; W x 2 rel", TWO_ALL},
    {"2+2W, seq_cst", "W x 1 sc; W y 2 sc | W y 1 sc; W x 2 sc", TWO_SOME},
    {"2+2W, a release store among seq_cst", "W x 1 sc; W y 2 sc | W y 1 rel; W x 2 sc", TWO_ALL},
    {"2+2W, seq_cst fences", "W x 1 rlx; F sc; W y 2 rlx | W y 1 rlx; F sc; W x 2 rlx", TWO_SOME},
    {"2+2W, one seq_cst fence", "W x 1 rlx; F sc; W y 2 rlx | W y 1 rlx; F ar; W x 2 rlx", TWO_ALL},

/* ---- S ---- */
#define S_ALL  "* 11, * 21", ""
#define S_SOME "* 11, * 21", "1 21"
    {"S, relaxed", "W x 2 rlx; W y 1 rlx | R y rlx; W x 1 rlx", S_ALL},
    {"S, the reader first", "R y rlx; W x 1 rlx | W x 2 rlx; W y 1 rlx", S_ALL},
    {"S, release and acquire", "W x 2 rlx; W y 1 rel | R y acq; W x 1 rlx", S_SOME},
    {"S, release only", "W x 2 rlx; W y 1 rel | R y rlx; W x 1 rel", S_ALL},
    {"S, acquire only", "W x 2 rel; W y 1 rlx | R y acq; W x 1 rlx", S_ALL},
    {"S, fences", "W x 2 rlx; F rel; W y 1 rlx | R y rlx; F acq; W x 1 rlx", S_SOME},
    {"S, seq_cst", "W x 2 sc; W y 1 sc | R y sc; W x 1 sc", S_SOME},

/* ---- R ---- */
#define R_ALL  "* 11, * 12", ""
#define R_SOME "* 11, * 12", "0 12"
    {"R, relaxed", "W x 1 rlx; W y 1 rlx | W y 2 rlx; R x rlx", R_ALL},
    {"R, release and acquire", "W x 1 rel; W y 1 rel | W y 2 rel; R x acq", R_ALL},
    {"R, seq_cst", "W x 1 sc; W y 1 sc | W y 2 sc; R x sc", R_SOME},
    {"R, a release store among seq_cst", "W x 1 sc; W y 1 rel | W y 2 sc; R x sc", R_ALL},
    {"R, an acquire load among seq_cst", "W x 1 sc; W y 1 sc | W y 2 sc; R x acq", R_ALL},
    {"R, seq_cst fences", "W x 1 rlx; F sc; W y 1 rlx | W y 2 rlx; F sc; R x rlx", R_SOME},
    {"R, one seq_cst fence", "W x 1 rlx; F rel; W y 1 rlx | W y 2 rlx; F sc; R x rlx", R_ALL},

/* ---- Z6 ---- */
#define Z6_ALL  "** 111, ** 121", ""
#define Z6_SOME "** 111, ** 121", "10 121"
    {"Z6, relaxed", "W x 1 rlx; W y 1 rlx | W y 2 rlx; W z 1 rlx | R z rlx; R x rlx", Z6_ALL},
    {"Z6, release and acquire", "W x 1 rel; W y 1 rel | W y 2 rel; W z 1 rel | R z acq; R x acq", Z6_ALL},
    {"Z6, seq_cst", "W x 1 sc; W y 1 sc | W y 2 sc; W z 1 sc | R z sc; R x sc", Z6_SOME},
    {"Z6, seq_cst fences", "W x 1 rlx; F sc; W y 1 rlx | W y 2 rlx; F sc; W z 1 rlx | R z rlx; F sc; R x rlx", Z6_SOME},
    {"Z6, two seq_cst fences, acquire", "W x 1 rlx; F sc; W y 1 rlx | W y 2 rlx; F sc; W z 1 rlx | R z acq; R x rlx", Z6_SOME},
    {"Z6, two seq_cst fences, no acquire", "W x 1 rlx; F sc; W y 1 rlx | W y 2 rlx; F sc; W z 1 rlx | R z rlx; R x rlx", Z6_ALL},
    /*
     * Z6.U of RC11. The fetch_add reads 0, 1 or 3, and the load after it reads the thread's own
     * value or the one that follows. C11 forbids reading 0 from x after the seq_cst fetch_add has
     * read the release store, because happens-before then orders seq_cst accesses whatever is
     * between them; RC11 allows it.
     */
    {"Z6.U", "W x 1 sc; W y 1 rel | A y 1 sc; R y rlx | W y 3 sc; R x sc",
     "01* 13, 03* 13, 01* 11, 03* 11, 12* 13, 13* 13, 12* 12, 34* 11, 31* 11, 34* 14", ""},
    {"Z6.U, seq_cst in place of release", "W x 1 sc; W y 1 sc | A y 1 sc; R y rlx | W y 3 sc; R x sc",
     "01* 13, 03* 13, 01* 11, 03* 11, 12* 13, 13* 13, 12* 12, 34* 11, 31* 11, 34* 14", "010 13, 030 13, 120 13, 130 13, 340 14"},

    /* ---- Release sequences: x is the message, y the flag, which is read last ---- */
    {"RS, by a fetch_add", "W x 1 rlx; W y 1 rel | A y 1 rlx | R y acq; R x rlx", "0** 11, 10* 12, 111 12, 121 12", ""},
    {"RS, by a fetch_add, C++20", "C++20: W x 1 rlx; W y 1 rel | A y 1 rlx | R y acq; R x rlx", "0** 11, 10* 12, 111 12, 121 12", ""},
    {"RS, no release at its head", "W x 1 rlx; W y 1 rlx | A y 1 rlx | R y acq; R x rlx", "0** 11, 1#* 12", ""},
    {"RS, by two fetch_adds", "W x 1 rlx; W y 1 rel | A y 1 rlx; A y 1 rlx | R y acq; R x rlx",
     /* both before the release store, one, none */
     "01#* 11, 010* 12, 011* 12, 0121 12, 120* 13, 1211 13, 1221 13, 1231 13", ""},
    {"RS, read by an acquire fence", "W x 1 rlx; W y 1 rel | A y 1 rlx | R y rlx; F acq; R x rlx", "0** 11, 10* 12, 111 12, 121 12", ""},
    {"RS, from a release fence", "W x 1 rlx; F rel; W y 1 rlx | A y 1 rlx | R y rlx; F acq; R x rlx", "0** 11, 10* 12, 111 12, 121 12", ""},
    {"RS, by an own store", "W x 1 rlx; W y 1 rel; W y 2 rlx | R y acq; R x rlx", "0* 12, 11 12, 21 12", ""},
    {"RS, by an own store, C++20", "C++20: W x 1 rlx; W y 1 rel; W y 2 rlx | R y acq; R x rlx", "0* 12, 11 12, 2* 12", ""},
    {"RS, by an own store, fence", "W x 1 rlx; F rel; W y 1 rlx; W y 2 rlx | R y acq; R x rlx", "0* 12, 11 12, 21 12", ""},
    {"RS, by an own store, fence, C++20", "C++20: W x 1 rlx; F rel; W y 1 rlx; W y 2 rlx | R y acq; R x rlx", "0* 12, 11 12, 21 12", ""},
    {"RS, by an own store elsewhere", "W x 1 rlx; W z 1 rel; W y 1 rlx | R y acq; R x rlx", "** 111", ""},
    {"RS, own store and fetch_add", "W x 1 rlx; W y 1 rel; W y 2 rlx | A y 1 rlx | R y acq; R x rlx",
     "00* 12, 01* 12, 021 12, 10* 12, 111 12, 121 12, 20* 13, 211 13, 221 13, 231 13", ""},
    {"RS, own store and fetch_add, C++20", "C++20: W x 1 rlx; W y 1 rel; W y 2 rlx | A y 1 rlx | R y acq; R x rlx",
     "0#* 12, 10* 12, 111 12, 12* 12, 20* 13, 211 13, 22* 13, 23* 13", ""},
    {"RS, broken by another's store", "W x 1 rlx; W y 1 rel | W y 2 rlx | R y acq; R x rlx", "0* 11, 0* 12, 11 11, 11 12, 2* 11, 2* 12", ""},
    {"RS, another's store, then fetch_add", "W x 1 rlx; W y 1 rel | W y 2 rlx; A y 1 rlx | R y acq; R x rlx",
     /* the fetch_add reads its own thread's 2, or the 1 that follows it */
     "20* 13, 211 13, 22* 13, 23* 13, 20* 11, 211 11, 22* 11, 23* 11, 10* 12, 111 12, 12* 12", ""},
    /*
     * The thread's own store is in the release sequences that its thread began, not in another's
     * that the fetch_add is in.
     */
    {"RS, another's, fetch_add, then an own store", "W x 1 rlx; W y 1 rel | A y 1 rlx; W y 5 rlx | R y acq; R x rlx",
     "00* 11, 01* 11, 05* 11, 00* 15, 01* 15, 05* 15, 10* 15, 111 15, 121 15, 15* 15", ""},
    {"RS, own fetch_add, then an own store", "W x 1 rlx; W y 1 rel; A y 1 rlx; W y 5 rlx | R y acq; R x rlx",
     "10* 15, 111 15, 121 15, 151 15", ""},
    {"RS, own fetch_add, then an own store, C++20", "C++20: W x 1 rlx; W y 1 rel; A y 1 rlx; W y 5 rlx | R y acq; R x rlx",
     "10* 15, 111 15, 121 15, 15* 15", ""},
    {"RS, own release fetch_add, then an own store", "W x 1 rlx; A y 1 rel; W y 5 rlx | R y acq; R x rlx",
     "00* 15, 011 15, 051 15", ""},
    /*
     * Unlike C11 before, RC11 does not require that there is no store of another thread in between.
     */
    {"RS, an own store after another's", "W x 1 rlx; W y 1 rel; W y 3 rlx | W y 2 rlx | R y acq; R x rlx",
     "0* 13, 0* 12, 11 13, 11 12, 2* 13, 2* 12, 31 13, 31 12", ""},
    {"RS, an own store after another's, C++20", "C++20: W x 1 rlx; W y 1 rel; W y 3 rlx | W y 2 rlx | R y acq; R x rlx",
     "0* 13, 0* 12, 11 13, 11 12, 2* 13, 2* 12, 3* 13, 3* 12", ""},

    /* ---- Read-modify-writes ---- */
    {"RMW, two fetch_adds", "A x 1 rlx | A x 1 rlx", "01 2, 10 2", ""},
    {"RMW, two fetch_adds, seq_cst", "A x 1 sc | A x 1 sc", "01 2, 10 2", ""},
    {"RMW, three fetch_adds", "A x 1 rlx | A x 1 rlx | A x 1 rlx", "012 3, 021 3, 102 3, 120 3, 201 3, 210 3", ""},
    {"RMW, two exchanges", "X x 1 rlx | X x 2 rlx", "01 2, 20 1", ""},
    {"RMW, fetch_add and store", "A x 1 rlx | W x 5 rlx", "0 5, 5 6", ""},
    {"RMW, fetch_add between two stores", "A x 3 rlx | W x 1 rlx; W x 2 rlx", "0 2, 1 2, 2 5", ""},
    {"RMW, CAS of two", "C x 0 1 ar rlx | C x 0 2 ar rlx", "0+1- 1, 2-0+ 2", ""},
    {"RMW, CAS of two, one after the other", "C x 0 1 rlx rlx | C x 1 2 rlx rlx", "0+1+ 2, 0+0- 1", ""},
    {"RMW, a CAS that fails reads what is stale", "W x 1 rlx; W x 2 rlx | C x 5 6 sc sc", "0- 2, 1- 2, 2- 2", ""},
    {"RMW, a CAS that succeeds stands between", "W x 1 rlx; W x 2 rlx | C x 1 3 rlx rlx", "0- 2, 1+ 2, 2- 2", ""},
    {"RMW, what a CAS wrote is read", "W x 1 rlx; W x 2 rlx | C x 1 3 rlx rlx | R x rlx", "0-# 2, 1+# 2, 1+3 2, 2-# 2", ""},
    {"CAS, weak", "spurious 1: c x 0 1 rlx rlx | R x rlx", "0+* 1, 0-0 0", ""},
    {"CAS, weak, never for no reason", "c x 0 1 rlx rlx | R x rlx", "0+* 1", ""},
    {"CAS, weak, twice", "spurious 1: c x 0 1 rlx rlx; c x 0 1 rlx rlx", "0+1- 1, 0-0+ 1", ""},
    {"CAS, weak, twice, both may fail", "spurious 2: c x 0 1 rlx rlx; c x 0 1 rlx rlx", "0+1- 1, 0-0+ 1, 0-0- 0", ""},
    {"CAS, weak, of what is stored later", "spurious 1: c x 1 2 rlx rlx | W x 1 rlx", "0- 1, 1+ 2, 1- 1", ""},
    {"CAS, weak, behind a load of what is stored later", "spurious 1: R x rlx; c y 0 1 rlx rlx | W x 1 rlx", "*0+ 11, *0- 10", ""},
    {"CAS, strong, never for no reason", "spurious 1: C x 0 1 rlx rlx | R x rlx", "0+* 1", ""},

    /* ---- Compare-exchanges with one order for success and another for failure ---- */
    {"CAS, acquires if it succeeds", "W x 1 rlx; W y 1 rel | C y 1 2 acq rlx; R x rlx", "0-* 11, 1+1 12", ""},
    {"CAS, acquires only if it succeeds", "W x 1 rlx; W y 1 rel | C y 5 6 acq rlx; R x rlx", "0-* 11, 1-* 11", ""},
    {"CAS, acquires if it fails", "W x 1 rlx; W y 1 rel | C y 5 6 rlx acq; R x rlx", "0-* 11, 1-1 11", ""},
    {"CAS, acquires only if it fails", "W x 1 rlx; W y 1 rel | C y 1 2 rlx acq; R x rlx", "0-* 11, 1+* 12", ""},
    {"CAS, fails and an acquire fence follows", "W x 1 rlx; W y 1 rel | C y 5 6 ar rlx; F acq; R x rlx", "0-* 11, 1-1 11", ""},
    {"CAS, weak, fails for no reason, relaxed", "spurious 1: W x 1 rlx; W y 1 rel | c y 1 2 acq rlx; R x rlx", "0-* 11, 1+1 12, 1-* 11", ""},
    {"CAS, weak, fails for no reason, acquire", "spurious 1: W x 1 rlx; W y 1 rel | c y 1 2 rlx acq; R x rlx", "0-* 11, 1+* 12, 1-1 11", ""},
    {"CAS, releases", "W x 1 rlx; C y 0 1 rel rlx | R y acq; R x rlx", "0+0* 11, 0+11 11", ""},
    {"CAS, does not release", "W x 1 rlx; C y 0 1 acq acq | R y acq; R x rlx", "0+** 11", ""},
    {"CAS, releases on", "W x 1 rlx; W y 1 rel | C y 1 2 rlx rlx | R y acq; R x rlx", "0-** 11, 1+0* 12, 1+11 12, 1+21 12", "0-10 11"},
};
/* clang-format on */

enum { KNOWN = sizeof table / sizeof table[0] };

/* ---- The table's notation ---- */

/* Adds or removes each outcome that the pattern matches. */
static void expand(litmus_outcomes *outcomes, char *pattern, bool remove)
{
    size_t i = strcspn(pattern, "*#");
    char last = pattern[i] == '*' ? '1' : '2';
    if (pattern[i] == '\0') {
        if (!remove) {
            litmus_add_outcome(outcomes, pattern);
            return;
        }
        litmus_outcomes rest = {0};
        for (size_t k = 0; k < outcomes->count; k++) {
            if (strcmp(outcomes->texts[k], pattern) != 0)
                litmus_add_outcome(&rest, outcomes->texts[k]);
        }
        litmus_free_outcomes(outcomes);
        *outcomes = rest;
        return;
    }
    for (char digit = '0'; digit <= last; digit++) {
        char copy[LITMUS_TEXT];
        snprintf(copy, sizeof copy, "%s", pattern);
        copy[i] = digit;
        expand(outcomes, copy, remove);
    }
}

static void expand_all(litmus_outcomes *outcomes, const char *patterns, bool remove)
{
    while (*(patterns += strspn(patterns, ", ")) != '\0') {
        char pattern[LITMUS_TEXT];
        size_t length = strcspn(patterns, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, patterns);
        expand(outcomes, pattern, remove);
        patterns += length;
    }
}

/* ---- The tests ---- */

static bool is_same(const litmus_outcomes *a, const litmus_outcomes *b)
{
    return litmus_same_outcomes(a, b) && a->executions == b->executions;
}

static void say_how(const char *text, const litmus_outcomes *expected,
                    const litmus_outcomes *checked, const litmus_outcomes *by_axioms)
{
    printf("# %s\n# %" PRIu64 " executions, of the oracle %" PRIu64 "\n", text, checked->executions,
           by_axioms->executions);
    if (expected != NULL) {
        litmus_print_difference("known", expected, "oracle", by_axioms);
        litmus_print_difference("known", expected, "checker", checked);
    }
    litmus_print_difference("oracle", by_axioms, "checker", checked);
}

static void it_is_as_known(void **state)
{
    const known *k = *state;
    litmus_program program;
    litmus_outcomes expected = {0}, checked, by_axioms;
    litmus_parse(&program, k->program);
    expand_all(&expected, k->allowed, false);
    expand_all(&expected, k->but_not, true);
    oracle_explore(&program, &by_axioms);
    assert_true(litmus_explore(&program, &checked));
    if (!is_same(&checked, &by_axioms) || !litmus_same_outcomes(&checked, &expected)) {
        say_how(k->program, &expected, &checked, &by_axioms);
        fail();
    }
    litmus_free_outcomes(&expected);
    litmus_free_outcomes(&checked);
    litmus_free_outcomes(&by_axioms);
}

/* The same with its threads in the `number`-th permutation; false if there are fewer. */
static bool rearrange(const litmus_program *program, uint32_t number, litmus_program *other)
{
    uint32_t left[LITMUS_THREADS] = {0, 1, 2, 3};
    *other = *program;
    for (uint32_t t = 0; t < program->threads; t++) {
        uint32_t count = program->threads - t, i = number % count, from = left[i];
        number /= count;
        memmove(&left[i], &left[i + 1], (LITMUS_THREADS - 1 - i) * sizeof *left);
        other->counts[t] = program->counts[from];
        memcpy(other->ops[t], program->ops[from], sizeof other->ops[t]);
    }
    return number == 0;
}

/*
 * The checker adds events thread by thread, so the revisits depend on the order of the threads; the
 * results do not.
 */
static void the_order_of_the_threads_does_not_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < KNOWN; i++) {
        litmus_program program, other;
        litmus_parse(&program, table[i].program);
        for (uint32_t number = 1; rearrange(&program, number, &other); number++) {
            litmus_outcomes checked, by_axioms;
            oracle_explore(&other, &by_axioms);
            assert_true(litmus_explore(&other, &checked));
            if (!is_same(&checked, &by_axioms)) {
                char text[512];
                litmus_print(&other, text, sizeof text);
                say_how(text, NULL, &checked, &by_axioms);
                fail();
            }
            litmus_free_outcomes(&checked);
            litmus_free_outcomes(&by_axioms);
        }
    }
}

static bool is_light_enough(const litmus_program *program)
{
    for (uint32_t t = 0; t < program->threads; t++) {
        for (uint32_t i = 0; i < program->counts[t]; i++) {
            if (program->ops[t][i].kind == LITMUS_FENCE && program->ops[t][i].order == LITMUS_HEAVY)
                return false;
        }
    }
    return true;
}

static void expect_the_same(const litmus_program *program, const litmus_outcomes *without,
                            uint32_t thread, uint32_t index, litmus_sprinkle what)
{
    litmus_sprinkled sprinkled = {0};
    litmus_outcomes with;
    if ((what == LITMUS_LIGHT_FENCE && !is_light_enough(program)) ||
        (what == LITMUS_SLEEP && program->spurious != 0))
        return;
    sprinkled.before[thread][index] = what;
    assert_true(litmus_explore_sprinkled(program, &sprinkled, &with));
    uint64_t times = what == LITMUS_CHOICE ? 2 : 1;
    if (!litmus_same_outcomes(&with, without) || with.executions != times * without->executions) {
        char text[512];
        litmus_print(program, text, sizeof text);
        printf("# %s\n# with %s before thread %u's operation %u\n", text,
               litmus_sprinkle_name(what), thread, index);
        litmus_print_difference("sprinkled", &with, "plain", without);
        fail();
    }
    litmus_free_outcomes(&with);
}

/*
 * A choice, a relaxed fence, a light one without heavy ones, a sleep, a wake: each before each
 * operation.
 */
static void what_orders_nothing_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < KNOWN; i++) {
        litmus_program program;
        litmus_outcomes without;
        litmus_parse(&program, table[i].program);
        assert_true(litmus_explore(&program, &without));
        for (uint32_t t = 0; t < program.threads; t++) {
            for (uint32_t k = 0; k <= program.counts[t]; k++) {
                for (int what = LITMUS_CHOICE; what < LITMUS_SPRINKLES; what++)
                    expect_the_same(&program, &without, t, k, (litmus_sprinkle)what);
            }
        }
        litmus_free_outcomes(&without);
    }
}

static void show(const char *name, const litmus_outcomes *outcomes)
{
    printf("%s: %" PRIu64 " executions:", name, outcomes->executions);
    for (size_t i = 0; i < outcomes->count; i++)
        printf("%s %s", i != 0 ? "," : "", outcomes->texts[i]);
    puts("");
}

static int show_one(const char *text)
{
    litmus_program program;
    litmus_outcomes checked, by_axioms;
    litmus_parse(&program, text);
    oracle_explore(&program, &by_axioms);
    litmus_explore(&program, &checked);
    show("checker", &checked);
    show("oracle", &by_axioms);
    return !is_same(&checked, &by_axioms);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[KNOWN + 2];
    if (argc > 1)
        return show_one(argv[1]);
    for (size_t i = 0; i < KNOWN; i++)
        tests[i] =
            (struct CMUnitTest){table[i].name, it_is_as_known, NULL, NULL, (void *)&table[i]};
    tests[KNOWN] = (struct CMUnitTest)cmocka_unit_test(the_order_of_the_threads_does_not_matter);
    tests[KNOWN + 1] = (struct CMUnitTest)cmocka_unit_test(what_orders_nothing_changes_nothing);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
