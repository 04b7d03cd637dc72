/*
 * Confinement of servers (programs/common/confine.c): what can still be done after it, and what ends the process. Each
 * case is a child. Where the kernel lacks Landlock or seccomp, or the test is not root, a case is skipped.
 */
#define _GNU_SOURCE
#include "../../programs/common/confine.h"
#include "testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, KILLED = 1000, DIFFERENT = 1 };

static struct confine confine;
static int pipes[2][2];
static char inside[] = "/tmp/confine-inside-XXXXXX", outside[] = "/tmp/confine-outside-XXXXXX",
            parent[] = "/tmp/confine-parent-XXXXXX";

/* ---- Children ---- */

/* The exit status of a function in a child; of a signal, KILLED more than its number. */
static int in_a_child(int (*function)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        _exit(function());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The exit status for a result: 0 if it is that of the errno (0: success). */
static int expect(long result, int error)
{
    int found = result >= 0 ? 0 : errno;
    if (found == error)
        return 0;
    fprintf(stderr, "# expected %s, not %s\n", strerror(error), strerror(found));
    return DIFFERENT;
}

static void in_directory(char *path, size_t size, const char *directory, const char *name)
{
    snprintf(path, size, "%s/%s", directory, name);
}

static int open_in(const char *directory, const char *name, int flags)
{
    char path[64];
    in_directory(path, sizeof path, directory, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

static void skip_without_landlock(void)
{
    enum { CREATE = 444, VERSION = 1 };
    if (syscall(CREATE, NULL, 0ul, (unsigned long)VERSION) < 1) {
        print_message("this kernel has no Landlock\n");
        skip();
    }
}

static int probe_seccomp(void)
{
    /* (with a filter that cannot be read, it says so) */
    enum { SET_FILTER = 1 };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, (unsigned long)SET_FILTER, 0ul, NULL) == -1 && errno == EFAULT ? 0 : DIFFERENT;
}

static void skip_without_seccomp(void)
{
    if (in_a_child(probe_seccomp) != 0) {
        print_message("this kernel has no seccomp\n");
        skip();
    }
}

static int probe_root(void)
{
    return geteuid() == 0 && setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                   setresuid(NOBODY, NOBODY, NOBODY) == 0
               ? 0
               : DIFFERENT;
}

static void skip_without_root(void)
{
    if (in_a_child(probe_root) != 0) {
        print_message("the test cannot change its user\n");
        skip();
    }
}

static void begin(unsigned calls)
{
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_allow(&confine, inside, CONFINE_READ | CONFINE_WRITE);
    confine_limit_files(&confine, 80);
    confine_limit_calls(&confine, calls);
}

static void begin_files(unsigned access, unsigned port)
{
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_allow(&confine, inside, access);
    confine_limit_files(&confine, port);
}

static void begin_calls(unsigned calls)
{
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_limit_calls(&confine, calls);
}

/* ---- Files ---- */

static int reads_inside(void)
{
    begin_files(CONFINE_READ, 0);
    return expect(open_in(inside, "file", O_RDONLY), 0) | expect(open_in(inside, "", O_RDONLY | O_DIRECTORY), 0);
}

static int reads_outside(void)
{
    begin_files(CONFINE_READ, 0);
    return expect(open_in(outside, "file", O_RDONLY), EACCES) | expect(open("/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES) |
           expect(open_in(outside, "", O_RDONLY | O_DIRECTORY), EACCES);
}

static int leaves_by_a_link(void)
{
    begin_files(CONFINE_READ, 0);
    return expect(open_in(inside, "link", O_RDONLY), EACCES);
}

static int writes_where_it_may_read(void)
{
    begin_files(CONFINE_READ, 0);
    return expect(open_in(inside, "file", O_WRONLY), EACCES) | expect(open_in(inside, "new", O_WRONLY | O_CREAT), EACCES);
}

static int writes_where_it_may(void)
{
    char from[64], to[64];
    in_directory(from, sizeof from, inside, "new");
    in_directory(to, sizeof to, inside, "newer");
    begin_files(CONFINE_READ | CONFINE_WRITE, 0);
    return expect(open_in(inside, "new", O_WRONLY | O_CREAT | O_TRUNC), 0) | expect(rename(from, to), 0) |
           expect(unlink(to), 0) | expect(open_in(outside, "new", O_WRONLY | O_CREAT), EACCES);
}

static int keeps_what_is_open(void)
{
    char byte;
    int fd = open_in(outside, "file", O_RDONLY);
    begin_files(CONFINE_READ, 0);
    return expect(read(fd, &byte, 1), 0);
}

static void *read_outside(void *result)
{
    *(int *)result = expect(open_in(outside, "file", O_RDONLY), EACCES);
    return NULL;
}

static int threads_are_limited(void)
{
    int result = DIFFERENT;
    pthread_t thread;
    begin_files(CONFINE_READ, 0);
    if (pthread_create(&thread, NULL, read_outside, &result) != 0)
        return DIFFERENT;
    pthread_join(thread, NULL);
    return result;
}

/* A log is opened again after it was renamed, and a certificate replaced: the directory counts. */
static int files_that_are_replaced(void)
{
    char path[64];
    in_directory(path, sizeof path, inside, "link");
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_allow_replaced(&confine, path, CONFINE_READ);
    confine_allow_replaced(&confine, "/dev/zero", CONFINE_READ);
    confine_limit_files(&confine, 0);
    return expect(open_in(inside, "file", O_RDONLY), 0) | expect(open_in(inside, "link", O_RDONLY), 0) |
           expect(open_in(outside, "file", O_RDONLY), 0) | expect(open("/dev/zero", O_RDONLY | O_CLOEXEC), 0) |
           expect(open("/dev/full", O_RDONLY | O_CLOEXEC), EACCES) | expect(open("/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES);
}

/* `inside` has a link to a file of `outside`, and one to a directory, whose parent does not count. */
static int files_that_links_lead_to(void)
{
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_allow_links(&confine, inside, CONFINE_READ);
    confine_allow_links(&confine, "/there/is/no/such/directory", CONFINE_READ);
    confine_limit_files(&confine, 0);
    return expect(open_in(inside, "file", O_RDONLY), 0) | expect(open_in(inside, "link", O_RDONLY), 0) |
           expect(open_in(outside, "file", O_RDONLY), 0) | expect(open_in(outside, "file", O_WRONLY), EACCES) |
           expect(open_in(parent, "file", O_RDONLY), EACCES) | expect(open("/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES);
}

static int files_that_links_do_not_lead_to(void)
{
    begin_files(CONFINE_READ, 0);
    return expect(open_in(inside, "link", O_RDONLY), EACCES);
}

/* As /dev/stdout may be: it has no directory, and can be opened again. */
static int a_pipe_is_opened_again(void)
{
    char path[64];
    if (pipe(pipes[0]) != 0)
        return DIFFERENT;
    snprintf(path, sizeof path, "/proc/self/fd/%d", pipes[0][1]);
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_allow_replaced(&confine, path, CONFINE_WRITE);
    confine_limit_files(&confine, 0);
    return expect(open(path, O_WRONLY | O_CLOEXEC), 0);
}

static int many_files(void)
{
    char path[64];
    in_directory(path, sizeof path, inside, "new");
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    for (int i = 0; i < 3000; i++)
        confine_allow_replaced(&confine, path, i % 2 == 0 ? CONFINE_READ : CONFINE_WRITE);
    confine_limit_files(&confine, 0);
    return expect(open_in(inside, "file", O_RDONLY), 0) | expect(open_in(inside, "new", O_WRONLY | O_CREAT), 0) |
           expect(unlink(path), 0) | expect(open_in(outside, "file", O_RDONLY), EACCES);
}

static int without_limits(void)
{
    const int before = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    confine_init(&confine, "confine");
    confine.mode = CONFINE_OFF;
    confine_allow(&confine, inside, CONFINE_READ);
    confine_limit_files(&confine, 0);
    confine_limit_calls(&confine, 0);
    return expect(open_in(outside, "file", O_RDONLY), 0) | expect(syscall(SYS_getppid), 0) |
           (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == before ? 0 : DIFFERENT);
}

static int no_new_privileges(void)
{
    begin_files(CONFINE_READ, 0);
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : DIFFERENT;
}

static void opens_only_files_below_what_it_is_given(void **state)
{
    (void)state;
    skip_without_landlock();
    assert_int_equal(in_a_child(reads_inside), 0);
    assert_int_equal(in_a_child(reads_outside), 0);
    assert_int_equal(in_a_child(leaves_by_a_link), 0);
    assert_int_equal(in_a_child(keeps_what_is_open), 0);
    assert_int_equal(in_a_child(threads_are_limited), 0);
    assert_int_equal(in_a_child(no_new_privileges), 0);
}

static void writes_only_where_it_may(void **state)
{
    (void)state;
    skip_without_landlock();
    assert_int_equal(in_a_child(writes_where_it_may_read), 0);
    assert_int_equal(in_a_child(writes_where_it_may), 0);
}

static void a_file_may_be_replaced_by_another_of_its_name(void **state)
{
    (void)state;
    skip_without_landlock();
    assert_int_equal(in_a_child(files_that_are_replaced), 0);
}

static void links_of_a_directory_may_be_followed(void **state)
{
    (void)state;
    skip_without_landlock();
    assert_int_equal(in_a_child(files_that_links_lead_to), 0);
    assert_int_equal(in_a_child(files_that_links_do_not_lead_to), 0);
}

static void a_pipe_can_be_allowed(void **state)
{
    (void)state;
    skip_without_landlock();
    if (access("/proc/self/fd", X_OK) != 0) {
        print_message("/proc is missing\n");
        skip();
    }
    assert_int_equal(in_a_child(a_pipe_is_opened_again), 0);
}

static void files_of_a_directory_count_once(void **state)
{
    (void)state;
    skip_without_landlock();
    assert_int_equal(in_a_child(many_files), 0);
}

static void is_left_as_it_is_when_off(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(without_limits), 0);
}

/* ---- TCP ---- */

/* Binds or connects to the port of 127.0.0.1. */
static int use_port(unsigned port, bool binds)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return binds ? bind(fd, (const struct sockaddr *)&address, sizeof address)
                 : connect(fd, (const struct sockaddr *)&address, sizeof address);
}

static int binds_one_port(void)
{
    begin_files(CONFINE_READ, 1234);
    return expect(use_port(4321, true), EACCES) | expect(use_port(4321, false), EACCES);
}

static int binds_any_port(void)
{
    begin_files(CONFINE_READ, 0);
    return expect(use_port(0, true), 0) | expect(use_port(4321, false), EACCES);
}

static void begin_ports(unsigned port, unsigned further)
{
    confine_init(&confine, "confine");
    confine.mode = CONFINE_ON;
    confine_allow_port(&confine, further);
    confine_limit_files(&confine, port);
}

/* Others may have the port: then the error is EADDRINUSE. */
static int expect_may_bind(unsigned port)
{
    return use_port(port, true) == 0 || errno == EADDRINUSE ? 0 : expect(-1, 0);
}

static int binds_two_ports(void)
{
    begin_ports(4323, 4322);
    return expect_may_bind(4322) | expect_may_bind(4323) | expect(use_port(4321, true), EACCES) |
           expect(use_port(0, true), EACCES);
}

static int binds_a_port_and_any_other(void)
{
    begin_ports(80, 0);
    return expect(use_port(0, true), 0) | expect(use_port(4321, false), EACCES);
}

static int binds_no_port(void)
{
    begin_files(CONFINE_READ, CONFINE_NO_PORT);
    return expect(use_port(0, true), EACCES) | expect(use_port(4321, true), EACCES) |
           expect(use_port(4321, false), EACCES);
}

static void connects_to_nothing_and_binds_its_ports(void **state)
{
    enum { CREATE = 444, VERSION = 1, WITH_TCP = 4 };
    (void)state;
    skip_without_landlock();
    if (syscall(CREATE, NULL, 0ul, (unsigned long)VERSION) < WITH_TCP) {
        print_message("Landlock of this kernel does not know TCP\n");
        skip();
    }
    assert_int_equal(in_a_child(binds_one_port), 0);
    assert_int_equal(in_a_child(binds_any_port), 0);
    assert_int_equal(in_a_child(binds_two_ports), 0);
    assert_int_equal(in_a_child(binds_a_port_and_any_other), 0);
    assert_int_equal(in_a_child(binds_no_port), 0);
}

/* ---- System calls ---- */

static int executes(void)
{
    begin_calls(~0u);
    execl("/bin/true", "true", NULL);
    return DIFFERENT;
}

static int becomes_root(void)
{
    begin_calls(~0u);
    return (int)syscall(SYS_setuid, 0ul);
}

static int makes_a_process(void)
{
    begin_calls(~0u);
    return (int)syscall(SYS_clone, (unsigned long)SIGCHLD, 0ul, 0ul, 0ul, 0ul);
}

static int traces(void)
{
    begin_calls(~0u);
    return (int)syscall(SYS_ptrace, 0ul, 0ul, 0ul, 0ul);
}

static int makes_another_call(void)
{
    begin_calls(~0u);
    return expect(syscall(SYS_getppid), ENOSYS);
}

static int maps_code(void)
{
    begin_calls(0);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED || expect(mprotect(memory, 4096, PROT_READ | PROT_EXEC), EACCES) ||
           expect(mprotect(memory, 4096, PROT_READ), 0) ||
           expect(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0, EACCES);
}

static int loads_libraries(void)
{
    begin_calls(CONFINE_CONNECTS);
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int connects(void)
{
    begin_calls(CONFINE_URING | CONFINE_STORES);
    return expect(socket(AF_INET, SOCK_STREAM, 0), ENOSYS);
}

static int stores(void)
{
    begin_calls(CONFINE_URING | CONFINE_CONNECTS);
    return expect(fsync(1), ENOSYS);
}

static int enters_a_ring(void)
{
    begin_calls(CONFINE_STORES | CONFINE_CONNECTS);
    return expect(syscall(SYS_io_uring_enter, -1, 0u, 0u, 0u, NULL, 0ul), ENOSYS);
}

static int makes_a_ring(void)
{
    begin_calls(~0u);
    return expect(syscall(SYS_io_uring_setup, 0u, NULL), ENOSYS);
}

static void *find_name(void *name)
{
    prctl(PR_SET_NAME, name, 0, 0, 0);
    return name;
}

static int makes_a_thread(void)
{
    static char name[] = "another";
    pthread_t thread;
    void *result = NULL;
    begin(CONFINE_URING);
    if (pthread_create(&thread, NULL, find_name, name) != 0 || pthread_join(thread, &result) != 0)
        return DIFFERENT;
    return result == name ? 0 : DIFFERENT;
}

static volatile sig_atomic_t signals_taken;

static void take_signal(int number)
{
    (void)number;
    signals_taken++;
}

/* (Without SA_SIGINFO: some processors return from it by another call.) */
static int handles_a_signal(void)
{
    const struct sigaction action = {.sa_handler = take_signal};
    sigaction(SIGUSR1, &action, NULL);
    begin_calls(0);
    raise(SIGUSR1);
    return signals_taken == 1 ? 0 : DIFFERENT;
}

static int ends_by_abort(void)
{
    begin_calls(0);
    abort();
}

/* Waits for a byte, and then executes a program. */
static void *execute_later(void *unused)
{
    char byte;
    if (write(pipes[0][1], "x", 1) == 1 && read(pipes[1][0], &byte, 1) == 1)
        execl("/bin/true", "true", NULL);
    return unused;
}

static int another_thread_executes(void)
{
    char byte;
    pthread_t thread;
    if (pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0 || pthread_create(&thread, NULL, execute_later, NULL) != 0 ||
        read(pipes[0][0], &byte, 1) != 1)
        return DIFFERENT;
    begin_calls(0);
    if (write(pipes[1][1], "x", 1) == 1)
        pthread_join(thread, NULL);
    return DIFFERENT;
}

static void calls_that_lead_out_kill(void **state)
{
    (void)state;
    skip_without_seccomp();
    assert_int_equal(in_a_child(executes), KILLED + SIGSYS);
    assert_int_equal(in_a_child(becomes_root), KILLED + SIGSYS);
    assert_int_equal(in_a_child(makes_a_process), KILLED + SIGSYS);
    assert_int_equal(in_a_child(traces), KILLED + SIGSYS);
    assert_int_equal(in_a_child(another_thread_executes), KILLED + SIGSYS);
}

static void calls_that_are_not_listed_fail(void **state)
{
    (void)state;
    skip_without_seccomp();
    assert_int_equal(in_a_child(makes_another_call), 0);
    assert_int_equal(in_a_child(connects), 0);
    assert_int_equal(in_a_child(stores), 0);
    assert_int_equal(in_a_child(enters_a_ring), 0);
    assert_int_equal(in_a_child(makes_a_ring), 0);
}

static void memory_is_not_executed(void **state)
{
    (void)state;
    skip_without_seccomp();
    assert_int_equal(in_a_child(maps_code), 0);
    assert_int_equal(in_a_child(loads_libraries), 0);
}

static void threads_signals_and_abort_still_work(void **state)
{
    (void)state;
    skip_without_seccomp();
    skip_without_landlock();
    assert_int_equal(in_a_child(makes_a_thread), 0);
    assert_int_equal(in_a_child(handles_a_signal), 0);
    assert_int_equal(in_a_child(ends_by_abort), KILLED + SIGABRT);
}

/* ---- A kernel that lacks a part ---- */

/* Lets Landlock and seccomp fail with ENOSYS. */
static int take_away(void)
{
    enum { CREATE = 444, SET_FILTER = 1 };
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof instructions / sizeof instructions[0], instructions};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           syscall(SYS_seccomp, (unsigned long)SET_FILTER, 0ul, &program) != 0;
}

/* Limits this process, where they are missing. Returns what it writes to standard error. */
static int limit_without(enum confine_mode mode, char *text, size_t size)
{
    if (pipe(pipes[0]) != 0 || take_away() != 0)
        return DIFFERENT;
    confine_init(&confine, "confine");
    confine.mode = mode;
    dup3(pipes[0][1], STDERR_FILENO, 0);
    confine_limit_files(&confine, 0);
    confine_limit_calls(&confine, 0);
    dprintf(STDERR_FILENO, "end\n");
    ssize_t count = read(pipes[0][0], text, size - 1);
    text[count > 0 ? count : 0] = '\0';
    return 0;
}

static int notes_what_is_missing(void)
{
    char text[256];
    char *end = NULL;
    if (limit_without(CONFINE_AUTO, text, sizeof text) != 0 || (end = strchr(text, '\n')) == NULL)
        return DIFFERENT;
    return strstr(text, "confine: not confined: Landlock: ") == text && strcmp(end + 1, "end\n") == 0 ? 0 : DIFFERENT;
}

static int needs_what_is_missing(void)
{
    char text[256];
    (void)limit_without(CONFINE_ON, text, sizeof text);
    return 0;
}

static void a_missing_part_is_noted_once_or_an_error(void **state)
{
    (void)state;
    skip_without_seccomp();
    assert_int_equal(in_a_child(notes_what_is_missing), 0);
    assert_int_equal(in_a_child(needs_what_is_missing), 1);
}

/* ---- The user ---- */

static void *open_as_another_thread(void *result)
{
    char byte;
    if (write(pipes[0][1], "x", 1) == 1 && read(pipes[1][0], &byte, 1) == 1)
        *(int *)result = expect(open_in(inside, "file", O_RDONLY), EACCES);
    return NULL;
}

static int becomes_nobody(void)
{
    char byte;
    int result = DIFFERENT;
    gid_t extra = 4;
    pthread_t thread;
    confine_init(&confine, "confine");
    confine.user = "65534:65534";
    if (setgroups(1, &extra) != 0 || pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0 ||
        pthread_create(&thread, NULL, open_as_another_thread, &result) != 0 || read(pipes[0][0], &byte, 1) != 1)
        return DIFFERENT;
    confine_enter(&confine);
    confine_drop_user(&confine);
    if (write(pipes[1][1], "x", 1) != 1 || pthread_join(thread, NULL) != 0)
        return DIFFERENT;
    return result | expect(open_in(inside, "file", O_RDONLY), EACCES) | expect(setresuid(0, 0, 0), EPERM) |
           expect(setgroups(1, &extra), EPERM) | expect(chroot("/"), EPERM) | (getgroups(0, NULL) == 0 ? 0 : DIFFERENT) |
           (getuid() == NOBODY && getgid() == NOBODY ? 0 : DIFFERENT);
}

static int becomes(const char *user)
{
    confine_init(&confine, "confine");
    confine.user = user;
    confine_enter(&confine);
    confine_drop_user(&confine);
    return 0;
}

static int stays_root(void)
{
    return becomes("0:65534");
}

static int stays_in_roots_group(void)
{
    return becomes("65534:0");
}

static int becomes_a_stranger(void)
{
    return becomes("there-is-no-such-user");
}

static int becomes_a_number(void)
{
    return becomes("4000000001");
}

static int becomes_nothing(void)
{
    return becomes("4294967295:4294967295");
}

static int is_not_root(void)
{
    return setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0 ? 2 : becomes("4242:4242");
}

static int sees_the_new_root(void)
{
    confine_init(&confine, "confine");
    confine.chroot = inside;
    confine_enter(&confine);
    return expect(open("/file", O_RDONLY | O_CLOEXEC), 0) | expect(open("file", O_RDONLY | O_CLOEXEC), 0) |
           expect(open("/etc/passwd", O_RDONLY | O_CLOEXEC), ENOENT);
}

static int probe_chroot(void)
{
    return chroot("/") == 0 ? 0 : DIFFERENT;
}

static void nothing_is_left_of_root(void **state)
{
    (void)state;
    skip_without_root();
    assert_int_equal(in_a_child(becomes_nobody), 0);
}

static void a_user_that_cannot_be_had_is_an_error(void **state)
{
    (void)state;
    skip_without_root();
    assert_int_equal(in_a_child(stays_root), 1);
    assert_int_equal(in_a_child(stays_in_roots_group), 1);
    assert_int_equal(in_a_child(becomes_a_stranger), 1);
    assert_int_equal(in_a_child(becomes_a_number), 1); /* needs a group */
    assert_int_equal(in_a_child(becomes_nothing), 1);
    assert_int_equal(in_a_child(is_not_root), 1);
}

static void files_are_those_of_the_new_root(void **state)
{
    (void)state;
    if (in_a_child(probe_chroot) != 0) {
        print_message("the test cannot change its root\n");
        skip();
    }
    assert_int_equal(in_a_child(sees_the_new_root), 0);
}

/* ---- Main ---- */

static int make_files(void **state)
{
    char path[64], target[64];
    (void)state;
    if (mkdtemp(inside) == NULL || mkdtemp(outside) == NULL || mkdtemp(parent) == NULL)
        return -1;
    close(open_in(parent, "file", O_WRONLY | O_CREAT));
    in_directory(path, sizeof path, inside, "link-to-directory");
    in_directory(target, sizeof target, parent, "directory");
    if (mkdir(target, 0700) != 0 || symlink(target, path) != 0)
        return -1;
    close(open_in(inside, "file", O_WRONLY | O_CREAT));
    close(open_in(outside, "file", O_WRONLY | O_CREAT));
    in_directory(path, sizeof path, inside, "link");
    in_directory(target, sizeof target, outside, "file");
    return symlink(target, path);
}

static int remove_files(void **state)
{
    char path[64];
    (void)state;
    in_directory(path, sizeof path, inside, "file");
    unlink(path);
    in_directory(path, sizeof path, inside, "link");
    unlink(path);
    in_directory(path, sizeof path, outside, "file");
    unlink(path);
    in_directory(path, sizeof path, inside, "link-to-directory");
    unlink(path);
    in_directory(path, sizeof path, parent, "file");
    unlink(path);
    in_directory(path, sizeof path, parent, "directory");
    return rmdir(path) | rmdir(inside) | rmdir(outside) | rmdir(parent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_only_files_below_what_it_is_given),
        cmocka_unit_test(writes_only_where_it_may),
        cmocka_unit_test(a_file_may_be_replaced_by_another_of_its_name),
        cmocka_unit_test(links_of_a_directory_may_be_followed),
        cmocka_unit_test(a_pipe_can_be_allowed),
        cmocka_unit_test(files_of_a_directory_count_once),
        cmocka_unit_test(is_left_as_it_is_when_off),
        cmocka_unit_test(connects_to_nothing_and_binds_its_ports),
        cmocka_unit_test(calls_that_lead_out_kill),
        cmocka_unit_test(calls_that_are_not_listed_fail),
        cmocka_unit_test(memory_is_not_executed),
        cmocka_unit_test(threads_signals_and_abort_still_work),
        cmocka_unit_test(a_missing_part_is_noted_once_or_an_error),
        cmocka_unit_test(nothing_is_left_of_root),
        cmocka_unit_test(a_user_that_cannot_be_had_is_an_error),
        cmocka_unit_test(files_are_those_of_the_new_root),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
