/* Operations that are retried until they succeed: an event count over a number, and the ends of a channel. */
#include "rows.h"

#include "bide/channel.h"
#include "bide/extend/event_count.h"

/* ---- An event count: a token is one of a number that is taken from; bit 0 says that it is closed ---- */

enum { NUMBER_CLOSED = 1, NUMBER_ONE = 2 };

typedef struct counted {
    bide_event_count event_count;
    bide_atomic(uint32_t) number;
} counted;

typedef struct counted_wait {
    bide_event_count_waiter retry;
    counted *counted;
} counted_wait;

static int counted_attempt(bide_event_count_waiter *retry)
{
    counted *counted = bide_container_of(retry, counted_wait, retry)->counted;
    uint32_t number = bide_atomic_load(&counted->number, acquire); /* partner: counted_close */
    while (number >= NUMBER_ONE) {
        /* acquire: partner is counted_wake. */
        if (bide_atomic_compare_exchange(&counted->number, &number, number - NUMBER_ONE, acquire,
                                         acquire))
            return 0;
    }
    return number == NUMBER_CLOSED ? -EPIPE : -EAGAIN;
}

static bool counted_is_possible(bide_event_count_waiter *retry)
{
    counted *counted = bide_container_of(retry, counted_wait, retry)->counted;
    return bide_atomic_load(&counted->number, relaxed) != 0;
}

static void counted_init(void *object)
{
    PRIMITIVE_OBJECT(counted, counted);
    bide_event_count_init(&counted->event_count);
    bide_atomic_init(&counted->number, 0);
}

static bide_awaiter *counted_begin(void *waiter, void *object)
{
    static const bide_event_count_ops rules = {counted_attempt, counted_is_possible, NULL};
    PRIMITIVE_OBJECT(counted, counted);
    PRIMITIVE_WAITER(counted_wait, wait);
    wait->counted = counted;
    return bide_event_count_wait(&wait->retry, &counted->event_count, &rules);
}

static void counted_wake(void *object)
{
    PRIMITIVE_OBJECT(counted, counted);
    bide_atomic_fetch_add(&counted->number, NUMBER_ONE, release); /* partner: counted_attempt */
    bide_event_count_notify(&counted->event_count, 1);
}

static void counted_hand_on(void *object, void *waiter)
{
    (void)waiter;
    counted_wake(object);
}

static void counted_close(void *object)
{
    PRIMITIVE_OBJECT(counted, counted);
    bide_atomic_fetch_or(&counted->number, NUMBER_CLOSED, release); /* partner: counted_attempt */
    bide_event_count_notify_all(&counted->event_count);
}

static bool counted_is_idle(void *object)
{
    return bide_event_count_is_idle(&((counted *)object)->event_count);
}

static unsigned counted_free_tokens(void *object)
{
    return bide_atomic_load(&((counted *)object)->number, relaxed) / NUMBER_ONE;
}

static void counted_destroy(void *object)
{
    (void)object;
}

const primitive primitive_event_count = {
    .name = "event count",
    .object_size = sizeof(counted),
    .waiter_size = sizeof(counted_wait),
    .traits = IN_ORDER | HANDED | STAYS_HAD | COUNTS_WHEN_CLOSED | KEEPS_WHAT_IT_HAD,
    .tokens = 3,
    .init = counted_init,
    .begin = counted_begin,
    .wake = counted_wake,
    .hand_on = counted_hand_on,
    .close = counted_close,
    .is_idle = counted_is_idle,
    .free_tokens = counted_free_tokens,
    .destroy = counted_destroy,
};

/* ---- Both ends of a channel: after an element is passed on, its slot may still hold another ---- */

enum { CHANNEL_CAPACITY = 3 };

typedef bide_channel_slot(uint64_t) word_slot;
typedef bide_channel(uint64_t) word_channel;

typedef struct words {
    word_channel channel;
    word_slot memory[CHANNEL_CAPACITY];
} words;

typedef struct words_wait {
    bide_channel_waiter waiter;
    uint64_t word;
} words_wait;

static void words_put(words *words)
{
    const uint64_t word = 7;
    while (bide_channel_try_send(&words->channel, &word) == -ENOBUFS)
        bide_platform.yield();
}

static void words_take(words *words)
{
    uint64_t word = 7;
    while (bide_channel_try_recv(&words->channel, &word) == -EAGAIN)
        bide_platform.yield();
    if (word != 7)
        bide_platform.misuse("another word came", __func__, __FILE__, __LINE__);
}

static void words_init(void *object)
{
    PRIMITIVE_OBJECT(words, words);
    bide_channel_init(&words->channel, words->memory, CHANNEL_CAPACITY);
}

static void words_close(void *object)
{
    PRIMITIVE_OBJECT(words, words);
    bide_channel_close(&words->channel);
}

static bool words_are_idle(void *object)
{
    return bide_channel_is_idle_(&((words *)object)->channel.channel);
}

static void words_destroy(void *object)
{
    PRIMITIVE_OBJECT(words, words);
    bide_channel_destroy(&words->channel);
}

/* ---- Receiving: a token is an element ---- */

static bide_awaiter *receive_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(words_wait, wait);
    return bide_channel_recv(&wait->waiter, &words->channel, &wait->word);
}

static int receive_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(words_wait, wait);
    return bide_channel_recv_blocking(&words->channel, &wait->word, deadline);
}

static void receive_wake(void *object)
{
    words_put(object);
}

/* (after the close nobody has it) */
static void receive_hand_on(void *object, void *waiter)
{
    (void)waiter;
    words_put(object);
}

static unsigned receive_free_tokens(void *object)
{
    return (unsigned)bide_channel_count(&((words *)object)->channel);
}

/* Of every row that receives. */
#define RECEIVES                                                                          \
    .object_size = sizeof(words), .tokens = CHANNEL_CAPACITY,                             \
    .traits = IN_ORDER | HANDED | STAYS_HAD | KEEPS_WHAT_IT_HAD, .init = words_init,      \
    .wake = receive_wake, .hand_on = receive_hand_on, .free_tokens = receive_free_tokens, \
    .close = words_close, .is_idle = words_are_idle, .destroy = words_destroy

const primitive primitive_channel_receive = {
    RECEIVES,
    .name = "channel, receive",
    .waiter_size = sizeof(words_wait),
    .begin = receive_begin,
    .wait_blocking = receive_blocking,
};

/* ---- Sending: a token is the room for an element; at first there is none ---- */

static const uint64_t sent_word = 7;

static void send_init(void *object)
{
    words_init(object);
    for (int i = 0; i < CHANNEL_CAPACITY; i++)
        words_put(object);
}

static bide_awaiter *send_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(words_wait, wait);
    return bide_channel_send(&wait->waiter, &words->channel, &sent_word);
}

static int send_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(words, words);
    (void)waiter;
    return bide_channel_send_blocking(&words->channel, &sent_word, deadline);
}

static void send_wake(void *object)
{
    words_take(object);
}

static void send_hand_on(void *object, void *waiter)
{
    (void)waiter;
    words_take(object);
}

static unsigned send_free_tokens(void *object)
{
    return CHANNEL_CAPACITY - (unsigned)bide_channel_count(&((words *)object)->channel);
}

/* Of every row that waits for room. */
#define WAITS_FOR_ROOM                                                           \
    .object_size = sizeof(words), .tokens = CHANNEL_CAPACITY, .init = send_init, \
    .wake = send_wake, .close = words_close, .is_idle = words_are_idle, .destroy = words_destroy

const primitive primitive_channel_send = {
    WAITS_FOR_ROOM,
    .name = "channel, send",
    .waiter_size = sizeof(words_wait),
    .traits = IN_ORDER | HANDED | COUNTS_WHEN_CLOSED | KEEPS_WHAT_IT_HAD,
    .begin = send_begin,
    .wait_blocking = send_blocking,
    .hand_on = send_hand_on,
    .free_tokens = send_free_tokens,
};

/* ---- Receiving many, of which there is room for one: a token is an element ---- */

typedef struct many_wait {
    bide_channel_many_waiter waiter;
    uint64_t word;
    size_t count;
} many_wait;

static bide_awaiter *receive_many_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(many_wait, wait);
    return bide_channel_recv_many(&wait->waiter, &words->channel, &wait->word, 1, &wait->count);
}

static int receive_many_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(many_wait, wait);
    return bide_channel_recv_many_blocking(&words->channel, &wait->word, 1, &wait->count, deadline);
}

const primitive primitive_channel_receive_many = {
    RECEIVES,
    .name = "channel, receive many",
    .waiter_size = sizeof(many_wait),
    .begin = receive_many_begin,
    .wait_blocking = receive_many_blocking,
};

/* ---- Reserving: a token is the room for an element, and the key a permit ---- */

typedef struct permit_wait {
    bide_channel_waiter waiter;
    bide_channel_permit permit;
} permit_wait;

static bide_awaiter *reserve_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(permit_wait, wait);
    return bide_channel_reserve(&wait->waiter, &words->channel, &wait->permit);
}

static int reserve_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(permit_wait, wait);
    return bide_channel_reserve_blocking(&words->channel, &wait->permit, deadline);
}

static void reserve_hand_on(void *object, void *waiter)
{
    PRIMITIVE_WAITER(permit_wait, wait);
    (void)object;
    bide_channel_permit_release(&wait->permit);
}

static unsigned reserve_free_tokens(void *object)
{
    PRIMITIVE_OBJECT(words, words);
    size_t tail = bide_atomic_load(&words->channel.channel.ends.tail, relaxed);
    return send_free_tokens(object) - (unsigned)bide_ring_reserved_(tail);
}

const primitive primitive_channel_reserve = {
    WAITS_FOR_ROOM,
    .name = "channel, reserve",
    .waiter_size = sizeof(permit_wait),
    .traits = IN_ORDER | HANDED | HAS_KEY | COUNTS_WHEN_CLOSED,
    .begin = reserve_begin,
    .wait_blocking = reserve_blocking,
    .hand_on = reserve_hand_on,
    .free_tokens = reserve_free_tokens,
};

/* ---- Reserving up to so many, of which one: the same ---- */

typedef struct permits_wait {
    bide_channel_many_waiter waiter;
    bide_channel_permit permit;
    size_t count;
} permits_wait;

static bide_awaiter *reserve_many_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(permits_wait, wait);
    return bide_channel_reserve_many(&wait->waiter, &words->channel, &wait->permit, 1,
                                     &wait->count);
}

static int reserve_many_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(words, words);
    PRIMITIVE_WAITER(permits_wait, wait);
    return bide_channel_reserve_many_blocking(&words->channel, &wait->permit, 1, &wait->count,
                                              deadline);
}

static void reserve_many_hand_on(void *object, void *waiter)
{
    PRIMITIVE_WAITER(permits_wait, wait);
    (void)object;
    bide_channel_permit_release(&wait->permit);
}

const primitive primitive_channel_reserve_many = {
    WAITS_FOR_ROOM,
    .name = "channel, reserve many",
    .waiter_size = sizeof(permits_wait),
    .traits = IN_ORDER | HANDED | HAS_KEY | COUNTS_WHEN_CLOSED,
    .begin = reserve_many_begin,
    .wait_blocking = reserve_many_blocking,
    .hand_on = reserve_many_hand_on,
    .free_tokens = reserve_free_tokens,
};
