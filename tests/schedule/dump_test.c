/*
 * bide_dump: its text for suspended tasks; and that it reports nothing impossible, and does no harm, while tasks start
 * and end on other threads. With the argument "pipe", process_vm_readv is not permitted.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/barging_mutex.h"
#include "bide/create.h"
#include "bide/dump.h"
#include "bide/mutex.h"
#include "bide/run_loop.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <regex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The dump as text, to be freed by the caller. */
static char *dump(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    assert_int_equal(bide_dump(file), 0);
    fclose(file);
    assert_non_null(text);
    return text;
}

static void assert_contains(const char *text, const char *expected)
{
    if (text == NULL || strstr(text, expected) == NULL) {
        printf("# expected:\n%s# in:\n%s", expected, text != NULL ? text : "");
        fail();
    }
}

/* ---- Suspended tasks ---- */

struct inner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

enum { INNER_LINE = __LINE__ + 5 };

bide_coroutine(inner_body)
{
    bide_begin(inner_body, struct inner * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct outer {
    bide_task task;
    struct inner inner;
};

enum { OUTER_LINE = __LINE__ + 5 };

bide_coroutine(outer_body)
{
    bide_begin(outer_body, struct outer * self);
    bide_await(bide_task_init(&self->inner.task, &inner_body));
    bide_end();
}

static void a_task_that_waits_is_shown_with_its_chain(void **state)
{
    (void)state;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "somewhere"};
    bide_event event;
    bide_spawned spawned;
    char expected[1000];
    bide_event_init(&event, false);
    struct outer self = {.inner.event = &event};
    bide_spawn(&spawned, &context, bide_task_init(&self.task, &outer_body));
    snprintf(expected, sizeof expected,
             "task %p outer_body in somewhere: waiting for bide_event_wait\n"
             "  #0 inner_body at %s:%d waiting for bide_event_wait\n"
             "  #1 outer_body at %s:%d\n"
             "1 task\n",
             (void *)&spawned.root, __FILE__, INNER_LINE, __FILE__, OUTER_LINE);
    char *text = dump();
    assert_string_equal(text, expected);
    free(text);

    bide_event_set(&event);
    text = dump();
    assert_string_equal(text, "0 tasks\n");
    free(text);
}

static void a_task_that_has_not_started_is_shown_so(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_spawned spawned;
    witness task;
    char expected[200];
    bide_run_loop_init(&loop);
    bide_spawn(&spawned, &loop.context, witness_run(&task, NULL, 0));
    snprintf(expected, sizeof expected, "task %p witness_body: not started\n1 task\n",
             (void *)&spawned.root);
    char *text = dump();
    assert_string_equal(text, expected);
    free(text);
    bide_run_loop_run_ready(&loop);
}

static void an_operation_that_is_awaited_by_itself_is_shown_by_its_name(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    bide_spawned spawned;
    bide_event_init(&event, false);
    bide_spawn(&spawned, &bide_default_context, bide_event_wait(&wait, &event));
    char *text = dump();
    assert_contains(text, " bide_event_wait: waiting for bide_event_wait\n1 task\n");
    free(text);
    bide_event_set(&event);
}

struct dumping {
    bide_task task;
    char *text;
};

bide_coroutine(dumping_body)
{
    bide_begin(dumping_body, struct dumping * self);
    self->text = dump();
    bide_end();
}

static void a_coroutine_that_dumps_is_running(void **state)
{
    (void)state;
    struct dumping self = {.text = NULL};
    bide_sync_wait(bide_task_init(&self.task, &dumping_body));
    assert_contains(self.text, " dumping_body: running\n  #0 dumping_body at ");
    assert_contains(self.text, " (running)\n1 task\n");
    free(self.text);
}

struct owning {
    bide_task task;
    bide_event *event;
    struct inner *child;
};

bide_coroutine(owning_body)
{
    bide_begin(owning_body, struct owning * self);
    self->child = bide_create(sizeof *self->child, &inner_body, &bide_heap);
    self->child->event = self->event;
    bide_await(bide_owned(self->child, &inner_body));
    bide_end();
}

struct scoped {
    bide_task task;
    bide_event *event;
    bide_event *childrens;
    bool destroys;
    bide_scope scope;
    bide_branch branches[2];
    struct outer children[2];
    bide_event_waiter wait;
};

bide_coroutine(scoped_body)
{
    bide_begin(scoped_body, struct scoped * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (int i = 0; i < 2; i++) {
        self->children[i].inner.event = self->childrens;
        bide_scope_spawn(&self->scope, &self->branches[i],
                         bide_task_init(&self->children[i].task, &outer_body));
    }
    bide_await(bide_event_wait(&self->wait, self->event));
    if (!self->destroys)
        bide_await(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

/* Also before the scope is joined; destroyed tasks are no longer shown. */
static void what_runs_in_a_scope_is_shown_as_tasks(void **state)
{
    (void)state;
    for (int destroys = 0; destroys < 2; destroys++) {
        bide_event event, childrens;
        bide_spawned spawned;
        char expected[300];
        bide_event_init(&event, false);
        bide_event_init(&childrens, false);
        struct scoped self = {.event = &event, .childrens = &childrens, .destroys = destroys != 0};
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &scoped_body));
        char *text = dump();
        for (int i = 0; i < 2; i++) {
            snprintf(expected, sizeof expected,
                     "task %p outer_body: waiting for bide_event_wait\n  #0 inner_body at ",
                     (void *)&self.branches[i]);
            assert_contains(text, expected);
        }
        assert_contains(text, " scoped_body: waiting for bide_event_wait\n");
        assert_contains(text, "\n3 tasks\n");
        free(text);
        if (destroys == 0)
            bide_event_set(&childrens);
        bide_event_set(&event);
        text = dump();
        assert_string_equal(text, "0 tasks\n");
        free(text);
    }
}

static void owned_frames_are_shown(void **state)
{
    (void)state;
    bide_event event;
    bide_spawned spawned;
    bide_event_init(&event, false);
    struct owning self = {.event = &event};
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &owning_body));
    char *text = dump();
    assert_contains(text, "  #0 inner_body at ");
    assert_contains(text, "\n  #1 owning_body at ");
    free(text);
    bide_event_set(&event);
}

/* A chain of its own depth. */
struct deep {
    bide_task task;
    struct deep *next;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(deep_body)
{
    bide_begin(deep_body, struct deep * self);
    if (self->next != NULL)
        bide_await(bide_task_init(&self->next->task, &deep_body));
    else
        bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

static void of_a_deep_chain_the_innermost_are_shown(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    bide_event event;
    bide_spawned spawned;
    struct deep *frames = calloc(COUNT, sizeof *frames);
    assert_non_null(frames);
    bide_event_init(&event, false);
    for (int i = 0; i + 1 < COUNT; i++)
        frames[i].next = &frames[i + 1];
    frames[COUNT - 1].event = &event;
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&frames[0].task, &deep_body));
    char *text = dump();
    assert_contains(text, "  #0 deep_body at ");
    assert_contains(text, " waiting for bide_event_wait\n  #1 deep_body at ");
    assert_contains(text, "\n  #63 deep_body at ");
    assert_null(strstr(text, "#64"));
    assert_contains(text, "\n  ... and 2936 more\n1 task\n");
    free(text);
    bide_event_set(&event);
    free(frames);
}

static void every_one_of_many_tasks_is_shown_once(void **state)
{
    (void)state;
    enum { COUNT = 1500 };
    bide_event event;
    bide_spawned *spawned = malloc(COUNT * sizeof *spawned);
    struct inner *frames = malloc(COUNT * sizeof *frames);
    char line[100];
    assert_non_null(spawned);
    assert_non_null(frames);
    bide_event_init(&event, false);
    for (int i = 0; i < COUNT; i++) {
        frames[i].event = &event;
        bide_spawn(&spawned[i], &bide_default_context,
                   bide_task_init(&frames[i].task, &inner_body));
    }
    char *text = dump();
    assert_contains(text, "\n1500 tasks\n");
    for (int i = 0; i < COUNT; i++) {
        snprintf(line, sizeof line, "task %p inner_body: waiting", (void *)&spawned[i].root);
        const char *found = strstr(text, line);
        assert_non_null(found);
        assert_null(strstr(found + 1, line));
    }
    free(text);
    bide_event_set(&event);
    free(frames);
    free(spawned);
}

/* ---- Locks ---- */

/* Locks, and waits for an event with the lock. Its own struct is a member of another coroutine's. */
struct locking {
    bide_task task;
    bool is_barging;
    bide_mutex *mutex;
    bide_barging_mutex *barging;
    bide_event *event;
    bide_mutex_waiter key;
    bide_barging_mutex_waiter barging_key;
    bide_event_waiter wait;
};

enum { LOCKED_LINE = __LINE__ + 10 };

bide_coroutine(locking_body)
{
    bide_begin(locking_body, struct locking * self);
    if (self->is_barging)
        bide_await(bide_barging_mutex_lock(&self->barging_key, self->barging));
    else
        bide_await(bide_mutex_lock(&self->key, self->mutex));

    bide_await(bide_event_wait(&self->wait, self->event));
    if (self->is_barging)
        bide_barging_mutex_unlock(&self->barging_key);
    else
        bide_mutex_unlock(&self->key);
    bide_end();
}

struct calling {
    bide_task task;
    struct locking inner;
};

bide_coroutine(calling_body)
{
    bide_begin(calling_body, struct calling * self);
    bide_await(bide_task_init(&self->inner.task, &locking_body));
    bide_end();
}

static void a_lock_is_shown_with_its_holder(void **state)
{
    enum { TASKS = 3 };
    (void)state;
    for (int is_barging = 0; is_barging < 2; is_barging++) {
        bide_mutex mutex;
        bide_barging_mutex barging;
        bide_event event;
        bide_spawned spawned[TASKS];
        struct calling tasks[TASKS];
        const void *lock = is_barging != 0 ? (const void *)&barging : (const void *)&mutex;
        const char *name = is_barging != 0 ? "bide_barging_mutex_lock" : "bide_mutex_lock";
        char expected[1000];
        bide_mutex_init(&mutex);
        bide_barging_mutex_init(&barging);
        bide_event_init(&event, false);
        for (int i = 0; i < TASKS; i++) {
            struct locking *inner = &tasks[i].inner;
            inner->is_barging = is_barging != 0;
            inner->mutex = &mutex;
            inner->barging = &barging;
            inner->event = &event;
            bide_spawn(&spawned[i], &bide_default_context,
                       bide_task_init(&tasks[i].task, &calling_body));
        }
        char *text = dump();
        snprintf(expected, sizeof expected, "task %p calling_body: waiting for %s of lock %p\n",
                 (void *)&spawned[1].root, name, lock);
        assert_contains(text, expected);
        snprintf(expected, sizeof expected,
                 "lock %p, for which 2 wait: held by task %p, locking_body at %s:%d\n3 tasks\n",
                 lock, (void *)&spawned[0].root, __FILE__, LOCKED_LINE);
        assert_contains(text, expected);
        free(text);
        bide_event_set(&event);
        text = dump();
        assert_string_equal(text, "0 tasks\n");
        free(text);
    }
}

/* A waiter that is in no task's struct; and more locks than are listed. */
static void locks_without_a_known_holder_are_shown(void **state)
{
    enum { LOCKS = 20 };
    bide_mutex mutexes[LOCKS];
    bide_mutex_waiter keys[LOCKS], waiters[LOCKS];
    bide_spawned spawned[LOCKS];
    char expected[100];
    (void)state;
    for (int i = 0; i < LOCKS; i++) {
        bide_mutex_init(&mutexes[i]);
        assert_true(bide_mutex_try_lock(&keys[i], &mutexes[i]));
        bide_spawn(&spawned[i], &bide_default_context, bide_mutex_lock(&waiters[i], &mutexes[i]));
    }
    char *text = dump();
    assert_contains(text, "\n4 wait for other locks\n20 tasks\n");
    assert_contains(text, ", for which 1 waits: held\n");
    free(text);
    for (int i = 1; i < LOCKS; i++)
        bide_mutex_unlock(&keys[i]);
    text = dump();
    snprintf(expected, sizeof expected, "lock %p, for which 1 waits: held\n1 task\n",
             (void *)&mutexes[0]);
    assert_contains(text, expected);
    free(text);
    bide_mutex_unlock(&keys[0]);
}

static void an_error_of_the_file_is_told(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(bide_dump(full), -EIO);
    fclose(full);
}

/* ---- Memory that has changed ---- */

/* Frames overwritten with anything are shown as running, or not at all, and no access faults. */
static void whatever_frames_hold_nothing_faults(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    long page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 2000; i++) {
        bide_event event;
        bide_spawned spawned;
        struct outer self;
        void *const anything[] = {
            NULL,
            (void *)1,
            (void *)(uintptr_t)testing_random(&random),
            (void *)(uintptr_t)(testing_random(&random) & ~(uintptr_t)7),
            &self,
            &self.inner,
            &spawned.root.frame,
            (void *)(uintptr_t)&outer_body,
            (void *)((uintptr_t)&outer_body + 8),
            (void *)(uintptr_t) "a text that is no point, but is a constant of the program",
            (void *)((uintptr_t)&self & ~((uintptr_t)page - 1)),
            &self.inner.wait,
            stdout,
        };
        bide_event_init(&event, false);
        self.inner.event = &event;
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &outer_body));
        /* Any word of the two frames, of the root's frame and its awaiter, and of the operation. */
        void **words[] = {
            (void **)(void *)&self.task.frame, (void **)(void *)&self.inner.task.frame,
            (void **)(void *)&spawned.root.frame, (void **)(void *)&self.inner.wait.listed.awaiter};
        const unsigned sizes[] = {4, 4, 4, 3};
        unsigned which = (unsigned)(testing_random(&random) % 4);
        void **word = words[which] + testing_random(&random) % sizes[which];
        void *before = *word;
        *word = anything[testing_random(&random) % (sizeof anything / sizeof anything[0])];
        char *text = dump();
        *word = before;
        assert_true(strcmp(text, "0 tasks\n") == 0 || strstr(text, "\n1 task\n") != NULL);
        free(text);
        bide_event_set(&event);
    }
}

/* ---- While others run ---- */

enum { THREADS = 4 };

static bide_atomic(bool) stopping;
static bide_atomic(unsigned) rounds_done;

/* Repeatedly awaits children of several kinds, and spawns one that it waits for. */
struct busy {
    bide_task task;
    const bide_context *context;
    uint64_t random;
    bide_spawned spawned;
    bide_spawned waker;
    struct outer *outer;
    bide_event event;
    bide_event_waiter wait;
    struct outer child;
};

struct setter {
    bide_task task;
    bide_event *event;
};

bide_coroutine(setter_body)
{
    bide_begin(setter_body, struct setter * self);
    bide_event_set(self->event);
    bide_end();
}

bide_coroutine(busy_body)
{
    bide_begin(busy_body, struct busy * self);
    while (!bide_atomic_load(&stopping, relaxed)) {
        bide_event_init(&self->event, false);
        self->outer = malloc(sizeof *self->outer + sizeof(struct setter));
        if (self->outer == NULL)
            bide_return(-ENOMEM);
        self->outer->inner.event = &self->event;
        bide_spawn(&self->spawned, self->context, bide_task_init(&self->outer->task, &outer_body));
        struct setter *setter = (struct setter *)(void *)(self->outer + 1);
        setter->event = &self->event;
        bide_spawn(&self->waker, self->context, bide_task_init(&setter->task, &setter_body));
        self->child.inner.event = &self->event;
        if (testing_random(&self->random) % 2 == 0)
            bide_await(bide_task_init(&self->child.task, &outer_body));
        bide_await(bide_event_wait(&self->wait, &self->spawned.ended));
        bide_await(bide_event_wait(&self->wait, &self->waker.ended));
        free(self->outer);
        bide_atomic_fetch_add(&rounds_done, 1, relaxed);
    }
    bide_end();
}

/* Every line is a valid one, and the count at the end is right. */
static void assert_sane(const char *text)
{
    static const char *const patterns[] = {
        ("^task 0x[0-9a-f]+ [a-z_ ]+( in pool| in loop)?: "
         "(not started|running|waiting for [a-z_ ]+)$"),
        "^  #0 [a-z]+_body at [^:]+:[0-9]+ (\\(running\\)|not started|waiting for [a-z_ ]+)$",
        "^  #[1-9] [a-z]+_body at [^:]+:[0-9]+$",
    };
    regex_t compiled[3];
    unsigned tasks = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(regcomp(&compiled[i], patterns[i], REG_EXTENDED | REG_NOSUB), 0);
    char *lines = strdup(text), *rest = NULL, *last = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (last != NULL) {
            bool known = false;
            for (int i = 0; i < 3 && !known; i++)
                known = regexec(&compiled[i], last, 0, NULL, 0) == 0;
            if (!known)
                fail_msg("cannot be: %s", last);
            tasks += strncmp(last, "task ", 5) == 0;
        }
        last = line;
    }
    assert_non_null(last);
    assert_int_equal(last == NULL ? 0 : strtoul(last, NULL, 10), tasks);
    free(lines);
    for (int i = 0; i < 3; i++)
        regfree(&compiled[i]);
}

/* A task that stays suspended is in each dump, in its position. */
static void nothing_stops_while_others_are_shown(void **state)
{
    (void)state;
    enum { DUMPS = 300 };
    uint64_t random = testing_seed();
    bide_thread_pool *pool;
    struct busy busy[2 * THREADS];
    bide_spawned spawned[2 * THREADS], standing;
    bide_event event;
    char expected[200];
    bide_atomic_init(&stopping, false);
    bide_atomic_init(&rounds_done, 0);
    assert_int_equal(bide_thread_pool_create(&pool, THREADS), 0);
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool), .name = "pool"};
    bide_event_init(&event, false);
    struct outer still = {.inner.event = &event};
    bide_spawn(&standing, &bide_default_context, bide_task_init(&still.task, &outer_body));
    snprintf(expected, sizeof expected,
             "task %p outer_body: waiting for bide_event_wait\n  #0 inner_body at %s:%d waiting "
             "for bide_event_wait\n  #1 outer_body at ",
             (void *)&standing.root, __FILE__, INNER_LINE);
    for (int i = 0; i < 2 * THREADS; i++) {
        busy[i].context = &context;
        busy[i].random = testing_random(&random);
        bide_spawn(&spawned[i], &context, bide_task_init(&busy[i].task, &busy_body));
    }
    for (int i = 0; i < DUMPS; i++) {
        unsigned before = bide_atomic_load(&rounds_done, relaxed);
        schedule_jitter(&random);
        char *text = dump();
        assert_contains(text, expected);
        assert_sane(text);
        free(text);
        if (i % 16 == 0)
            schedule_until(bide_atomic_load(&rounds_done, relaxed) != before);
    }
    bide_atomic_store(&stopping, true, relaxed);
    for (int i = 0; i < 2 * THREADS; i++) {
        bide_event_waiter wait;
        bide_sync_wait(bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(spawned[i].root.status, 0);
    }
    bide_event_set(&event);
    bide_thread_pool_destroy(pool);
    char *text = dump();
    assert_string_equal(text, "0 tasks\n");
    free(text);
}

static void *dump_often(void *unused)
{
    for (int i = 0; i < 50; i++)
        free(dump());
    return unused;
}

static void several_threads_may_dump_at_once(void **state)
{
    (void)state;
    bide_event event;
    bide_spawned spawned;
    struct inner self = {.event = &event};
    pthread_t threads[THREADS];
    bide_event_init(&event, false);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &inner_body));
    for (int i = 0; i < THREADS; i++)
        threads[i] = schedule_thread(dump_often, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *text = dump();
    assert_contains(text, "\n1 task\n");
    free(text);
    bide_event_set(&event);
}

/* From now on process_vm_readv fails in this process. False: this cannot be arranged here. */
static bool forbid_process_vm_readv(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0) == -1 && errno == EPERM;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "pipe") == 0 && !forbid_process_vm_readv()) {
        puts("1..0 # SKIP there is no seccomp here");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_waits_is_shown_with_its_chain),
        cmocka_unit_test(a_task_that_has_not_started_is_shown_so),
        cmocka_unit_test(an_operation_that_is_awaited_by_itself_is_shown_by_its_name),
        cmocka_unit_test(a_coroutine_that_dumps_is_running),
        cmocka_unit_test(what_runs_in_a_scope_is_shown_as_tasks),
        cmocka_unit_test(owned_frames_are_shown),
        cmocka_unit_test(of_a_deep_chain_the_innermost_are_shown),
        cmocka_unit_test(every_one_of_many_tasks_is_shown_once),
        cmocka_unit_test(a_lock_is_shown_with_its_holder),
        cmocka_unit_test(locks_without_a_known_holder_are_shown),
        cmocka_unit_test(an_error_of_the_file_is_told),
        cmocka_unit_test(whatever_frames_hold_nothing_faults),
        cmocka_unit_test(nothing_stops_while_others_are_shown),
        cmocka_unit_test(several_threads_may_dump_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
