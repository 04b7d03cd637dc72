/*
 * Rooms: who is in them, what was said, and what is new for each member. All on one thread.
 *
 * What is sent to clients are lines of fields with tabs between. The first is a word; a text is the
 * last, and may have tabs:
 *
 *     welcome  NAME               under this name, in the room
 *     who      NAME NAME ...      who is there
 *     old      TIME NAME TEXT     was said before
 *     said     TIME NAME TEXT
 *     joined   TIME NAME
 *     left     TIME NAME
 *     missed   COUNT              so many lines were lost, because this client is too slow
 */
#ifndef CHAT_ROOM_H
#define CHAT_ROOM_H

#include <bide/broadcast.h>
#include <bide/event.h>
#include <stdbool.h>

enum {
    MAX_TEXT = 1000, /* bytes of a message */
    MAX_NAME = 32,   /* bytes of a name, of a member or a room */
    MAX_LINE = MAX_TEXT + MAX_NAME + 64,
    HISTORY = 50,
    BACKLOG = 64, /* lines that a member may be behind */
    MAX_ROOMS = 64
};

struct line {
    unsigned size;
    char text[MAX_LINE];
};

typedef bide_broadcast(struct line) line_broadcast;
typedef bide_broadcast_slot(struct line) line_slot;
typedef bide_broadcast_subscriber(struct line) line_subscriber;

/* Before all. */
void rooms_init(void);

struct room;

struct member {
    struct room *room; /* NULL: in none */
    char name[MAX_NAME + 8];
    line_subscriber news;
    unsigned long before;         /* so much was said before it came */
    struct member *next, **place; /* in the room's list */
};

/*
 * Enters a room, which is made if there is none of that name. The name becomes one that nobody else
 * has there. 0, -EINVAL (a name is empty, or no UTF-8), -ENOMEM, -EMFILE (too many rooms).
 */
int room_enter(struct member *member, const char *room, size_t room_size, const char *name,
               size_t name_size);

/* Leaves it, if in one. */
void room_leave(struct member *member);

/* Says something to all. What is empty is not said. */
void room_say(struct member *member, const char *text, size_t size);

/* What was said as the nth in this room; NULL: it is not kept any more. */
const struct line *room_old(const struct room *room, unsigned long number);

/* The line that says who is there, to be freed; NULL: no memory. */
char *room_who(const struct room *room, size_t *size);

/* Nothing is said any more: whoever waits for news is told. The event is set by that. */
void rooms_close(void);
bide_event *rooms_closed(void);

/* Rooms that are empty are freed. */
void rooms_free(void);

#endif
