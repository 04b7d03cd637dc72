/*
 * Backtraces: the chain of awaits, with names and lines, from a suspended or a running coroutine, however long it is.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/create.h"
#include "bide/event.h"
#include "bide/inspect.h"
#include "bide/extend/root.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

/* Waits for the event at the end of a chain of tasks; records the lines at which they wait. */
struct link {
    bide_task task;
    struct link *next; /* or NULL */
    bide_event *event;
    bide_event_waiter wait;
};

enum { INNER_LINE = __LINE__ + 6, OUTER_LINE = INNER_LINE + 2 };

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    if (self->next == NULL)
        bide_await(bide_event_wait(&self->wait, self->event));
    else
        bide_await(bide_task_init(&self->next->task, &link_body));
    bide_end();
}

static void make_chain(struct link *links, size_t count, bide_event *event)
{
    bide_event_init(event, false);
    for (size_t i = 0; i < count; i++) {
        links[i].next = i + 1 < count ? &links[i + 1] : NULL;
        links[i].event = event;
    }
}

static void ignore(bide_root *root)
{
    (void)root;
}

static void a_chain_leads_outwards_to_the_root(void **state)
{
    (void)state;
    bide_event event;
    struct link links[3];
    bide_root root;
    bide_backtrace_entry entries[8];
    make_chain(links, 3, &event);
    bide_root_prepare(&root, &bide_default_context, bide_task_init(&links[0].task, &link_body),
                      ignore, false);
    bide_resume(&root.frame);

    assert_ptr_equal(bide_innermost(&root.frame), &links[2].task.frame);
    assert_ptr_equal(bide_innermost(&links[1].task.frame), &links[2].task.frame);
    assert_int_equal(bide_backtrace(&links[2].task.frame, entries, 8), 4);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(entries[i].frame, &links[2 - i].task.frame);
        assert_string_equal(entries[i].name, "link_body");
        assert_string_equal(entries[i].file, __FILE__);
        assert_string_equal(entries[i].kind, "task");
        assert_int_equal(entries[i].line, i == 0 ? INNER_LINE : OUTER_LINE);
        assert_int_equal(entries[i].state, BIDE_AT_AWAIT);
        assert_false(entries[i].running);
    }
    assert_string_equal(entries[0].waiting_for, "bide_event_wait");
    assert_null(entries[1].waiting_for);
    assert_string_equal(entries[3].name, "bide_root");
    assert_null(entries[3].kind);

    /* From the middle, it waits for a coroutine. */
    assert_int_equal(bide_backtrace(&links[1].task.frame, entries, 8), 3);
    assert_string_equal(entries[0].waiting_for, "link_body");
    bide_event_set(&event);
}

static void no_more_entries_are_written_than_there_is_room_for(void **state)
{
    (void)state;
    bide_event event;
    struct link links[3];
    bide_root root;
    bide_backtrace_entry entries[3];
    make_chain(links, 3, &event);
    bide_root_prepare(&root, &bide_default_context, bide_task_init(&links[0].task, &link_body),
                      ignore, false);
    bide_resume(&root.frame);
    entries[2].name = "untouched";
    assert_int_equal(bide_backtrace(&links[2].task.frame, entries, 2), 4);
    assert_string_equal(entries[1].name, "link_body");
    assert_string_equal(entries[2].name, "untouched");
    assert_int_equal(bide_backtrace(&links[2].task.frame, NULL, 0), 4);
    bide_event_set(&event);
}

static void what_has_not_started_or_has_ended_is_alone(void **state)
{
    (void)state;
    bide_event event;
    struct link links[2];
    bide_backtrace_entry entry;
    make_chain(links, 2, &event);
    bide_awaiter *awaiter = bide_task_init(&links[0].task, &link_body);
    bide_await_later(bide_task_init(&links[1].task, &link_body));
    links[0].task.frame.awaiter.frame = &links[1].task.frame; /* left from another life */
    assert_int_equal(bide_backtrace(&links[0].task.frame, &entry, 1), 1);
    assert_int_equal(entry.state, BIDE_AT_START);
    assert_null(entry.waiting_for);
    assert_ptr_equal(bide_innermost(&links[0].task.frame), &links[0].task.frame);

    bide_event_set(&event);
    assert_int_equal(bide_sync_wait(awaiter), 0);
    assert_int_equal(bide_backtrace(&links[1].task.frame, &entry, 1), 1);
    assert_int_equal(entry.state, BIDE_AT_END);
    assert_string_equal(entry.name, "link_body");
    assert_ptr_equal(bide_innermost(&links[0].task.frame), &links[0].task.frame);
}

/* ---- From inside ---- */

struct asking {
    bide_task task;
    bide_backtrace_entry entries[4];
    size_t count;
};

enum { ASKING_LINE = __LINE__ + 5 };

bide_coroutine(asking_body)
{
    bide_begin(asking_body, struct asking * self);
    self->count = bide_backtrace_here(self->entries, 4);
    bide_end();
}

struct asked_for {
    bide_task task;
    struct asking child;
};

bide_coroutine(asked_for_body)
{
    bide_begin(asked_for_body, struct asked_for * self);
    bide_await(bide_task_init(&self->child.task, &asking_body));
    bide_end();
}

static void a_coroutine_asks_for_its_own_chain_even_before_its_first_await(void **state)
{
    (void)state;
    struct asked_for self = {.child.count = 0};
    const bide_backtrace_entry *entries = self.child.entries;
    assert_int_equal(bide_sync_wait(bide_task_init(&self.task, &asked_for_body)), 0);
    assert_int_equal(self.child.count, 3);
    assert_ptr_equal(entries[0].frame, &self.child.task.frame);
    assert_int_equal(entries[0].line, ASKING_LINE);
    assert_true(entries[0].running);
    assert_null(entries[0].waiting_for);
    assert_string_equal(entries[1].name, "asked_for_body");
    assert_false(entries[1].running);
    assert_string_equal(entries[2].name, "bide_root");
}

/* ---- Owned frames ---- */

struct owning {
    bide_task task;
    bide_allocator *allocator;
    bide_event *event;
    struct link *child;
};

bide_coroutine(owning_body)
{
    bide_begin(owning_body, struct owning * self);
    self->child = bide_create(sizeof *self->child, &link_body, self->allocator);
    self->child->next = NULL;
    self->child->event = self->event;
    bide_await(bide_owned(self->child, &link_body));
    bide_end();
}

static void owned_frames_are_in_the_chain_both_ways(void **state)
{
    (void)state;
    BIDE_ALIGNAS(16) unsigned char memory[512];
    bide_arena arena;
    bide_event event;
    bide_root root;
    bide_backtrace_entry entries[4];
    bide_arena_init(&arena, memory, sizeof memory);
    bide_event_init(&event, false);
    struct owning self = {.allocator = &arena.allocator, .event = &event};
    bide_root_prepare(&root, &bide_default_context, bide_task_init(&self.task, &owning_body),
                      ignore, false);
    bide_resume(&root.frame);
    assert_ptr_equal(bide_innermost(&root.frame), &self.child->task.frame);
    assert_int_equal(bide_backtrace(&self.child->task.frame, entries, 4), 3);
    assert_ptr_equal(entries[1].frame, &self.task.frame);
    assert_int_equal(bide_backtrace(&self.task.frame, entries, 1), 2);
    assert_string_equal(entries[0].waiting_for, "link_body");
    bide_event_set(&event);
}

/* ---- Yields ---- */

static bide_frame *yield_nowhere(bide_frame *frame, void *value)
{
    (void)frame;
    (void)value;
    return NULL;
}

static const bide_coroutine_type yielding_type = {.name = "yielding", .yield_value = yield_nowhere};

bide_coroutine_of(yielding_type, yielding_body)
{
    bide_begin(yielding_body, bide_frame * self);
    bide_yield(self);
    bide_end();
}

/* ---- As text ---- */

struct text {
    char bytes[2048];
    size_t length;
};

static void append(void *argument, const char *bytes, size_t length)
{
    struct text *text = argument;
    assert_true(text->length + length < sizeof text->bytes);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

/* Appends an expected line. */
static void expect(struct text *text, const char *number_and_name, const char *file, unsigned line,
                   const char *rest)
{
    char digits[11] = {0};
    size_t begin = sizeof digits - 1;
    for (; line != 0; line /= 10)
        digits[--begin] = (char)('0' + line % 10);
    append(text, number_and_name, strlen(number_and_name));
    append(text, " at ", 4);
    append(text, file, strlen(file));
    append(text, ":", 1);
    append(text, digits + begin, strlen(digits + begin));
    append(text, rest, strlen(rest));
    append(text, "\n", 1);
}

static void a_chain_is_printed_a_line_a_coroutine(void **state)
{
    (void)state;
    bide_event event;
    struct link links[12];
    struct text text = {.length = 0}, expected = {.length = 0};
    make_chain(links, 12, &event);
    bide_start(&links[0].task.frame, &link_body, &bide_default_context);
    bide_resume(&links[0].task.frame);
    bide_backtrace_print(bide_innermost(&links[0].task.frame), append, &text);
    expect(&expected, "#0 link_body", __FILE__, INNER_LINE, " waiting for bide_event_wait");
    for (int i = 1; i < 12; i++) {
        char head[] = "#0 link_body", two[] = "#10 link_body";
        head[1] = (char)('0' + i);
        two[2] = (char)('0' + i - 10);
        expect(&expected, i < 10 ? head : two, __FILE__, OUTER_LINE, "");
    }
    assert_string_equal(text.bytes, expected.bytes);
    bide_event_set(&event);
}

static void a_lone_coroutine_is_printed_with_its_state(void **state)
{
    (void)state;
    bide_event event;
    struct link self;
    struct text text = {.length = 0}, expected = {.length = 0};
    bide_frame yielding;
    make_chain(&self, 1, &event);
    bide_event_set(&event);
    bide_awaiter *awaiter = bide_task_init(&self.task, &link_body);
    bide_backtrace_print(&self.task.frame, append, &text);
    expect(&expected, "#0 link_body", __FILE__, link_body.line, " not started");
    bide_sync_wait(awaiter);
    bide_backtrace_print(&self.task.frame, append, &text);
    expect(&expected, "#0 link_body", __FILE__, bide_frame_point(&self.task.frame)->line, " ended");

    bide_start(&yielding, &yielding_body, &bide_default_context);
    bide_resume(&yielding);
    bide_backtrace_print(&yielding, append, &text);
    expect(&expected, "#0 yielding_body", __FILE__, bide_frame_point(&yielding)->line, " yielded");
    bide_destroy(&yielding);
    bide_backtrace_print(&yielding, append, &text);
    expect(&expected, "#0 yielding_body", __FILE__, bide_frame_point(&yielding)->line, " ended");
    assert_string_equal(text.bytes, expected.bytes);
}

struct printing {
    bide_task task;
    struct text text;
};

enum { PRINTING_LINE = __LINE__ + 5 };

bide_coroutine(printing_body)
{
    bide_begin(printing_body, struct printing * self);
    bide_backtrace_print_here(append, &self->text);
    bide_end();
}

static void a_coroutine_prints_its_own_chain(void **state)
{
    (void)state;
    struct printing self = {.text.length = 0};
    struct text expected = {.length = 0};
    bide_sync_wait(bide_task_init(&self.task, &printing_body));
    expect(&expected, "#0 printing_body", __FILE__, PRINTING_LINE, " (running)");
    assert_true(self.text.length > expected.length);
    assert_memory_equal(self.text.bytes, expected.bytes, expected.length);
    assert_memory_equal(self.text.bytes + expected.length, "#1 bide_root at ", 16);
}

#if TESTING_HOSTED
static void count_lines(void *argument, const char *bytes, size_t length)
{
    *(size_t *)argument += length == 1 && bytes[0] == '\n';
}

static void a_long_chain_needs_no_stack(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    bide_event event;
    bide_root root;
    struct link *links = malloc(COUNT * sizeof *links);
    bide_backtrace_entry *entries = malloc((COUNT + 1) * sizeof *entries);
    size_t lines = 0;
    assert_non_null(links);
    assert_non_null(entries);
    make_chain(links, COUNT, &event);
    bide_root_prepare(&root, &bide_default_context, bide_task_init(&links[0].task, &link_body),
                      ignore, false);
    bide_resume(&root.frame);
    assert_ptr_equal(bide_innermost(&root.frame), &links[COUNT - 1].task.frame);
    assert_int_equal(bide_backtrace(&links[COUNT - 1].task.frame, entries, COUNT + 1), COUNT + 1);
    assert_ptr_equal(entries[COUNT - 1].frame, &links[0].task.frame);
    assert_ptr_equal(entries[COUNT].frame, &root.frame);
    bide_backtrace_print(&links[COUNT - 1].task.frame, count_lines, &lines);
    assert_int_equal(lines, COUNT + 1);
    bide_event_set(&event);
    free(entries);
    free(links);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_leads_outwards_to_the_root),
        cmocka_unit_test(no_more_entries_are_written_than_there_is_room_for),
        cmocka_unit_test(what_has_not_started_or_has_ended_is_alone),
        cmocka_unit_test(a_coroutine_asks_for_its_own_chain_even_before_its_first_await),
        cmocka_unit_test(owned_frames_are_in_the_chain_both_ways),
        cmocka_unit_test(a_chain_is_printed_a_line_a_coroutine),
        cmocka_unit_test(a_lone_coroutine_is_printed_with_its_state),
        cmocka_unit_test(a_coroutine_prints_its_own_chain),
#if TESTING_HOSTED
        cmocka_unit_test(a_long_chain_needs_no_stack),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
