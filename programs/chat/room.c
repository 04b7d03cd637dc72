/* Rooms, their members and history. room.h has the protocol. All of it runs on one thread. */
#include "room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct room {
    line_broadcast lines;
    line_slot slots[BACKLOG];
    char name[MAX_NAME + 1];
    struct member *members;
    unsigned long emptied_at; /* the value of `departures` when the last member left */
    unsigned long said;       /* messages so far */
    struct line history[HISTORY];
};

enum { MAX_NAMESAKES = 99999 }; /* in a room: a member's name has space for the number */

static struct room *rooms[MAX_ROOMS];
static unsigned long departures;
static bide_event closed_event;

void rooms_init(void)
{
    bide_event_init(&closed_event, false);
}

/* ---- Text ---- */

/*
 * Copies a name: control characters become spaces, and spaces at both ends are removed. Returns the
 * length.
 */
static size_t clean_name(char *to, size_t max, const char *from, size_t size)
{
    size_t count = 0;
    while (size != 0 && (unsigned char)*from <= ' ') {
        from++;
        size--;
    }
    for (size_t i = 0; i < size && count < max; i++) {
        unsigned char byte = (unsigned char)from[i];
        to[count++] = byte < ' ' || byte == 0x7f ? ' ' : from[i];
    }
    /* never cut a character in two */
    if (count == max && count < size) {
        while (count != 0 && ((unsigned char)from[count] & 0xc0) == 0x80)
            count--;
    }
    while (count != 0 && to[count - 1] == ' ')
        count--;
    to[count] = '\0';
    return count;
}

/* Copies a message, which may have several lines. Returns the length; 0 if it is blank. */
static size_t clean_text(char *to, const char *from, size_t size)
{
    size_t count = 0;
    bool is_empty = true;
    for (size_t i = 0; i < size && count < MAX_TEXT; i++) {
        unsigned char byte = (unsigned char)from[i];
        bool is_control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
        to[count++] = is_control ? ' ' : from[i];
        is_empty = is_empty && byte <= ' ';
    }
    if (count < size) {
        while (count != 0 && ((unsigned char)from[count] & 0xc0) == 0x80)
            count--;
    }
    return is_empty ? 0 : count;
}

/* ---- Lines ---- */

static void broadcast_line(struct room *room, const struct line *line)
{
    bide_broadcast_send(&room->lines, line);
}

static void broadcast_event(struct member *member, const char *word)
{
    struct line line;
    line.size = (unsigned)snprintf(line.text, sizeof line.text, "%s\t%lld\t%s", word,
                                   (long long)time(NULL), member->name);
    broadcast_line(member->room, &line);
}

void room_say(struct member *member, const char *text, size_t size)
{
    struct room *room = member->room;
    struct line line;
    int head = snprintf(line.text, sizeof line.text, "said\t%lld\t%s\t", (long long)time(NULL),
                        member->name);
    size = clean_text(line.text + head, text, size);
    if (size == 0)
        return;
    line.size = (unsigned)(head + (int)size);
    broadcast_line(room, &line);
    struct line *old = &room->history[room->said++ % HISTORY];
    *old = line;
    memcpy(old->text, "old\t", 4); /* one byte shorter than "said\t" */
    memmove(old->text + 4, old->text + 5, line.size - 5);
    old->size--;
}

const struct line *room_old(const struct room *room, unsigned long parse_number)
{
    bool is_kept = parse_number < room->said && room->said - parse_number <= HISTORY;
    return is_kept ? &room->history[parse_number % HISTORY] : NULL;
}

char *room_member_list(const struct room *room, size_t *size)
{
    size_t count = 0;
    for (const struct member *member = room->members; member != NULL; member = member->next)
        count++;
    char *text = malloc(8 + count * sizeof room->members->name);
    if (text == NULL)
        return NULL;
    char *at = text + sprintf(text, "who");
    for (const struct member *member = room->members; member != NULL; member = member->next)
        at += sprintf(at, "\t%s", member->name);
    *size = (size_t)(at - text);
    return text;
}

/* ---- Joining and leaving ---- */

/* The number N of a name "WANTED N" as choose_name prints it; 1 for WANTED itself; 0 for another name. */
static unsigned number_of(const char *name, const char *wanted, size_t size)
{
    unsigned number = 0;
    if (strncmp(name, wanted, size) != 0)
        return 0;
    if (name[size] == '\0')
        return 1;
    if (name[size] != ' ' || name[size + 1] == '0')
        return 0;
    for (const char *at = name + size + 1; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || number > MAX_NAMESAKES)
            return 0;
        number = 10 * number + (unsigned)(*at - '0');
    }
    return number >= 2 ? number : 0;
}

/*
 * Gives the member the wanted name, or with the smallest number of 2 or more that makes it unique. One
 * pass over the members, however many namesakes there are: N members have at most N of the numbers 1
 * to N + 1. Returns 0, -ENOMEM, or -EMFILE if there are too many namesakes.
 */
static int choose_name(struct member *member, const struct room *room, const char *wanted)
{
    size_t count = 0, size = strlen(wanted);
    for (const struct member *at = room->members; at != NULL; at = at->next)
        count++;
    unsigned char *is_taken = calloc(count + 2, 1);
    if (is_taken == NULL)
        return -ENOMEM;
    for (const struct member *at = room->members; at != NULL; at = at->next) {
        unsigned number = number_of(at->name, wanted, size);
        if (number <= count)
            is_taken[number] = 1;
    }
    unsigned free_number = 1;
    while (free_number <= count && is_taken[free_number])
        free_number++;
    free(is_taken);
    if (free_number > MAX_NAMESAKES)
        return -EMFILE;
    strcpy(member->name, wanted);
    if (free_number > 1)
        snprintf(member->name + size, sizeof member->name - size, " %u", free_number);
    return 0;
}

/*
 * The slot of the room with that name, or a slot for it: a free one, or that of the room that has
 * been empty for longest. Returns NULL if every slot has a room with members.
 */
static struct room **find_slot(const char *name)
{
    struct room **link = NULL;
    for (int i = 0; i < MAX_ROOMS; i++) {
        struct room *room = rooms[i];
        if (room != NULL && strcmp(room->name, name) == 0)
            return &rooms[i];
        if (room != NULL && room->members != NULL)
            continue;
        if (link == NULL ||
            (*link != NULL && (room == NULL || room->emptied_at < (*link)->emptied_at)))
            link = &rooms[i];
    }
    return link;
}

static int create_room(struct room **link, const char *name)
{
    size_t size = (sizeof **link + BIDE_CACHE_LINE - 1) / BIDE_CACHE_LINE * BIDE_CACHE_LINE;
    struct room *room = aligned_alloc(BIDE_CACHE_LINE, size);
    if (room == NULL)
        return -ENOMEM;
    bide_assert(*link == NULL || (*link)->members == NULL);
    free(*link);
    *link = room;
    bide_broadcast_init(&room->lines, room->slots, BACKLOG);
    strcpy(room->name, name);
    room->members = NULL;
    room->emptied_at = 0;
    room->said = 0;
    return 0;
}

int room_enter(struct member *member, const char *room, size_t room_size, const char *name,
               size_t name_size)
{
    char room_name[MAX_NAME + 1], wanted[MAX_NAME + 1];
    member->room = NULL;
    if (clean_name(room_name, MAX_NAME, room, room_size) == 0 ||
        clean_name(wanted, MAX_NAME, name, name_size) == 0)
        return -EINVAL;
    struct room **link = find_slot(room_name);
    if (link == NULL)
        return -EMFILE;
    if (*link == NULL || strcmp((*link)->name, room_name) != 0) {
        int created = create_room(link, room_name);
        if (created < 0)
            return created;
    }
    int status = choose_name(member, *link, wanted);
    if (status < 0)
        return status;
    member->room = *link;
    member->next = member->room->members;
    member->link = &member->room->members;
    if (member->next != NULL)
        member->next->link = &member->next;
    member->room->members = member;
    broadcast_event(member, "joined");
    member->said_before = member->room->said;
    bide_broadcast_subscribe(&member->lines, &member->room->lines); /* lines from now on */
    return 0;
}

void room_leave(struct member *member)
{
    struct room *room = member->room;
    if (room == NULL)
        return;
    bide_assert(*member->link == member);
    *member->link = member->next;
    if (member->next != NULL)
        member->next->link = member->link;
    if (room->members == NULL)
        room->emptied_at = ++departures;
    broadcast_event(member, "left");
    member->room = NULL;
}

void rooms_close(void)
{
    bide_event_set(&closed_event);
    for (int i = 0; i < MAX_ROOMS; i++) {
        if (rooms[i] != NULL)
            bide_broadcast_close(&rooms[i]->lines);
    }
}

bide_event *rooms_closed(void)
{
    return &closed_event;
}

void rooms_free(void)
{
    for (int i = 0; i < MAX_ROOMS; i++) {
        if (rooms[i] != NULL && rooms[i]->members == NULL) {
            free(rooms[i]);
            rooms[i] = NULL;
        }
    }
}
