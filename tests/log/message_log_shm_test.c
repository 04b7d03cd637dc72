/*
 * Message logs in shared memory, by processes: one publishes and another reads; processes that are killed at any
 * instruction of an operation; objects that are not logs. Children are this program again.
 */
#define _GNU_SOURCE
#include "../src/log/shm.h"
#include "log_object.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WINDOW = 8 };

/* A thread for blocking calls that ends in a long pause is joined when another one ends, if ever. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}

/* ---- A call that fails ---- */

int __real_posix_fallocate64(int descriptor, off_t offset, off_t size);
int __wrap_posix_fallocate64(int descriptor, off_t offset, off_t size);

static int allocations, failing_allocation; /* the n-th, from 1 */
static int interruptible_allocations;

/* A signal would make the system undo it, and other processes may wait for its end. */
int __wrap_posix_fallocate64(int descriptor, off_t offset, off_t size)
{
    sigset_t blocked;
    if (pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0 || sigismember(&blocked, SIGALRM) != 1)
        interruptible_allocations++;
    return ++allocations == failing_allocation ? ENOSPC
                                               : __real_posix_fallocate64(descriptor, offset, size);
}

int __real_poll(struct pollfd *waits, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *waits, nfds_t count, int timeout);

static bide_atomic(uint32_t) failed_polls;

int __wrap_poll(struct pollfd *waits, nfds_t count, int timeout)
{
    int ready = __real_poll(waits, count, timeout);
    if (ready < 0 && errno != EINTR)
        bide_atomic_fetch_add(&failed_polls, 1, relaxed);
    return ready;
}

/* ---- A process that is killed before it wakes another one ---- */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

static __thread bool dies_at_wake;

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef SYS_futex
    if (dies_at_wake && number == SYS_futex && (int)b == FUTEX_WAKE) /* which processes share */
        raise(SIGKILL);
#endif
    return __real_syscall(number, a, b, c, d, e, f);
}

/* ---- Operations, on this thread ---- */

static int open_log(bide_log **log, const char *name, const char *options, char *problem)
{
    char url[128];
    bide_log_operation operation;
    snprintf(url, sizeof url, "shm://%s%s", name, options);
    int status = bide_sync_wait(bide_log_open(&operation, log, url));
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "%s", operation.problem);
    return status;
}

static bide_log *opened(const char *name, const char *options)
{
    char problem[BIDE_LOG_PROBLEM_TEXT];
    bide_log *log;
    int status = open_log(&log, name, options, problem);
    if (status < 0)
        fail_msg("%s: %s", name, problem);
    return log;
}

static int publish(bide_log *log, const char *letters)
{
    bide_log_message messages[2 * WINDOW];
    bide_log_operation operation;
    uint32_t count = (uint32_t)strlen(letters);
    for (uint32_t i = 0; i < count; i++)
        messages[i] = (bide_log_message){.data = letters + i, .size = 1};
    return bide_sync_wait(bide_log_publish(&operation, log, messages, count));
}

static void subscribe(bide_log *log, bide_log_consumer *consumer, const char *group)
{
    bide_log_operation operation;
    const bide_log_consumer_options options = {.group = group};
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&operation, consumer, log, &options)), 0);
}

/* Waits for messages, and reads them; their letters make a text. */
static uint32_t read_some(bide_log_consumer *consumer, bide_log_message *messages, uint32_t max,
                          char *text)
{
    bide_log_operation operation;
    assert_int_equal(bide_sync_wait(bide_log_read(&operation, consumer, messages, max)), 0);
    for (uint32_t i = 0; i < operation.count; i++)
        text[i] = *(const char *)messages[i].data;
    text[operation.count] = '\0';
    return operation.count;
}

static void acknowledge(bide_log_consumer *consumer, const bide_log_message *messages,
                        uint32_t count)
{
    bide_log_operation operation;
    assert_int_equal(bide_sync_wait(bide_log_acknowledge(&operation, consumer, messages, count)),
                     0);
}

static uint64_t lag_of(bide_log *log, const char *group)
{
    uint64_t lag = 0;
    assert_int_equal(bide_log_lag(log, group, &lag), 0);
    return lag;
}

/* Reads and acknowledges until the group is done with everything; returns a bit for each letter. */
static uint32_t drain(bide_log *log, const char *group)
{
    bide_log_consumer consumer;
    bide_log_message messages[WINDOW];
    char text[WINDOW + 1];
    uint32_t seen = 0;
    subscribe(log, &consumer, group);
    while (lag_of(log, group) != 0) {
        uint32_t count = read_some(&consumer, messages, WINDOW, text);
        for (uint32_t i = 0; i < count; i++)
            seen |= 1u << (text[i] - 'a');
        acknowledge(&consumer, messages, count);
    }
    bide_log_unsubscribe(&consumer);
    return seen;
}

static uint32_t letters(const char *text)
{
    uint32_t bits = 0;
    for (; *text != '\0'; text++)
        bits |= 1u << (*text - 'a');
    return bits;
}

/* ---- Children ---- */

enum { TO_CHILD = 10, FROM_CHILD = 11, SHARED = 12 /* descriptors in a child */ };

struct child {
    pid_t pid;
    int to, from;
};

/* Runs this program as `role`. */
static struct child start(const char *role, const char *name, const char *argument, int shared)
{
    struct child it;
    int to[2], from[2];
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    it.pid = fork();
    assert_true(it.pid >= 0);
    if (it.pid == 0) {
        char *const arguments[] = {(char *)"child", (char *)(uintptr_t)role,
                                   (char *)(uintptr_t)name, (char *)(uintptr_t)argument, NULL};
        int sources[3] = {to[0], from[1], shared};
        for (int i = 0; i < 3; i++) /* none is what another one becomes */
            sources[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, SHARED + 1);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(sources[0], TO_CHILD) < 0 ||
            dup2(sources[1], FROM_CHILD) < 0 || (shared >= 0 && dup2(sources[2], SHARED) < 0))
            _exit(99);
        execv(program, arguments);
        _exit(98);
    }
    close(to[0]);
    close(from[1]);
    it.to = to[1];
    it.from = from[0];
    return it;
}

static void expect_ready(const struct child *it)
{
    char byte;
    assert_int_equal(read(it->from, &byte, 1), 1);
}

static void say_ready(void)
{
    if (write(FROM_CHILD, "r", 1) != 1)
        _exit(97);
}

static void wait_for_parent(void)
{
    char byte;
    if (read(TO_CHILD, &byte, 1) != 1)
        _exit(96);
}

static int wait_for_end(const struct child *it)
{
    int status;
    assert_int_equal(waitpid(it->pid, &status, 0), it->pid);
    close(it->to);
    close(it->from);
    return status;
}

static void end_well(const struct child *it)
{
    int status = wait_for_end(it);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void kill_it(const struct child *it)
{
    assert_int_equal(kill(it->pid, SIGKILL), 0);
    int status = wait_for_end(it);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- Two processes ---- */

static void number_messages(const char *name, const char *count)
{
    bide_log *log = opened(name, "");
    bide_log_operation operation;
    for (int i = 0; i < atoi(count); i++) {
        bide_log_message message = {.data = &i, .size = sizeof i};
        assert_int_equal(bide_sync_wait(bide_log_publish(&operation, log, &message, 1)), 0);
    }
    bide_log_close(log);
    bide_log_destroy(log);
}

static void a_process_reads_what_another_publishes(void **state)
{
    (void)state;
    struct log_object object;
    bide_log_consumer consumer;
    bide_log_message messages[3];
    bide_log_operation operation;
    int count = (int)rounds_of(1000), seen = 0;
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=8&size=16");
    assert_int_equal(bide_log_level_of(log), BIDE_LOG_STORED);
    subscribe(log, &consumer, "g");
    struct child producer = start("number", object.name, text, -1);
    while (seen < count) { /* the window is small: each waits for the other */
        assert_int_equal(bide_sync_wait(bide_log_read(&operation, &consumer, messages, 3)), 0);
        for (uint32_t i = 0; i < operation.count; i++) {
            int number;
            assert_int_equal(messages[i].size, sizeof number);
            memcpy(&number, messages[i].data, sizeof number);
            assert_int_equal(number, seen++);
            assert_int_equal(messages[i].deliveries, 1);
        }
        acknowledge(&consumer, messages, operation.count);
    }
    end_well(&producer);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log_object_remove(&object);
}

static void a_log_outlives_its_processes(void **state)
{
    (void)state;
    struct log_object object;
    bide_log_consumer consumer, other;
    bide_log_message messages[4];
    char text[8];
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=8&size=16");
    subscribe(log, &consumer, "g");
    assert_int_equal(publish(log, "abcd"), 0);
    assert_int_equal(read_some(&consumer, messages, 2, text), 2);
    acknowledge(&consumer, messages, 1);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log = opened(object.name, "");
    assert_int_equal(bide_log_window(log), 8);
    assert_int_equal(bide_log_size_max(log), 16);
    assert_int_equal(lag_of(log, "g"), 3);
    subscribe(log, &consumer, "g");
    read_some(&consumer, messages, 4, text);
    assert_string_equal(text, "bcd");
    assert_int_equal(messages[0].deliveries, 2);
    subscribe(log, &other, NULL);
    read_some(&other, messages, 4, text);
    assert_string_equal(text, "abcd");
    bide_log_unsubscribe(&other);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log_object_remove(&object);
}

/* Another process has the consumers of a group: it is not removed, and a consumer's own group ends with the process. */
static void hold_messages(const char *name)
{
    bide_log *log = opened(name, "");
    bide_log_consumer consumer, own;
    bide_log_message messages[2];
    char text[4];
    subscribe(log, &consumer, "g");
    subscribe(log, &own, NULL);
    assert_int_equal(read_some(&consumer, messages, 2, text), 2);
    say_ready();
    wait_for_parent();
    raise(SIGKILL);
}

static void what_a_killed_consumer_had_goes_to_another_process(void **state)
{
    (void)state;
    struct log_object object;
    bide_log_consumer consumer;
    bide_log_message messages[4];
    char text[8];
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=4&size=16");
    assert_int_equal(publish(log, "ab"), 0);
    struct child child = start("hold-messages", object.name, "", -1);
    expect_ready(&child);
    assert_int_equal(bide_log_remove_group(log, "g"), -EBUSY);
    subscribe(log, &consumer, "g");
    assert_int_equal(write(child.to, "k", 1), 1);
    uint32_t count = read_some(&consumer, messages, 4, text); /* waits for the end of the child */
    assert_string_equal(text, "ab");
    assert_int_equal(messages[0].deliveries, 2);
    acknowledge(&consumer, messages, count);
    wait_for_end(&child);
    assert_int_equal(publish(log, "cdef"), 0); /* the group of its own holds nothing */
    bide_log_unsubscribe(&consumer);
    assert_int_equal(bide_log_remove_group(log, "g"), 0);
    bide_log_destroy(log);
    log_object_remove(&object);
}

/* The system lets poll(2) wait for no more descriptors than a process may have. */
static void few_descriptors_are_enough_for_the_watch(void **state)
{
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 32;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    bide_atomic_store(&failed_polls, 0, relaxed);
    what_a_killed_consumer_had_goes_to_another_process(state);
    assert_int_equal(bide_atomic_load(&failed_polls, relaxed), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void hold_a_claim(const char *name)
{
    bide_log *log = opened(name, "");
    bide_log_operation operation;
    bide_log_claim claim;
    assert_int_equal(bide_sync_wait(bide_log_reserve(&operation, log, 3, &claim)), 0);
    say_ready();
    wait_for_parent();
    raise(SIGKILL);
}

static void what_a_killed_producer_had_claimed_is_free(void **state)
{
    (void)state;
    struct log_object object;
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=4&size=16");
    struct child child = start("hold-claim", object.name, "", -1);
    expect_ready(&child);
    assert_int_equal(write(child.to, "k", 1), 1);
    assert_int_equal(publish(log, "abcd"), 0); /* waits for the end of the child */
    wait_for_end(&child);
    bide_log_destroy(log);
    log_object_remove(&object);
}

/* Publishes when the other process sleeps in a read, and dies between the ringing and the wake. */
static void die_before_the_wake(const char *name)
{
    bide_log *log = opened(name, "");
    int descriptor = shm_open(name, O_RDONLY, 0);
    const struct shm_header *header =
        mmap(NULL, sizeof *header, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_true(header != MAP_FAILED);
    while (bide_atomic_load(&header->processes[0].bell, relaxed) != LOG_NEWS)
        sched_yield();
    dies_at_wake = true;
    (void)publish(log, "a");
}

static void a_process_that_is_killed_before_it_wakes_another_is_noticed(void **state)
{
    (void)state;
    for (uint32_t rounds = rounds_of(8); rounds != 0; rounds--) {
        struct log_object object;
        bide_log_consumer consumer;
        bide_log_message messages[2];
        char text[4];
        log_object_name(&object);
        bide_log *log = opened(object.name, "?window=4&size=16");
        subscribe(log, &consumer, "g");
        struct child child = start("die-before-wake", object.name, "", -1);
        read_some(&consumer, messages, 2, text); /* waits for the end of the child */
        assert_string_equal(text, "a");
        int status = wait_for_end(&child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        bide_log_unsubscribe(&consumer);
        bide_log_destroy(log);
        log_object_remove(&object);
    }
}

/* ---- As many processes as there may be ---- */

enum { OTHERS = SHM_PROCESSES - 1, CROWD_MESSAGES = 20 };

struct crowd_message {
    int process, number;
};

/* The parent starts the publishing and the end. */
static void publish_in_a_crowd(const char *name, const char *process)
{
    bide_log *log = opened(name, "");
    bide_log_operation operation;
    say_ready();
    wait_for_parent();
    for (int i = 0; i < CROWD_MESSAGES; i++) {
        const struct crowd_message text = {atoi(process), i};
        bide_log_message message = {.data = &text, .size = sizeof text};
        assert_int_equal(bide_sync_wait(bide_log_publish(&operation, log, &message, 1)), 0);
    }
    wait_for_parent();
    bide_log_destroy(log);
}

static void find_no_place(const char *name)
{
    char problem[BIDE_LOG_PROBLEM_TEXT];
    bide_log *log;
    if (open_log(&log, name, "", problem) != -EUSERS)
        _exit(1);
}

/* The messages of each process are read once, in their order. */
static void read_a_crowd(bide_log_consumer *consumer)
{
    bide_log_message messages[WINDOW];
    bide_log_operation operation;
    int next[OTHERS] = {0};
    for (int seen = 0; seen < OTHERS * CROWD_MESSAGES; seen += (int)operation.count) {
        assert_int_equal(bide_sync_wait(bide_log_read(&operation, consumer, messages, WINDOW)), 0);
        for (uint32_t i = 0; i < operation.count; i++) {
            struct crowd_message text;
            memcpy(&text, messages[i].data, sizeof text);
            assert_in_range(text.process, 0, OTHERS - 1);
            assert_int_equal(text.number, next[text.process]++);
            assert_int_equal(messages[i].deliveries, 1);
        }
        acknowledge(consumer, messages, operation.count);
    }
}

static void thirty_two_processes_share_a_log(void **state)
{
    (void)state;
    struct log_object object;
    struct child children[OTHERS];
    char process[16];
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=8&size=16");
    bide_log_consumer consumer;
    subscribe(log, &consumer, NULL); /* nothing is overwritten before it is read */
    for (int i = 0; i < OTHERS; i++) {
        snprintf(process, sizeof process, "%d", i);
        children[i] = start("crowd", object.name, process, -1);
    }
    for (int i = 0; i < OTHERS; i++)
        expect_ready(&children[i]);
    struct child refused = start("no-place", object.name, "", -1);
    end_well(&refused);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(write(children[i].to, "p", 1), 1);
    read_a_crowd(&consumer);
    bide_log_unsubscribe(&consumer);
    for (int i = 0; i < OTHERS; i++) {
        if (i % 2 == 0)
            kill_it(&children[i]);
        else
            assert_int_equal(write(children[i].to, "e", 1), 1);
    }
    for (int i = 1; i < OTHERS; i += 2)
        end_well(&children[i]);
    for (int i = 0; i < OTHERS; i++) /* all places are free again */
        children[i] = start("crowd", object.name, "0", -1);
    for (int i = 0; i < OTHERS; i++)
        expect_ready(&children[i]);
    for (int i = 0; i < OTHERS; i++)
        kill_it(&children[i]);
    bide_log_destroy(log);
    log_object_remove(&object);
}

/* ---- Killed at each instruction ---- */

enum action {
    PUBLISH,
    RESERVE,
    READ,
    READ_OWN,
    ACKNOWLEDGE,
    REJECT,
    UNSUBSCRIBE,
    DESTROY,
    ACTIONS
};

/* Does one of them between two stops. */
static void act_and_stop(const char *name, const char *which)
{
    enum action action = (enum action)atoi(which);
    bide_log *log = opened(name, "");
    bide_log_consumer consumer;
    bide_log_message messages[2];
    bide_log_operation operation;
    bide_log_claim claim;
    char text[4];
    if (action >= ACKNOWLEDGE)
        subscribe(log, &consumer, "g");
    if (action >= ACKNOWLEDGE && action != DESTROY)
        assert_int_equal(read_some(&consumer, messages, 2, text), 2);
    if (action == DESTROY)
        bide_log_unsubscribe(&consumer);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(77);
    raise(SIGSTOP);
    switch (action) {
    case PUBLISH:
        (void)publish(log, "xyz");
        break;
    case RESERVE:
        (void)bide_sync_wait(bide_log_reserve(&operation, log, 3, &claim));
        break;
    case READ:
    case READ_OWN:
        subscribe(log, &consumer, action == READ ? "g" : NULL);
        (void)read_some(&consumer, messages, 2, text);
        break;
    case ACKNOWLEDGE:
        (void)bide_sync_wait(bide_log_acknowledge(&operation, &consumer, messages, 2));
        break;
    case REJECT:
        (void)bide_sync_wait(bide_log_reject(&operation, &consumer, messages, 2, 0));
        break;
    case UNSUBSCRIBE:
        bide_log_unsubscribe(&consumer);
        break;
    default:
        bide_log_destroy(log);
        break;
    }
    raise(SIGSTOP);
    _exit(0);
}

/* Steps through the action; returns how many instructions were executed, UINT32_MAX if it cannot be traced. */
static uint32_t step(const struct child *child, uint32_t most)
{
    int status;
    uint32_t count = 0;
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        return UINT32_MAX;
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    while (count < most) {
        if (ptrace(PTRACE_SINGLESTEP, child->pid, NULL, NULL) < 0)
            return UINT32_MAX;
        assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGSTOP)
            break;
        assert_int_equal(WSTOPSIG(status), SIGTRAP);
        count++;
    }
    return count;
}

/* A child is killed after so many instructions of the action; this process continues. Returns how many there were. */
static uint32_t kill_in(enum action action, uint32_t most)
{
    struct log_object object;
    bide_log_message messages[WINDOW];
    char which[8], text[WINDOW + 1];
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=8&size=16");
    bide_log_consumer consumer;
    subscribe(log, &consumer, "g");
    bide_log_unsubscribe(&consumer);
    assert_int_equal(publish(log, "abcd"), 0);
    snprintf(which, sizeof which, "%d", (int)action);
    struct child child = start("act", object.name, which, -1);
    uint32_t count = step(&child, most);
    (void)kill(child.pid, SIGKILL);
    wait_for_end(&child);

    /* its messages are all there or none is, and the earlier ones are not lost */
    uint32_t seen = drain(log, "g"), batch = seen & letters("xyz");
    if (action != ACKNOWLEDGE)
        assert_int_equal(seen & letters("abcd"), letters("abcd"));
    assert_int_equal(seen & letters("cd"), letters("cd"));
    assert_true(batch == 0 || (action == PUBLISH && batch == letters("xyz")));
    if (action == PUBLISH && most == UINT32_MAX && count != UINT32_MAX)
        assert_int_equal(batch, letters("xyz"));

    /* a new group reads no slot that it was writing, and its claim and its groups hold nothing */
    subscribe(log, &consumer, NULL);
    read_some(&consumer, messages, WINDOW, text);
    assert_string_equal(text, batch != 0 ? "abcdxyz" : "abcd");
    bide_log_unsubscribe(&consumer);
    assert_int_equal(publish(log, "efghijkl"),
                     0); /* the whole window, when the child was noticed */
    assert_int_equal(drain(log, "g"), letters("efghijkl"));
    int status;
    while ((status = bide_log_remove_group(log, "g")) == -EBUSY) /* until the child is noticed */
        sched_yield();
    assert_int_equal(status, 0);
    bide_log_destroy(log);
    log_object_remove(&object);
    return count;
}

static void a_process_that_is_killed_anywhere_stops_no_other(void **state)
{
    enum { STEPS = 1 << 17 /* of all rounds of an action, about twice */ };
    (void)state;
    uint64_t random = testing_seed();
    for (int action = 0; action < ACTIONS; action++) {
        uint32_t all = kill_in((enum action)action, UINT32_MAX);
        if (all == UINT32_MAX) {
            print_message("# skipped: processes cannot be traced here\n");
            skip();
        }
        assert_true(all > 10);
        uint32_t rounds = rounds_of(16), few = STEPS / all + 1; /* each step is two system calls */
        if (rounds > few)
            rounds = few;
        for (uint64_t i = 0; i < rounds; i++) /* one in each part of it */
            (void)kill_in((enum action)action,
                          (uint32_t)((i * all + testing_random(&random) % all) / rounds));
    }
}

/* A publish over a full window is killed after so many instructions; `text` is what a new group reads then. */
static uint32_t overwrite(uint32_t most, char *text)
{
    struct log_object object;
    bide_log_consumer consumer;
    bide_log_message messages[4];
    char which[8];
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=4&size=16");
    assert_int_equal(publish(log, "abcd"), 0);
    snprintf(which, sizeof which, "%d", (int)PUBLISH);
    struct child child = start("act", object.name, which, -1);
    uint32_t count = step(&child, most);
    (void)kill(child.pid, SIGKILL);
    wait_for_end(&child);
    subscribe(log, &consumer, NULL);
    read_some(&consumer, messages, 4, text);
    if (strcmp(text, "abcd") != 0 && strcmp(text, "d") != 0)
        assert_string_equal(text, "dxyz");
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log_object_remove(&object);
    return count;
}

/* While slots are written the new messages are not published, and the old ones are gone. */
static void overwritten_messages_are_not_read(void **state)
{
    (void)state;
    char text[8];
    uint32_t all = overwrite(UINT32_MAX, text), low = 0, high = all, halvings = 0;
    uint32_t rounds = rounds_of(6);
    if (all == UINT32_MAX) {
        print_message("# skipped: processes cannot be traced here\n");
        skip();
    }
    assert_string_equal(text, "dxyz");
    do { /* looks for an instruction in between */
        if (high - low <= 1)
            low = 0, high = all; /* another thread of the child has changed how many there are */
        assert_true(++halvings < 200);
        uint32_t middle = low + (high - low) / 2;
        (void)overwrite(middle, text);
        if (strcmp(text, "abcd") == 0)
            low = middle;
        else if (strcmp(text, "dxyz") == 0)
            high = middle;
    } while (strcmp(text, "d") != 0);
    for (uint32_t i = 0; i < rounds; i++)
        (void)overwrite(low + (uint32_t)((uint64_t)(high - low) * i / rounds), text);
}

/* ---- Stress ---- */

enum { STRESS_PRODUCERS = 64, STRESS_NUMBERS = 1 << 14 };

struct tally {
    bide_atomic(uint32_t) stops;
    bide_atomic(uint32_t) acknowledged; /* of all */
    bide_atomic(uint32_t) published[STRESS_PRODUCERS];
    bide_atomic(uint32_t) seen[STRESS_PRODUCERS][STRESS_NUMBERS];
};

static struct tally *tally_map(int descriptor)
{
    void *memory =
        mmap(NULL, sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

struct content {
    uint32_t producer, number;
};

static void stress_produce(const char *name, const char *which)
{
    bide_log *log = opened(name, "");
    struct tally *tally = tally_map(SHARED);
    uint32_t self = (uint32_t)atoi(which), done = 0;
    uint64_t random = self;
    while (bide_atomic_load(&tally->stops, relaxed) == 0 && done + 3 <= STRESS_NUMBERS) {
        bide_log_message messages[3];
        struct content content[3];
        bide_log_operation operation;
        uint32_t count = 1 + (uint32_t)(testing_random(&random) % 3);
        for (uint32_t i = 0; i < count; i++) {
            content[i] = (struct content){self, done + i};
            messages[i] = (bide_log_message){.data = &content[i], .size = sizeof content[i]};
        }
        if (testing_random(&random) % 4 == 0) {
            bide_log_claim claim;
            assert_int_equal(bide_sync_wait(bide_log_reserve(&operation, log, count, &claim)), 0);
            assert_int_equal(
                bide_sync_wait(bide_log_publish_claimed(&operation, &claim, messages, count)), 0);
        } else {
            assert_int_equal(bide_sync_wait(bide_log_publish(&operation, log, messages, count)), 0);
        }
        done += count;
        bide_atomic_store(&tally->published[self], done, release);
    }
    bide_log_destroy(log);
}

/* Acknowledges and rejects what it reads, until it is killed; or until the group is done, for the parent. */
static void stress_consume(bide_log *log, struct tally *tally, uint64_t random, bool ends)
{
    bide_log_consumer consumer;
    subscribe(log, &consumer, "g");
    while (!ends || lag_of(log, "g") != 0) {
        bide_log_message messages[3];
        bide_log_operation operation;
        assert_int_equal(bide_sync_wait(bide_log_read(&operation, &consumer, messages, 3)), 0);
        for (uint32_t i = 0, count = operation.count; i < count; i++) {
            struct content content;
            assert_int_equal(messages[i].size, sizeof content);
            memcpy(&content, messages[i].data, sizeof content);
            if (testing_random(&random) % 8 == 0) {
                assert_int_equal(
                    bide_sync_wait(bide_log_reject(&operation, &consumer, &messages[i], 1, 0)), 0);
                continue;
            }
            bide_atomic_fetch_add(&tally->seen[content.producer][content.number], 1, relaxed);
            bide_atomic_fetch_add(&tally->acknowledged, 1, relaxed);
            acknowledge(&consumer, &messages[i], 1);
        }
    }
    bide_log_unsubscribe(&consumer);
}

static void stress_consume_for_ever(const char *name, const char *which)
{
    stress_consume(opened(name, ""), tally_map(SHARED), (uint64_t)atoi(which), false);
}

static struct child stress_start(bool produces, const char *name, uint32_t number, int shared)
{
    char which[16];
    snprintf(which, sizeof which, "%u", number);
    return start(produces ? "produce" : "consume", name, which, shared);
}

static bool stress_has_ended(struct tally *tally, uint32_t producer)
{
    return bide_atomic_load(&tally->published[producer], relaxed) + 3 > STRESS_NUMBERS;
}

static void killed_processes_lose_nothing(void **state)
{
    (void)state;
    enum { CHILDREN = 4 };
    struct log_object object;
    struct child children[CHILDREN]; /* the first two produce */
    uint64_t random = testing_seed();
    uint32_t producers = 0, kills = rounds_of(20), current[2] = {0, 1};
    int shared = memfd_create("tally", MFD_CLOEXEC);
    assert_true(shared >= 0);
    assert_int_equal(ftruncate(shared, sizeof(struct tally)), 0);
    struct tally *tally = tally_map(shared);
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=8&size=8");
    bide_log_consumer first;
    subscribe(log, &first, "g");
    bide_log_unsubscribe(&first);
    for (int i = 0; i < CHILDREN; i++)
        children[i] = stress_start(i < 2, object.name, i < 2 ? producers++ : (uint32_t)i, shared);
    for (uint32_t k = 0; k < kills && producers < STRESS_PRODUCERS; k++) {
        uint32_t until = bide_atomic_load(&tally->acknowledged, relaxed) +
                         (uint32_t)(testing_random(&random) % 64);
        while ((int32_t)(bide_atomic_load(&tally->acknowledged, relaxed) - until) < 0 &&
               !(stress_has_ended(tally, current[0]) && stress_has_ended(tally, current[1])))
            sched_yield();
        uint32_t victim = (uint32_t)(testing_random(&random) % CHILDREN);
        (void)kill(children[victim].pid, SIGKILL);
        wait_for_end(&children[victim]);
        if (victim < 2)
            current[victim] = producers++;
        children[victim] =
            stress_start(victim < 2, object.name, victim < 2 ? current[victim] : 100 + k, shared);
    }
    bide_atomic_store(&tally->stops, 1, relaxed);
    end_well(&children[0]);
    end_well(&children[1]);
    kill_it(&children[2]);
    kill_it(&children[3]);
    stress_consume(log, tally, random, true);
    for (uint32_t p = 0; p < producers; p++) {
        uint32_t count = 0;
        while (count < STRESS_NUMBERS && bide_atomic_load(&tally->seen[p][count], relaxed) != 0)
            count++;
        assert_true(count >= bide_atomic_load(&tally->published[p], acquire));
        for (; count < STRESS_NUMBERS; count++)
            assert_int_equal(bide_atomic_load(&tally->seen[p][count], relaxed), 0);
    }
    bide_log_destroy(log);
    log_object_remove(&object);
    munmap(tally, sizeof *tally);
    close(shared);
}

/* ---- Objects ---- */

static void expect_refused(const struct log_object *object, const char *options, int wanted,
                           const char *why)
{
    char problem[BIDE_LOG_PROBLEM_TEXT];
    bide_log *log;
    assert_int_equal(open_log(&log, object->name, options, problem), wanted);
    assert_null(log);
    if (strstr(problem, why) == NULL)
        fail_msg("%s is not in: %s", why, problem);
}

static void what_is_not_a_log_is_refused_and_left(void **state)
{
    (void)state;
    struct log_object object;
    char path[128], content[64] = "something else, which is longer than the start of a header";
    char found[64];
    log_object_name(&object);
    snprintf(path, sizeof path, "/dev/shm%s", object.name);
    int descriptor = shm_open(object.name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(descriptor >= 0);
    expect_refused(&object, "", -EEXIST, "something else"); /* it is empty */
    assert_int_equal(lseek(descriptor, 0, SEEK_END), 0);
    assert_int_equal(write(descriptor, content, sizeof content), sizeof content);
    expect_refused(&object, "", -EEXIST, "something else");
    assert_int_equal(pread(descriptor, found, sizeof found, 0), sizeof found);
    assert_memory_equal(found, content, sizeof found);
    assert_int_equal(lseek(descriptor, 0, SEEK_END), sizeof content);
    close(descriptor);
    log_object_remove(&object);

    assert_int_equal(mkdir(path, 0700), 0);
    expect_refused(&object, "", -EISDIR, "directory");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(&object, "", -EEXIST, "not a file");
    log_object_remove(&object);
}

static void links_and_objects_of_others_are_refused(void **state)
{
    (void)state;
    struct log_object object, link;
    char path[128];
    log_object_name(&object);
    log_object_name(&link);
    bide_log_destroy(opened(object.name, "?window=4&size=16"));
    snprintf(path, sizeof path, "/dev/shm%s", link.name);
    assert_int_equal(symlink(object.name + 1, path), 0);
    expect_refused(&link, "", -ELOOP, "symbolic link");
    log_object_remove(&link);

    snprintf(path, sizeof path, "/dev/shm%s", object.name);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(chmod(path, 0640), 0);
    expect_refused(&object, "", -EPERM, "other users may open it");
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 1, 1), 0);
        expect_refused(&object, "", -EPERM, "another user");
        assert_int_equal(chown(path, 0, 0), 0);
    }
    expect_refused(&object, "?window=8", -EEXIST, "window=4");
    expect_refused(&object, "?size=8", -EEXIST, "size=16");

    int descriptor = shm_open(object.name, O_RDWR, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, "\1\0\0\0", 4, 16), 4); /* the window */
    expect_refused(&object, "", -EBADMSG, "sizes are wrong");
    assert_int_equal(pwrite(descriptor, "\4\0\0\0", 4, 16), 4);
    bide_log_destroy(opened(object.name, ""));
    assert_int_equal(pwrite(descriptor, "\2", 1, 8), 1); /* the version */
    expect_refused(&object, "", -EEXIST, "another version");
    assert_int_equal(pwrite(descriptor, "\1", 1, 8), 1);
    assert_int_equal(ftruncate(descriptor, 1 << 16), 0);
    expect_refused(&object, "", -EBADMSG, "sizes are wrong");
    close(descriptor);
    log_object_remove(&object);
}

static void memory_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    struct log_object object;
    bide_log_consumer consumer;
    bide_log_operation operation;
    log_object_name(&object);
    allocations = failing_allocation = 0;
    bide_log_destroy(opened(object.name, ""));
    log_object_remove(&object);
    if (allocations == 0) {
        print_message("# skipped: the C library has another name for the call\n");
        skip();
    }
    failing_allocation = allocations + 1;
    expect_refused(&object, "", -ENOSPC, "No space left");
    assert_int_equal(shm_unlink(object.name), -1); /* nothing is left of it */
    bide_log *log = opened(object.name, "");
    failing_allocation = allocations + 1;
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&operation, &consumer, log, NULL)), -ENOSPC);
    assert_null(consumer.group);
    subscribe(log, &consumer, NULL);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log_object_remove(&object);
    assert_int_equal(interruptible_allocations, 0);
}

/* There are 16 groups, and a place becomes free with its group. */
static void groups_have_a_limit(void **state)
{
    (void)state;
    struct log_object object;
    bide_log_consumer consumers[16], another;
    bide_log_operation operation;
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=2&size=16");
    for (int i = 0; i < 16; i++)
        subscribe(log, &consumers[i], NULL);
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&operation, &another, log, NULL)), -ENOSPC);
    assert_null(another.group);
    bide_log_unsubscribe(&consumers[7]);
    subscribe(log, &another, "g");
    bide_log_unsubscribe(&another);
    for (int i = 0; i < 16; i++)
        bide_log_unsubscribe(&consumers[i]);
    bide_log_destroy(log);
    log_object_remove(&object);
}

static void write_to_a_message(const char *name)
{
    bide_log *log = opened(name, "");
    bide_log_consumer consumer;
    bide_log_message message;
    char text[4];
    signal(SIGSEGV, SIG_DFL);
    subscribe(log, &consumer, NULL);
    assert_int_equal(read_some(&consumer, &message, 1, text), 1);
    *(volatile char *)(uintptr_t)message.data = '?';
}

static void a_consumer_cannot_change_a_message(void **state)
{
    (void)state;
    struct log_object object;
    log_object_name(&object);
    bide_log *log = opened(object.name, "?window=4&size=16");
    assert_int_equal(publish(log, "a"), 0);
    struct child child = start("write", object.name, "", -1);
    int status = wait_for_end(&child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    bide_log_consumer consumer;
    bide_log_message message;
    char text[4];
    subscribe(log, &consumer, NULL);
    read_some(&consumer, &message, 1, text);
    assert_string_equal(text, "a");
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log_object_remove(&object);
}

static int run_child(const char *role, const char *name, const char *argument)
{
    if (strcmp(role, "number") == 0)
        number_messages(name, argument);
    else if (strcmp(role, "hold-messages") == 0)
        hold_messages(name);
    else if (strcmp(role, "hold-claim") == 0)
        hold_a_claim(name);
    else if (strcmp(role, "die-before-wake") == 0)
        die_before_the_wake(name);
    else if (strcmp(role, "act") == 0)
        act_and_stop(name, argument);
    else if (strcmp(role, "crowd") == 0)
        publish_in_a_crowd(name, argument);
    else if (strcmp(role, "no-place") == 0)
        find_no_place(name);
    else if (strcmp(role, "produce") == 0)
        stress_produce(name, argument);
    else if (strcmp(role, "consume") == 0)
        stress_consume_for_ever(name, argument);
    else
        write_to_a_message(name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return run_child(argv[1], argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_reads_what_another_publishes),
        cmocka_unit_test(a_log_outlives_its_processes),
        cmocka_unit_test(what_a_killed_consumer_had_goes_to_another_process),
        cmocka_unit_test(few_descriptors_are_enough_for_the_watch),
        cmocka_unit_test(what_a_killed_producer_had_claimed_is_free),
        cmocka_unit_test(a_process_that_is_killed_before_it_wakes_another_is_noticed),
        cmocka_unit_test(thirty_two_processes_share_a_log),
        cmocka_unit_test(a_process_that_is_killed_anywhere_stops_no_other),
        cmocka_unit_test(overwritten_messages_are_not_read),
        cmocka_unit_test(killed_processes_lose_nothing),
        cmocka_unit_test(what_is_not_a_log_is_refused_and_left),
        cmocka_unit_test(links_and_objects_of_others_are_refused),
        cmocka_unit_test(memory_that_is_not_there_is_an_error),
        cmocka_unit_test(groups_have_a_limit),
        cmocka_unit_test(a_consumer_cannot_change_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
