/*
 * The two variants of a coroutine's body (BIDE_STANDARD_C in compiler.h): how a body jumps to the
 * await or the yield at which it was suspended. A part of bide/coroutine.h. Floor: coroutine.
 *
 *     0  labels as values: an await is a label. It may be anywhere, and several may share a line.
 *     1  standard C: an await is a case of the body's one switch, numbered by its line. Two awaits on
 *        a line do not compile, because of a duplicate case. Nor does an await directly inside a
 *        switch of the body's own, with gcc and clang, because its case is outside the range of an
 *        int. If a compiler accepts it, resuming there is detected as misuse.
 *
 * In both variants a yield is a case of the body's switch, so it must not be directly inside a switch
 * of the body's own. A body that only yields has no label whose address is taken, so compilers inline
 * it into the loop that uses it.
 *
 * Programs do not use the names below directly.
 */
#ifndef BIDE_DETAIL_BODY_VARIANTS_H
#define BIDE_DETAIL_BODY_VARIANTS_H

/* clang-format off */
#if !BIDE_STANDARD_C

/*
 * clang requires that a function with a computed goto takes a label's address, so one is taken and
 * dropped.
 */
#define BIDE_DISPATCH_(awaits)                                                                     \
    if (awaits) {                                                                                  \
        (void)(__extension__ &&bide_exit_);                                                        \
        if (bide_frame_point(bide_frame_)->label != NULL) {                                        \
            _Pragma("GCC diagnostic push")                                                         \
            _Pragma("GCC diagnostic ignored \"-Wpedantic\"")                                       \
            goto *bide_frame_point(bide_frame_)->label;                                            \
            _Pragma("GCC diagnostic pop")                                                          \
        }                                                                                          \
    }                                                                                              \
    if (BIDE_TYPE_->yield_value != NULL)                                                           \
        bide_part_ = bide_frame_point(bide_frame_)->number;

#define BIDE_AWAIT_(awaiter_expression, use)                                                       \
    BIDE_AWAIT_AT_(awaiter_expression, use, BIDE_NAME_(bide_resume_, __COUNTER__))
/* NOLINTBEGIN(bugprone-macro-parentheses): a label takes none */
#define BIDE_AWAIT_AT_(awaiter_expression, use, label)                                             \
    BIDE_AWAIT_STATEMENT_(awaiter_expression, use, __extension__ &&label, 0, BIDE_LABEL_, label)
/* NOLINTEND(bugprone-macro-parentheses) */
#define BIDE_LABEL_(label)            label:
#define BIDE_YIELD_(value)            BIDE_YIELD_AT_(value, __COUNTER__)
#define BIDE_YIELD_AT_(value, number) BIDE_YIELD_STATEMENT_(value, number)

#else

#define BIDE_DISPATCH_(awaits) bide_part_ = bide_frame_point(bide_frame_)->number;

#define BIDE_AWAIT_(awaiter_expression, use)                                                       \
    BIDE_AWAIT_STATEMENT_(awaiter_expression, use, NULL, BIDE_PART_AWAIT_ + __LINE__,              \
                          BIDE_NOT_IN_A_SWITCH_AND_ONE_A_LINE_, __LINE__)
#define BIDE_YIELD_(value) BIDE_YIELD_STATEMENT_(value, __LINE__)

#endif

/*
 * The case of an await or a yield. The compiler rejects a misplaced one as out of the range of an
 * int, or as a duplicate. The macro's name, which the diagnostic shows, states the reason.
 */
#define BIDE_PART_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number) (BIDE_PART_AWAIT_ + (number))
#if defined __clang__
#define BIDE_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number)                                               \
    _Pragma("GCC diagnostic push")                                                                 \
    _Pragma("GCC diagnostic error \"-Wswitch\"")                                                   \
    case BIDE_PART_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number):                                        \
    _Pragma("GCC diagnostic pop")                                                                  \
    bide_part_ = BIDE_PART_BODY_
#elif defined __GNUC__
#define BIDE_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number)                                               \
    _Pragma("GCC diagnostic push")                                                                 \
    _Pragma("GCC diagnostic error \"-Woverflow\"")                                                 \
    case BIDE_PART_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number):                                        \
    _Pragma("GCC diagnostic pop")                                                                  \
    bide_part_ = BIDE_PART_BODY_
#else
#define BIDE_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number)                                               \
    case BIDE_PART_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number): bide_part_ = BIDE_PART_BODY_
#endif

/*
 * Detects, when a body is resumed, a place that none of its cases matched. A yield's number is its
 * number in the compiled file; an await's, in standard C, is its line.
 */
#define BIDE_CHECK_PART_                                                                           \
    do {                                                                                           \
        if (BIDE_UNLIKELY(bide_part_ >= BIDE_PART_AWAIT_))                                         \
            bide_misuse_("an await or a yield stands inside a switch of the body's own",           \
                                 bide_body_.code.name, bide_body_.code.file,                       \
                                 bide_frame_point(bide_frame_)->line);                             \
    } while (0)

/* clang-format on */

#endif
