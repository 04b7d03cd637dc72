/*
 * The resume loop, waking, the inline scheduler, and the reports of misuse by coroutines.
 *
 * Each call of bide_resume keeps a queue of operations that ended under the inline scheduler while
 * it runs; `innermost` is the queue of the innermost call on this thread. Only this thread touches
 * it, so nothing here is atomic. Any thread may wake; it posts to the frame's scheduler.
 *
 *     no loop on this thread:  a post starts one and returns when the queue is empty
 *     a loop runs:             a post appends; the loop takes it up when its frame has suspended,
 *                              or is about to block the thread (bide_run_queued_)
 */
#include "bide/frame.h"

#include "blocked_thread.h"
#include "chain_cursor.h"
#include "flights.h"
#include "internal.h"
#include "observe.h"

#include "bide/coroutine.h"
#include "bide/stop.h"
#include "bide/detail/this_thread.h"

typedef struct inline_queue {
    bide_awaiter_chain ready;
    bide_awaiter *passed; /* before `ready`: chain_cursor.h */
    struct inline_queue *outer;
    bool is_spent; /* a coroutine here has spent a budget: one of an outer loop yields next */
    /* Of the outermost, for the budget of the turn (budget_continues): */
    bool has_portions; /* it has had a second one */
    bool is_untimed;   /* it has none */
#if BIDE_REPORTS_BLOCKED_
    const bide_frame *frame; /* that this loop has resumed; NULL: none */
#endif
} inline_queue;

static BIDE_THREAD_LOCAL inline_queue *innermost;

#if !BIDE_CHECK
BIDE_THREAD_LOCAL uint32_t bide_this_thread_word_;
#endif

#if BIDE_OBSERVED
bide_atomic(const bide_observer_ *) bide_observing_;
bide_atomic(bide_describe_operation_ *) bide_describe_operation;
#endif

void bide_misused_(const char *what, const bide_point *point)
{
    bide_platform.misuse(what, point->code != NULL ? point->code->name : "(a finished coroutine)",
                         point->code != NULL ? point->code->file : __FILE__, point->line);
}

/* A message; text that does not fit is left out. */
typedef struct message {
    char text[512];
    size_t length;
} message;

static void message_append(message *to, const char *text)
{
    while (*text != '\0' && to->length < sizeof to->text - 1)
        to->text[to->length++] = *text++;
    to->text[to->length] = '\0';
}

static void message_append_number(message *to, unsigned number)
{
    char digits[3 * sizeof number + 1];
    size_t begin = sizeof digits - 1;
    digits[begin] = '\0';
    do {
        digits[--begin] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    message_append(to, digits + begin);
}

/* The text behind a prefix; NULL if there is another prefix. */
static const char *text_behind(const char *text, const char *prefix, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] != prefix[i])
            return NULL;
    }
    return text + length;
}

/* Whether a body is the library's own: its file is in one of the library's directories. */
static bool is_the_librarys(const bide_coroutine_code *code)
{
    static const char this_file[] = __FILE__;
    static const char in_directory[] = "coroutine/frame.c";
    static const char directories[][12] = {"http/", "http2/", "io/",        "net/",     "queue/",
                                           "sync/", "tls/",   "websocket/", "schedule/"};
    const size_t length = sizeof this_file - 1;
    if (code->file == NULL)
        return false;
    if (length < sizeof in_directory - 1) /* in one file */
        return text_behind(code->file, this_file, sizeof this_file) != NULL;
    const char *rest = text_behind(code->file, this_file, sizeof this_file - sizeof in_directory);
    for (size_t i = 0; rest != NULL && i < sizeof directories / sizeof *directories; i++) {
        size_t length_of_it = 0;
        while (directories[i][length_of_it] != '\0')
            length_of_it++;
        if (text_behind(rest, directories[i], length_of_it) != NULL)
            return true;
    }
    return false;
}

const bide_point *bide_body_of_(const bide_frame *frame)
{
    const bide_point *librarys = NULL;
    for (; frame != NULL; frame = bide_continuation_(frame)) {
        const bide_point *point = bide_frame_point(frame);
        if (bide_point_is_users_(point)) {
            if (!is_the_librarys(point->code))
                return point;
            if (librarys == NULL)
                librarys = point;
        }
        if (point->state != BIDE_AT_AWAIT)
            break;
    }
    return librarys;
}

/*
 * Whether it can be the address of a constant table. Uninitialised memory is usually zero, or a small
 * number.
 */
static bool may_be_table(const void *table)
{
    return (uintptr_t)table >= 4096 && (uintptr_t)table % sizeof(void *) == 0;
}

/*
 * No coroutine that anybody has written waits: reports where the operation was given to the root or the
 * branch, if that is known. Otherwise returns.
 */
static void tell_without_body(const char *what, const bide_frame *frame)
{
#if BIDE_FLIGHTS_
    bide_flight_ given;
    for (; frame != NULL && bide_frame_point(frame)->state == BIDE_AT_AWAIT;
         frame = bide_continuation_(frame)) {
        const bide_awaiter *awaiter = frame->awaiter.link;
        if (awaiter != NULL && bide_flights_find_(awaiter, frame, &given)) {
            const char *name = bide_awaiter_is_frame(awaiter) ? NULL : awaiter->ops->name;
            bide_platform.misuse(what, name != NULL ? name : "(a task)", given.place, given.line);
        }
    }
#else
    (void)what, (void)frame;
#endif
}

void bide_misused_by_(const char *what, const bide_frame *frame, const bide_point *about)
{
    const bide_point *body = bide_body_of_(frame);
    message said = {.length = 0};
    if (body == NULL) {
        const bide_point *point = about != NULL ? about : bide_frame_point(frame);
        const bide_awaiter *awaiter = frame->awaiter.link;
        if (about == NULL)
            tell_without_body(what, frame);
        if (about == NULL && point->state == BIDE_AT_AWAIT && awaiter != NULL &&
            may_be_table(awaiter->ops) && awaiter->ops->name != NULL)
            bide_platform.misuse(what, awaiter->ops->name, point->code->file, point->line);
        else
            bide_misused_(what, point);
        return;
    }
    message_append(&said, what);
    if (about != NULL && about->code != NULL) {
        message_append(&said, ": ");
        message_append(&said, about->code->name);
        message_append(&said, " (");
        message_append(&said, about->code->file);
        message_append(&said, ":");
        message_append_number(&said, about->line);
        message_append(&said, ")");
    }
    bide_platform.misuse(said.text, body->code->name, body->code->file, body->line);
}

static void message_append_words(message *to, const char *const *words)
{
    while (*words != NULL)
        message_append(to, *words++);
}

void bide_misuse_in_words_(const char *const *words, const char *function, const char *file,
                           unsigned line)
{
    message said = {.length = 0};
    message_append_words(&said, words);
    bide_misuse_(said.text, function, file, line);
}

void bide_misused_with_(const char *const *words, const bide_frame *frame, const char *function)
{
    const bide_point *body = bide_body_of_(frame);
    message said = {.length = 0};
    message_append_words(&said, words);
    if (body != NULL)
        bide_platform.misuse(said.text, body->code->name, body->code->file, body->line);
    else
        bide_platform.misuse(said.text, function, __FILE__, __LINE__);
}

void bide_misused_behind_(const char *what, const bide_frame *running)
{
    const bide_frame *frame = bide_continuation_(running);
    bide_misused_by_(what, frame != NULL ? frame : running, NULL);
}

#if BIDE_FLIGHTS_

/* Appends where an entry's operation was first used, if that is known. */
static void append_place(message *to, const bide_flight_ *flight)
{
    const bide_point *point = flight->line == 0 ? flight->place : NULL;
    if (flight->place == NULL)
        return;
    message_append(to, ", first used ");
    if (point != NULL) {
        message_append(to, "by ");
        message_append(to, point->code->name);
        message_append(to, " ");
    }
    message_append(to, "(");
    message_append(to, point != NULL ? point->code->file : flight->place);
    message_append(to, ":");
    message_append_number(to, point != NULL ? point->line : flight->line);
    message_append(to, ")");
}

/* Reports misuse where an entry's operation was first used. */
static void tell_at(const char *what, const char *where, const bide_flight_ *flight)
{
    const bide_point *point = flight->line == 0 ? flight->place : NULL;
    if (point != NULL)
        bide_misused_(what, point);
    else
        bide_platform.misuse(what, where, flight->place, flight->line);
}

/* What is said of an operation that is in flight for another. */
static void describe_flight(message *to, const bide_awaiter *awaiter, const bide_flight_ *other)
{
    bool is_frame = bide_awaiter_is_frame(awaiter);
    const char *name =
        is_frame ? bide_point_name_(bide_frame_point((const void *)awaiter)) : awaiter->ops->name;
    message_append(to, is_frame ? "a coroutine is awaited again before it has ended"
                                : "an operation is used again while it waits");
    if (name != NULL) {
        message_append(to, ": ");
        message_append(to, name);
    }
    append_place(to, other);
}

void bide_flights_begin_(const bide_awaiter *awaiter, const bide_frame *frame, const bide_frame *by)
{
    bide_stop_source *stop = awaiter->ops->cancel != NULL ? frame->context->stop : NULL;
    bide_flight_ other;
    bide_flight_ flight = {
        .address = awaiter,
        .owner = frame,
        .gate = stop != NULL ? &stop->gate : NULL,
        .place = bide_body_of_(by),
    };
    if (BIDE_UNLIKELY(awaiter->ops->suspend == bide_frame_started_))
        return; /* which reports it */
    if (BIDE_LIKELY(bide_flights_add_(&flight, awaiter, &other)))
        return;
    message said = {.length = 0};
    describe_flight(&said, awaiter, &other);
    if (bide_body_of_(by) != NULL || other.place == NULL)
        bide_misused_by_(said.text, by, NULL);
    else /* no user's function waits: it is known where it was used first */
        tell_at(said.text, "(awaited without a coroutine)", &other);
}

void bide_flights_attach_(const bide_awaiter *awaiter, const bide_frame *frame,
                          const char *function, const char *file, unsigned line)
{
    bide_flight_ other;
    bide_flight_ flight = {.address = awaiter, .owner = frame, .place = file, .line = line};
    if (BIDE_LIKELY(bide_flights_add_(&flight, awaiter, &other)))
        return;
    message said = {.length = 0};
    describe_flight(&said, awaiter, &other);
    bide_misuse_(said.text, function, file, line);
}

#else

/* (called by other files, which may be debug builds) */
void bide_flights_begin_(const bide_awaiter *awaiter, const bide_frame *frame, const bide_frame *by)
{
    (void)awaiter, (void)frame, (void)by;
}

#endif

bide_frame *bide_frame_started_(bide_awaiter *awaiter, bide_frame *frame)
{
    const bide_point *point = bide_frame_point((bide_frame *)(void *)awaiter);
    bide_misused_by_(point->state == BIDE_AT_END
                         ? "a coroutine was awaited that had ended already"
                         : "a coroutine was awaited that had started already",
                     frame, point);
    return NULL;
}

static const char *what_is_wrong_with(const bide_awaiter *awaiter)
{
    if (awaiter == NULL)
        return "NULL is awaited";
    return may_be_table(awaiter->ops) ? NULL : "what is awaited was never initialised";
}

void bide_check_given_(const bide_awaiter *awaiter, const char *function, const char *file,
                       unsigned line)
{
    const char *what = what_is_wrong_with(awaiter);
    if (BIDE_UNLIKELY(what != NULL))
        bide_misuse_(what, function, file, line);
}

/* ---- Sizes of frames ---- */

/* 0: not known. */
static size_t frame_size_of(const bide_point *body)
{
    const bide_coroutine_code *code = body->code;
    if (code->finished == &bide_point_sized_)
        return (size_t)code->step(NULL, BIDE_ASK_SIZE_).frame;
    return code->finished != NULL ? (size_t)code->finished->number : 0;
}

static BIDE_COLD void report_small_frame(const bide_point *body, const char *function,
                                         const char *file, unsigned line)
{
    const char *const words[] = {"a frame is smaller than the struct of its body ",
                                 body->code->name, NULL};
    bide_misuse_in_words_(words, function, file, line);
}

void bide_check_frame_size_(const bide_point *body, size_t size, const char *function,
                            const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(size < frame_size_of(body)))
        report_small_frame(body, function, file, line);
}

/* A frame inside that of the coroutine that awaits it must not reach beyond it. */
void bide_check_frame_inside_(const bide_frame *frame, const bide_point *finished, size_t size)
{
    const bide_coroutine_type *type = *finished->code->type;
    const bide_frame *parent = frame->awaiter.frame;
    if (type->final_suspend != NULL || parent == NULL) /* (then that need not be its parent) */
        return;
    const bide_point *point = bide_frame_point(parent);
    if (point->state != BIDE_AT_AWAIT)
        return;
    uintptr_t offset = (uintptr_t)frame - (uintptr_t)parent;
    size_t all = frame_size_of(point);
    if (BIDE_UNLIKELY(offset < all && all - offset < size))
        report_small_frame(finished, point->code->name, point->code->file, point->line);
}

/*
 * Whether an address is between the C frame of this function's caller and `top`. Stacks grow in either
 * direction.
 */
static bool is_local(const void *address, const void *below, const void *top)
{
    uintptr_t low = (uintptr_t)below < (uintptr_t)top ? (uintptr_t)below : (uintptr_t)top;
    uintptr_t high = (uintptr_t)below < (uintptr_t)top ? (uintptr_t)top : (uintptr_t)below;
    return (uintptr_t)address >= low && (uintptr_t)address < high;
}

/*
 * The frame may be on a stack itself, that of the function that waits for it. If its step was inlined
 * there, its awaiter is in the same C frame, as the frame is.
 */
BIDE_NOINLINE void bide_check_awaited_(const bide_frame *frame, const bide_awaiter *awaiter,
                                       const bide_point *here, const void *top)
{
#if defined __GNUC__
    /* (a sanitizer may put variables elsewhere) */
    const void *below = __builtin_frame_address(0);
#else
    char variable = 0; /* only its address is used */
    const void *below = &variable;
#endif
    const char *what;
    if (top != NULL && is_local(awaiter, below, top) && !is_local(frame, below, top))
        what = "what is awaited is a local variable of the body";
    else
        what = what_is_wrong_with(awaiter);
    if (BIDE_LIKELY(what == NULL))
        return;
    if (here != NULL)
        bide_misused_(what, here);
    else
        bide_misused_by_(what, frame, NULL);
}

void bide_check_time_(const bide_frame *frame, uint64_t time)
{
    if (BIDE_UNLIKELY(bide_is_duration_(frame->context->scheduler, time)))
        bide_misused_by_(BIDE_IS_DURATION_, frame, NULL);
}

/* Only its address is used, except by inspection (inspect.h). */
static const bide_awaiter_ops running_ops = {
    .name = "running",
};
bide_awaiter bide_running_ = {&running_ops, NULL, NULL};

static bool may_be_resumed(const bide_frame *frame)
{
    const bide_point *point = bide_frame_point(frame);
#if BIDE_DEBUG
    if (BIDE_UNLIKELY(!may_be_table(point))) {
        bide_platform.misuse("a coroutine is resumed that was never initialised", "bide_resume",
                             __FILE__, __LINE__);
        return false;
    }
#endif
    if (BIDE_UNLIKELY(point->state == BIDE_AT_END)) {
        bide_misused_("a finished coroutine was resumed", point);
        return false;
    }
#if BIDE_DEBUG
    if (BIDE_UNLIKELY(point->state == BIDE_AT_AWAIT && frame->awaiter.link == &bide_running_)) {
        bide_misused_("a running coroutine was resumed", point);
        return false;
    }
#endif
    return true;
}

void bide_frame_unhandled_(const bide_context *context, const bide_coroutine_code *code, int error)
{
    if (context != NULL && context->on_unhandled_error != NULL)
        context->on_unhandled_error(context, code, error);
}

void bide_await_forbidden_(const bide_coroutine_code *code, unsigned line)
{
    bide_platform.misuse("this kind of coroutine may not await", code->name, code->file, line);
}

void bide_yield_forbidden_(const bide_coroutine_code *code, unsigned line)
{
    bide_platform.misuse("this kind of coroutine does not yield", code->name, code->file, line);
}

bide_awaiter *bide_await_forbidden(bide_frame *frame, bide_awaiter *awaiter)
{
    bide_misused_("this kind of coroutine may not await", bide_frame_point(frame));
    return awaiter;
}

/* ---- Yielding: detail/yield_budget.h ---- */

#if BIDE_BUDGET > 0
BIDE_THREAD_LOCAL int32_t bide_budget_ = BIDE_BUDGET - 1;
#else
BIDE_THREAD_LOCAL int32_t bide_budget_ = 0;
#endif
int32_t bide_budget_full_ = BIDE_BUDGET > 0 ? BIDE_BUDGET - 1 : 0;

/* As the timers (inline_timers.c). */
__attribute__((weak)) void bide_look_at_clock_(void);

void bide_yield_inline_(void)
{
    if (bide_look_at_clock_ != NULL)
        bide_look_at_clock_();
}

BIDE_STATIC_ASSERT(_Alignof(bide_frame) >= 4, "a frame's address has room for the mark");

/*
 * The budget of a turn is a number of operations, and a time. It is handed out in portions, and the clock is
 * read when one is spent:
 *
 *     bide_resume    a first portion, whose time is not measured
 *     spent          another portion, if the turn has time left and operations (budget_continues); or it yields
 *
 * 1. The length of an operation is known from the portions before: `first` is about as many as take a quarter
 *    of the time, by the slowest portion of late. It shrinks at once, and grows by an eighth for each portion that is short.
 * 2. In a turn the portions grow fourfold while they take little time. A turn of a whole budget of operations
 *    that take some nanoseconds reads the clock once in BIDE_BUDGET_PORTION_.
 * 3. So a turn ends within BIDE_BUDGET_TIME_ if its operations take as long as those of late. If they suddenly
 *    take longer, one portion is too long: at most BIDE_BUDGET_FIRST_ operations from a turn's begin, and
 *    BIDE_BUDGET_PORTION_ later.
 *
 * Not in portions, but as a number of operations only: the budget that a test loop has drawn, in whose turns the
 * clock is not read; that of a test; and that of a coroutine which was just asked to stop: it cleans up.
 */
#if BIDE_BUDGET > 2 * BIDE_BUDGET_PORTION_
#define BUDGET_IS_TIMED 1
static BIDE_THREAD_LOCAL struct {
    int32_t first; /* the first portion of a turn */
    int32_t
        rest; /* operations that are left for other portions, if the turn has had a second one */
    int32_t portion; /* the current one; 0: the first, whose begin was not measured */
    uint64_t begin;  /* of the second portion */
    uint64_t last;   /* begin of the current one */
} budget_here = {.first = BIDE_BUDGET_FIRST_};
#else
#define BUDGET_IS_TIMED 0
#endif

/* 0 to 15: yields do not fall on the same operation of a loop for ever. That one may be sheltered from a request, and the
 * others not. */
static int32_t budget_noise(void)
{
    static BIDE_THREAD_LOCAL uint32_t noise;
    noise = noise * 1664525 + 1013904223;
    return (int32_t)(noise >> 28);
}

static int32_t budget_full(void)
{
    int32_t full = bide_budget_full_;
    return full > 15 ? full - budget_noise() : full;
}

#if BIDE_BUDGET > 0
/* The budget of a turn that begins. */
BIDE_INLINE void budget_begin(void)
{
#if BUDGET_IS_TIMED
    int32_t first = budget_here.first;
    bide_budget_ = first < bide_budget_full_ ? first : bide_budget_full_;
#else
    bide_budget_ = bide_budget_full_;
#endif
}
#endif

#if BUDGET_IS_TIMED
/* The outermost queue of the thread, if the turn has portions; or NULL. */
static inline_queue *budget_turn(void)
{
    inline_queue *turn = innermost;
    while (turn != NULL && !turn->is_untimed && turn->outer != NULL)
        turn = turn->outer;
    return turn != NULL && !turn->is_untimed && bide_budget_full_ == BIDE_BUDGET - 1 ? turn : NULL;
}

static void budget_set_rest(inline_queue *turn, int32_t rest)
{
    turn->has_portions = true;
    budget_here.rest = rest;
    budget_here.portion = 0;
}
#endif

/* A budget again, within a turn; `is_told`: for a coroutine that was told that it is asked to stop. */
static void refill_budget(bool is_told)
{
    int32_t full = budget_full();
    bide_budget_ = full;
    (void)is_told;
#if BUDGET_IS_TIMED
    inline_queue *turn = budget_turn();
    if (turn == NULL)
        return;
    if (!is_told)
        bide_budget_ = budget_here.first;
    budget_set_rest(turn, full - bide_budget_);
#endif
}

/* The next await yields. */
static void spend_budget(void)
{
#if BUDGET_IS_TIMED
    inline_queue *turn = budget_turn();
    if (turn != NULL)
        budget_set_rest(turn, 0);
#endif
    bide_budget_ = 0;
}

/* Another portion, after one is spent. False: it was the last. */
static bool budget_continues(void)
{
#if BUDGET_IS_TIMED
    enum { SHARE = BIDE_BUDGET_TIME_ / 4 };
    inline_queue *turn = budget_turn();
    if (turn == NULL)
        return false;
    if (!turn->has_portions)
        budget_set_rest(turn, BIDE_BUDGET - 1 - budget_here.first);
    if (bide_budget_ < -1) /* an operation that costs more than one has overdrawn the portion */
        budget_here.rest += bide_budget_ + 1;
    if (budget_here.rest <= 0)
        return false;
    uint64_t now = bide_platform.now();
    int32_t portion = budget_here.portion;
    if (portion == 0) {
        portion = budget_here.first;
        budget_here.begin = now;
    } else {
        uint64_t time = now - budget_here.last;
        if (time > SHARE) {
            for (; time > SHARE && portion > 1; time /= 2)
                portion /= 2;
            if (portion < budget_here.first)
                budget_here.first = portion;
        } else {
            budget_here.first += (budget_here.first + 7) / 8;
            if (budget_here.first > BIDE_BUDGET_FIRST_)
                budget_here.first = BIDE_BUDGET_FIRST_;
            if (time < SHARE / 4)
                portion = portion < BIDE_BUDGET_PORTION_ / 4 ? 4 * portion : BIDE_BUDGET_PORTION_;
        }
        if (now - budget_here.begin > BIDE_BUDGET_TIME_ - 2 * SHARE) {
            budget_here.rest = 0;
            return false;
        }
    }
    if (portion > budget_here.rest)
        portion = budget_here.rest;
    budget_here.portion = portion - budget_noise() % portion;
    budget_here.rest -= budget_here.portion;
    budget_here.last = now;
    bide_budget_ = budget_here.portion - 1; /* one is this operation */
    return true;
#else
    return false;
#endif
}

/* The next await looks at the source, if the coroutine was asked to stop and has not been told. */
static void look_at_next_await(const bide_frame *frame, bide_yields_ how)
{
    if (how != BIDE_YIELDS_TOLD_ && bide_stop_requested(frame->context->stop))
        spend_budget();
}

bool bide_yield_budget_(bide_frame *frame, bide_awaiter *awaiter, const bide_point *here,
                        bide_yields_ how)
{
    bide_scheduler *scheduler = frame->context->scheduler;
    if (budget_continues())
        return false;
    refill_budget(how == BIDE_YIELDS_TOLD_);
    if (scheduler == &bide_inline_scheduler) {
        if (innermost != NULL)
            innermost->is_spent = true;
        bide_yield_inline_();
        look_at_next_await(frame, how);
        return false;
    }
    if (how != BIDE_YIELDS_SUSPENDED_) {
        if (awaiter->ops->withdraw == NULL) { /* it may be a constant */
            spend_budget();
            return false;
        }
        frame->awaiter.ops = &here->ops;
        frame->awaiter.link = awaiter;
        awaiter->frame = (bide_frame *)(void *)((char *)frame + how);
    } else if (frame->awaiter.ops != &here->ops || frame->awaiter.link != awaiter) {
        return false; /* it has moved on meanwhile: its loop must resume it (bide_suspend_) */
    }
    bide_post_last_(scheduler, awaiter);
    return true;
}

/* Whether the operation has ended without suspending, and how. */
static bool had_in_spent(bide_frame *frame, bide_awaiter *awaiter, bide_yields_ *how)
{
    bide_stop_source *source = frame->context->stop;
    bool is_told = bide_stop_requested(source) && bide_stop_cut_(awaiter, source);
    *how = is_told ? BIDE_YIELDS_TOLD_ : BIDE_YIELDS_READY_;
    if (bide_awaiter_had(awaiter))
        return true;
    spend_budget(); /* what it runs is to look, too */
    return false;
}

bool bide_await_spent_(bide_frame *frame, bide_awaiter *awaiter, const bide_point *here,
                       bide_frame **next)
{
    bide_yields_ how;
    *next = NULL;
    if (budget_continues())
        return !bide_awaiter_had(awaiter) &&
               bide_suspend_(frame, awaiter, awaiter->ops, here, 0, next);
    if (had_in_spent(frame, awaiter, &how))
        return bide_yield_budget_(frame, awaiter, here, how);
    return bide_suspend_(frame, awaiter, awaiter->ops, here, 0, next);
}

bide_frame *bide_frame_await_spent_(bide_frame *frame, bide_awaiter *awaiter, const bide_frame *by)
{
    bide_yields_ how;
    frame->awaiter.link = awaiter;
    if (budget_continues())
        return bide_awaiter_had(awaiter) ? frame : bide_frame_await_unready_(frame, awaiter, by);
    if (!had_in_spent(frame, awaiter, &how))
        return bide_frame_await_unready_(frame, awaiter, by);
    return bide_yield_budget_(frame, awaiter, bide_frame_point(frame), how) ? NULL : frame;
}

bide_frame *bide_frame_await_in_turn_(bide_frame *frame, bide_awaiter *awaiter,
                                      const bide_frame *by)
{
    if (BIDE_UNLIKELY(bide_stop_requested(frame->context->stop))) {
        if (BIDE_BUDGET > 0)
            spend_budget(); /* the await looks, or the first one in what is awaited */
        else
            bide_stop_cut_(awaiter, frame->context->stop);
    }
    return bide_frame_await_by_(frame, awaiter, by);
}

/* It yielded: it continues, and its operation is again marked as ready (bide_awaiter_had). */
static BIDE_NOINLINE bide_frame *frame_unmark_yielded(bide_frame *marked)
{
    bide_yields_ how = (bide_yields_)((uintptr_t)marked & BIDE_YIELDS_TOLD_);
    bide_frame *frame = (bide_frame *)(void *)((char *)marked - how);
    frame->awaiter.link->frame = NULL;
    if (frame->context->scheduler->environment == NULL) /* a test loop draws the budget */
        refill_budget(how == BIDE_YIELDS_TOLD_);
    look_at_next_await(frame, how);
    return frame;
}

/* The frame of a posted operation, without the mark of a frame that yielded. */
BIDE_INLINE bide_frame *posted_frame(bide_frame *frame)
{
    return BIDE_UNLIKELY(((uintptr_t)frame & 1) != 0) ? frame_unmark_yielded(frame) : frame;
}

BIDE_INLINE bide_awaiter *inline_take(inline_queue *queue)
{
    if (BIDE_UNLIKELY(queue->passed != NULL))
        bide_chain_rewind_(&queue->ready, &queue->passed);
    return bide_awaiter_chain_take(&queue->ready);
}

/* Runs `frame`, and then the operations of the queue. */
static void inline_run(bide_frame *frame, inline_queue *queue)
{
    for (;;) {
#if BIDE_OBSERVED
        const bide_observer_ *observer = frame != NULL ? BIDE_OBSERVER_() : NULL;
        if (BIDE_UNLIKELY(observer != NULL))
            observer->turn(frame);
#endif
        while (frame != NULL) {
            if (!may_be_resumed(frame))
                break; /* if misuse returns, which it should not */
#if BIDE_REPORTS_BLOCKED_
            queue->frame = frame;
#endif
            frame = bide_frame_step(frame, BIDE_DIRECT_DEPTH);
        }
#if BIDE_REPORTS_BLOCKED_
        queue->frame = NULL;
#endif
#if BIDE_OBSERVED
        if (BIDE_UNLIKELY(observer != NULL))
            observer->turn_ends();
#endif
        bide_awaiter *awaiter = inline_take(queue);
        if (awaiter == NULL)
            break;
        if (queue->ready.first != NULL)
            bide_awaiter_prefetch(queue->ready.first); /* while this one runs */
        frame = posted_frame(awaiter->frame);
    }
    bide_assert(innermost == queue); /* inner loops have ended */
    innermost = queue->outer;
    if (BIDE_UNLIKELY(queue->is_spent) && innermost != NULL)
        spend_budget();
}

static BIDE_NOINLINE void frame_resume(bide_frame *frame)
{
    inline_queue queue = {.ready = {NULL, NULL}, .outer = innermost};
    innermost = &queue;
    inline_run(posted_frame(frame), &queue);
}

void bide_resume_with_what_is_left_(bide_frame *frame)
{
    inline_queue queue = {.ready = {NULL, NULL}, .outer = innermost, .is_untimed = true};
    innermost = &queue;
    inline_run(posted_frame(frame), &queue);
}

void bide_resume(bide_frame *frame)
{
#if BIDE_BUDGET > 0
    if (innermost == NULL) /* a turn of a scheduler's */
        budget_begin();
#endif
    frame_resume(frame);
}

void bide_run_on_(bide_frame *frame)
{
    frame = posted_frame(frame);
#if BIDE_REPORTS_BLOCKED_
    inline_queue *queue = innermost;
    const bide_frame *outer = queue->frame;
#endif
    while (frame != NULL && may_be_resumed(frame)) {
#if BIDE_REPORTS_BLOCKED_
        queue->frame = frame;
#endif
        frame = bide_frame_step(frame, BIDE_DIRECT_DEPTH);
    }
#if BIDE_REPORTS_BLOCKED_
    queue->frame = outer;
#endif
}

#if BIDE_REPORTS_BLOCKED_
BIDE_THREAD_LOCAL bide_runs_here_ bide_runs_on_this_thread_;

static const bide_frame *running_frame(void)
{
    const bide_frame *frame = NULL;
    for (inline_queue *queue = innermost; queue != NULL && frame == NULL; queue = queue->outer)
        frame = queue->frame;
    /* Children are stepped by direct calls: the innermost one runs. */
    while (frame != NULL && frame->awaiter.link != &bide_running_) {
        const bide_frame *child = bide_awaited_coroutine_(frame);
        if (child == NULL)
            break;
        frame = child;
    }
    return frame;
}

const bide_point *bide_running_point_(void)
{
    const bide_frame *frame = running_frame();
    return frame != NULL ? bide_frame_point(frame) : NULL;
}

const bide_point *bide_running_body_(void)
{
    const bide_frame *frame = running_frame();
    if (frame == NULL)
        return NULL;
    const bide_point *point = bide_frame_point(frame);
    bool is_own = bide_point_is_users_(point) && !is_the_librarys(point->code);
    const bide_point *outer = is_own ? NULL : bide_body_of_(bide_continuation_(frame));
    return outer != NULL ? outer : point;
}
#endif

void bide_run_after_(void (*function)(bide_frame *frame), bide_frame *frame)
{
    if (innermost != NULL) {
        function(frame);
        return;
    }
    inline_queue queue = {.ready = {NULL, NULL}};
    innermost = &queue;
    function(frame);
    inline_run(NULL, &queue);
}

bool bide_run_queued_(void)
{
    inline_queue all = {.ready = {NULL, NULL}, .outer = innermost};
    /* Operations in an outer queue were posted before the inner loop began. */
    for (inline_queue *queue = innermost; queue != NULL; queue = queue->outer) {
        bide_awaiter_chain later = all.ready;
        bide_chain_rewind_(&queue->ready, &queue->passed);
        all.ready = queue->ready;
        queue->ready.first = NULL;
        if (later.first != NULL)
            bide_awaiter_chain_append(&all.ready, later.first, later.last);
    }
    if (all.ready.first == NULL)
        return false;
    innermost = &all;
    inline_run(NULL, &all);
    return true;
}

void bide_run_chain_(const bide_awaiter_chain *chain)
{
    inline_queue queue = {.ready = *chain, .outer = innermost};
    if (chain->first == NULL)
        return;
    innermost = &queue;
    inline_run(NULL, &queue);
}

static void inline_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    (void)scheduler;
    if (innermost == NULL) {
        inline_queue queue = {.ready = {first, last}};
        innermost = &queue;
        inline_run(NULL, &queue);
        return;
    }
    bide_awaiter_chain_append(&innermost->ready, first, last);
}

static bool inline_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    (void)scheduler;
    for (inline_queue *queue = innermost; queue != NULL; queue = queue->outer) {
        if (bide_chain_remove_(&queue->ready, &queue->passed, awaiter))
            return true;
    }
    return false;
}

/*
 * Its timers (inline_timers.c) exist if a keeper of time is linked: bide_sync_wait, or a system with
 * threads. Otherwise these are NULL.
 */
__attribute__((weak)) int bide_inline_set_timer_(bide_scheduler *scheduler, bide_timer *timer);
__attribute__((weak)) bool bide_inline_clear_timer_(bide_scheduler *scheduler, bide_timer *timer);

bide_scheduler bide_inline_scheduler = {
    .post = inline_post,
    .take_back = inline_take_back,
    .set_timer = bide_inline_set_timer_,
    .clear_timer = bide_inline_clear_timer_,
    .real_time = true,
};

const bide_context bide_default_context = {&bide_inline_scheduler, NULL, NULL, NULL, NULL};

/* A chain whose frames may have several schedulers. */
static BIDE_NOINLINE void wake_all(bide_awaiter *first)
{
    while (first != NULL) {
        bide_scheduler *scheduler = first->frame->context->scheduler;
        bide_awaiter *last = first;
        bide_awaiter *next;
        while ((next = last->link) != NULL && next->frame->context->scheduler == scheduler)
            last = next;
        last->link = NULL;
        scheduler->post(scheduler, first, last);
        first = next;
    }
}

void bide_wake(bide_awaiter *first)
{
    if (first == NULL)
        return;
    bide_scheduler *scheduler = first->frame->context->scheduler;
    if (first->link == NULL)
        scheduler->post(scheduler, first, first);
    else
        wake_all(first);
}

/*
 * Reverses the chain and compares the schedulers, usually all the same, in one pass.
 */
void bide_wake_reversed(bide_awaiter *newest)
{
    if (newest == NULL)
        return;
    bide_scheduler *scheduler = newest->frame->context->scheduler;
    bool alike = true;
    bide_awaiter *first = NULL;
    for (bide_awaiter *awaiter = newest; awaiter != NULL;) {
        bide_awaiter *older = awaiter->link;
        bide_awaiter_prefetch(older);
        alike = alike && awaiter->frame->context->scheduler == scheduler;
        awaiter->link = first;
        first = awaiter;
        awaiter = older;
    }
    if (alike)
        scheduler->post(scheduler, first, newest);
    else
        bide_wake(first);
}

/* Whether nothing else could run here. */
static bool is_idle(bide_scheduler *scheduler)
{
    return (innermost == NULL || innermost->ready.first == NULL) && scheduler->idle(scheduler);
}

static BIDE_NOINLINE bool look_until_idle_ends(bide_awaiter *awaiter, bide_scheduler *scheduler)
{
    uint32_t patience = bide_atomic_load(&scheduler->patience, relaxed);
    bool ended = false;
    for (uint32_t i = 0; i < patience && !ended; i++) {
        if (i != 0 && !is_idle(scheduler))
            return false;
        bide_cpu_relax();
        ended = bide_awaiter_ready(awaiter, awaiter->ops);
    }
    /* Poll for longer next time if polling paid, and for less otherwise. */
    if (ended && patience < BIDE_PATIENCE_MAX)
        bide_atomic_store(&scheduler->patience, patience * 2, relaxed);
    else if (!ended && patience > BIDE_PATIENCE_MIN)
        bide_atomic_store(&scheduler->patience, patience / 2, relaxed);
    return ended;
}

bool bide_spin_until_ready(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_scheduler *scheduler = frame->context->scheduler;
    return scheduler->idle != NULL && is_idle(scheduler) &&
           look_until_idle_ends(awaiter, scheduler);
}
