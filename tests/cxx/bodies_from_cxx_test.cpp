// Bodies in C++11: each kind of coroutine, written with the macros of bide/coroutine.h, over the
// library in C.
// BIDE_STANDARD_C=0 has them by labels as values.

#include "bide/bide.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined __unix__
#include <sys/wait.h>
#include <unistd.h>
#endif

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            return 1;                                                            \
        }                                                                        \
    } while (0)

// (a function beside the struct of its name: g++ says so if asked for what shadows)
#if defined __GNUC__
#pragma GCC diagnostic ignored "-Wshadow"
#endif

namespace
{

// ---- Children: a struct, its function and a member all called alike ----

struct digit {
    bide_task task;
    char text;
    int number;
};

bide_coroutine(digit_body)
{
    bide_begin(digit_body, struct digit * self);
    if (self->text < '0' || self->text > '9')
        bide_return(-EINVAL);
    self->number = self->text - '0';
    bide_end();
}

BIDE_MUST_AWAIT
bide_awaiter *digit(struct digit *child, char text)
{
    child->text = text;
    return bide_task_init(&child->task, &digit_body);
}

// Counts its live instances.
int living;

struct counted {
    counted()
    {
        living++;
    }
    ~counted()
    {
        living--;
    }
    counted(const counted &) = delete;
    counted &operator=(const counted &) = delete;
};

// A frame with members that have constructors. Objects live where no await is in their scope.
struct sum {
    bide_task task;
    std::string text;
    size_t i;
    int total;
    std::string finished;
    struct digit digit;
};

bide_coroutine(sum_body)
{
    bide_begin(sum_body, struct sum * self);
    {
        counted one;
        if (self->text.empty())
            bide_return(-ENODATA);
    }
    self->total = 0;
    for (self->i = 0; self->i < self->text.size(); self->i++) {
        bide_try(digit(&self->digit, self->text[self->i]));
        int number = self->digit.number;
        self->total += number;
    }
    counted last;
    std::string result = std::to_string(self->total);
    for (char c : result)
        self->finished += c;
    bide_finally();
    const std::string end = ".";
    self->finished += end;
    bide_end();
}

int children()
{
    const struct {
        const char *text;
        int status;
        const char *finished;
    } cases[] = {{"12345", 0, "15."}, {"12x45", -EINVAL, "."}, {"", -ENODATA, "."}};
    for (const auto &c : cases) {
        struct sum sum;
        sum.text = c.text;
        CHECK(bide_sync_wait(bide_task_init(&sum.task, &sum_body)) == c.status);
        CHECK(sum.finished == c.finished && living == 0);
    }
    return 0;
}

// ---- A declared body, and a kind of one's own ----

struct failing {
    bide_frame frame;
    int error;
};

} // namespace

bide_declare_body(bodies_from_cxx_failing_body);

namespace
{

int declared()
{
    failing f;
    f.error = -EXDEV;
    CHECK(bide_sync_wait(bide_frame_init(&f.frame, &bodies_from_cxx_failing_body)) == -EXDEV);
    return 0;
}

const bide_coroutine_type failing_type = {"failing", nullptr, nullptr, nullptr, nullptr,
                                          nullptr,   nullptr, nullptr, nullptr, nullptr,
                                          nullptr,   nullptr, nullptr, nullptr};

} // namespace

bide_declared_coroutine_of(failing_type, bodies_from_cxx_failing_body)
{
    bide_begin(bodies_from_cxx_failing_body, failing * self);
    bide_return(self->error);
    bide_end();
}

namespace
{

// ---- Frames of other forms: a base class, a constructor, a reference ----

struct derived : bide_task {
    int calls;
};

bide_coroutine(derived_body)
{
    bide_begin(derived_body, derived * self);
    self->calls++;
    bide_end();
}

struct constructed {
    explicit constructed(int &calls_) : task(), calls(calls_)
    {
    }
    bide_task task;
    int &calls;
};

bide_coroutine(constructed_body)
{
    bide_begin(constructed_body, constructed *const self);
    self->calls++;
    bide_return(-EDOM);
    bide_end();
}

int frames()
{
    derived d;
    d.calls = 0;
    CHECK(bide_sync_wait(bide_task_init(&d, &derived_body)) == 0);
    constructed c(d.calls);
    CHECK(bide_sync_wait(bide_task_init(&c.task, &constructed_body)) == -EDOM);
    CHECK(d.calls == 2);
    return 0;
}

// ---- Events, and being destroyed ----

struct listener {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int heard, status, cleaned;
};

bide_coroutine(listener_body)
{
    bide_begin(listener_body, listener * self);
    while (self->heard < 3) {
        bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
        bide_event_reset(self->event);
        if (self->status == 0)
            self->heard++;
    }
    bide_finally();
    self->cleaned++;
    bide_end();
}

int events()
{
    for (int rings = 0; rings <= 3; rings++) {
        bide_event event;
        bide_spawned spawned;
        listener l;
        l.event = &event;
        l.heard = l.cleaned = 0;
        bide_event_init(&event, false);
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&l.task, &listener_body));
        for (int i = 0; i < rings; i++)
            bide_event_set(&event);
        CHECK(l.heard == rings && l.cleaned == (rings == 3));
        if (rings < 3)
            bide_destroy(&spawned.root.frame);
        CHECK(l.cleaned == 1);
    }
    return 0;
}

// ---- A channel, between two in a scope; and a select ----

typedef bide_channel(int) numbers;

struct sender {
    bide_task task;
    numbers *to;
    int i;
    bide_channel_waiter send;
};

bide_coroutine(sender_body)
{
    bide_begin(sender_body, sender * self);
    for (self->i = 1; self->i <= 10; self->i++)
        bide_try(bide_channel_send(&self->send, self->to, &self->i));
    bide_finally();
    bide_channel_close(self->to);
    bide_end();
}

struct receiver {
    bide_task task;
    numbers *from;
    bide_event *quit;
    int total, number, quits;
    bide_channel_waiter receive;
    bide_event_waiter wait;
    bide_select_of(2) select;
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, receiver * self);
    for (;;) {
        bide_try_or_break(bide_select_any_of(
            &self->select, bide_channel_recv(&self->receive, self->from, &self->number),
            bide_event_wait(&self->wait, self->quit)));
        switch (bide_select_winner(&self->select.any)) {
        case 0:
            self->total += self->number;
            break;
        default:
            self->quits++;
            bide_event_reset(self->quit);
            break;
        }
    }
    bide_end();
}

struct both {
    bide_task task;
    bide_when_of(2) together;
    sender sends;
    receiver receives;
};

bide_coroutine(both_body)
{
    bide_begin(both_body, both * self);
    bide_try(bide_when_all_of(&self->together, bide_task_init(&self->receives.task, &receiver_body),
                              bide_call(&self->sends, &sender_body, i = 1)));
    bide_end();
}

int channels()
{
    bide_channel_slot(int) memory[2];
    numbers channel;
    bide_event quit;
    bide_run_loop loop;
    both b;
    bide_channel_init(&channel, memory, 2);
    bide_event_init(&quit, true);
    bide_run_loop_init(&loop);
    b.sends.to = b.receives.from = &channel;
    b.receives.quit = &quit;
    b.receives.total = b.receives.quits = 0;
    b.receives.select.random = 1;
    CHECK(bide_run_loop_wait(&loop, bide_task_init(&b.task, &both_body)) == 0);
    CHECK(b.receives.total == 55 && b.receives.quits == 1);
    bide_run_loop_destroy(&loop);
    return 0;
}

// ---- Generators ----

struct count {
    bide_generator generator;
    int i, n, *ended;
};

bide_generator_coroutine(count_body)
{
    bide_begin(count_body, struct count * self);
    for (self->i = 0; self->i < self->n; self->i++)
        bide_yield(&self->i);
    bide_finally();
    ++*self->ended;
    bide_end();
}

bide_generator *count(struct count *self, int n, int *ended)
{
    self->n = n;
    self->ended = ended;
    return bide_generator_init(&self->generator, &count_body);
}

struct walk {
    bide_recursive_generator generator;
    struct walk *below;
    int depth;
};

bide_recursive_generator_coroutine(walk_body)
{
    bide_begin(walk_body, struct walk * self);
    if (self->depth > 0) {
        self->below->depth = self->depth - 1;
        self->below->below = self->below + 1;
        bide_yield_from(bide_recursive_generator_init(&self->below->generator, &walk_body));
    }
    bide_yield(&self->depth);
    bide_end();
}

int generators()
{
    struct count frame;
    struct walk walks[4];
    int total = 0, ended = 0;
    bide_for (int *, number, count(&frame, 5, &ended))
        total += *number;
    CHECK(total == 10 && ended == 1);
    bide_for (const int *, number, count(&frame, 5, &ended)) {
        if (*number == 2)
            break;
        total += *number;
    }
    CHECK(total == 11 && ended == 2);
    walks[0].depth = 3;
    walks[0].below = &walks[1];
    total = 0;
    bide_for_recursive (int *, depth,
                        bide_recursive_generator_init(&walks[0].generator, &walk_body))
        total = 10 * total + *depth;
    CHECK(total == 123);
    return 0;
}

struct slow_count {
    bide_async_generator generator;
    int i;
    bide_event *step;
    bide_event_waiter wait;
};

bide_async_generator_coroutine(slow_count_body)
{
    bide_begin(slow_count_body, slow_count * self);
    for (self->i = 1; self->i <= 4; self->i++) {
        bide_try(bide_event_wait(&self->wait, self->step));
        bide_event_reset(self->step);
        bide_yield(&self->i);
    }
    bide_end();
}

struct reader {
    bide_task task;
    slow_count numbers;
    bide_async_generator_next_operation next;
    int total;
};

bide_coroutine(reader_body)
{
    bide_begin(reader_body, reader * self);
    bide_for_await (&self->next,
                    bide_async_generator_init(&self->numbers.generator, &slow_count_body)) {
        int number = *static_cast<const int *>(self->next.value);
        if (number == 4)
            break;
        self->total += number;
    }
    bide_return(self->total);
    bide_end();
}

int async_generators()
{
    bide_event step;
    bide_spawned spawned;
    reader r;
    r.numbers.step = &step;
    r.total = 0;
    bide_event_init(&step, false);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&r.task, &reader_body));
    for (int i = 0; i < 4; i++) {
        CHECK(!bide_event_is_set(&spawned.ended));
        bide_event_set(&step);
    }
    CHECK(bide_event_is_set(&spawned.ended) && r.total == 6 && spawned.root.status == 6);
    return 0;
}

// ---- Exceptions: caught inside, or the end of the program ----

struct thrower {
    bide_task task;
    bide_event_waiter wait;
    bide_event *event;
    bool catches;
};

void throw_something(const char *what)
{
    throw std::runtime_error(what);
}

bide_coroutine(thrower_body)
{
    bide_begin(thrower_body, thrower *self);
    bide_await(bide_event_wait(&self->wait, self->event));
    if (self->catches) {
        try {
            throw_something("caught");
        } catch (const std::exception &) {
            bide_return(-EDOM);
        }
    }
    throw_something("not caught");
    bide_end();
}

int thrown(bool catches)
{
    bide_event event;
    thrower t;
    bide_event_init(&event, true);
    t.event = &event;
    t.catches = catches;
    return bide_sync_wait(bide_task_init(&t.task, &thrower_body));
}

int exceptions()
{
    CHECK(thrown(true) == -EDOM);
#if defined __unix__
    int ends[2], status = 0;
    char text[512];
    size_t length = 0;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        try {
            thrown(false);
        } catch (...) {
        }
        _exit(0); // it has come through the library
    }
    close(ends[1]);
    for (ssize_t count; length < sizeof text - 1 &&
                        (count = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
        length += static_cast<size_t>(count);
    text[length] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(std::strstr(text, "not caught") != NULL);
#endif
    return 0;
}

} // namespace

int main()
{
    return children() + declared() + frames() + events() + channels() + generators() +
           async_generators() + exceptions();
}
