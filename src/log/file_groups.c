/*
 * The groups file: a header, and then a record for each change of a group, of which the last
 * counts.
 *
 *     crc  size | acknowledged  runs  name's size | name | (not done, done)...
 *
 * The runs are of the messages after `acknowledged`: so many are not done, the next so many are.
 */
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t bide_log_group_encode_(const struct bide_log_group_ *group, uint8_t *out)
{
    size_t name = strlen(group->name), at = LOG_FILE_GROUP + name;
    uint32_t runs = 0;
    for (uint64_t number = group->acknowledged + 1; number < group->next;) {
        uint64_t begin = number;
        while (number < group->next && !bide_log_group_is_done_(group, number))
            number++;
        if (number == group->next)
            break;
        uint64_t done = number;
        while (number < group->next && bide_log_group_is_done_(group, number))
            number++;
        if (out != NULL) {
            bide_log_put_(out + at, done - begin, 4);
            bide_log_put_(out + at + 4, number - done, 4);
        }
        at += 8;
        runs++;
    }
    if (out == NULL)
        return at;
    bide_log_put_(out + 4, at, 4);
    bide_log_put_(out + 8, group->acknowledged, 8);
    bide_log_put_(out + 16, runs, 4);
    bide_log_put_(out + 20, name, 4);
    bide_log_put_(out + 24, 0, 4);
    memcpy(out + LOG_FILE_GROUP, group->name, name);
    bide_log_put_(out, bide_log_crc_(out + 4, at - 4), 4);
    return at;
}

size_t bide_log_groups_encode_(const struct log_file *file, bool is_whole, uint8_t *out)
{
    size_t size = is_whole ? LOG_FILE_HEADER : 0;
    if (is_whole && out != NULL)
        bide_log_header_write_(out, LOG_FILE_GROUPS, file->id, 0);
    for (const struct bide_log_group_ *group = file->state.groups; group != NULL;
         group = group->following) {
        if (group->name[0] != '\0' && (is_whole || group->is_changed))
            size += bide_log_group_encode_(group, out != NULL ? out + size : NULL);
    }
    return size;
}

/* Puts what a record says in the group of its name; the record is whole. */
static int log_group_restore(struct log_file *file, const uint8_t *record)
{
    struct log_state *state = &file->state;
    char name[LOG_GROUP_NAME] = "";
    uint64_t acknowledged = bide_log_get_(record + 8, 8), at = acknowledged + 1;
    uint32_t runs = (uint32_t)bide_log_get_(record + 16, 4);
    size_t length = (size_t)bide_log_get_(record + 20, 4);
    const uint8_t *run = record + LOG_FILE_GROUP + length;
    memcpy(name, record + LOG_FILE_GROUP, length);
    for (uint32_t i = 0; i < runs; i++)
        at += bide_log_get_(run + 8 * i, 4) + bide_log_get_(run + 8 * i + 4, 4);
    if (at - acknowledged - 1 > BIDE_LOG_WINDOW_MAX)
        return -EBADMSG;
    struct bide_log_group_ **link = &state->groups;
    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->following;
    struct bide_log_group_ *group = *link;
    if (group == NULL || group->mask < at - acknowledged - 1) {
        group = bide_log_group_create_(name, state->window, (uint32_t)(at - acknowledged), 0);
        if (group == NULL)
            return -ENOMEM;
        group->following = *link != NULL ? (*link)->following : NULL;
        bide_log_group_destroy_(*link);
        *link = group;
    }
    group->acknowledged = acknowledged;
    group->next = acknowledged + 1;
    group->rejected = 0;
    for (uint32_t i = 0; i < runs; i++)
        bide_log_group_restore_(group, (uint32_t)bide_log_get_(run + 8 * i, 4),
                                (uint32_t)bide_log_get_(run + 8 * i + 4, 4));
    return 0;
}

static bool log_group_record_is_whole(const uint8_t *record, uint64_t left, uint64_t *size)
{
    if (left < LOG_FILE_GROUP)
        return false;
    *size = bide_log_get_(record + 4, 4);
    uint64_t runs = bide_log_get_(record + 16, 4), name = bide_log_get_(record + 20, 4);
    return *size <= left && name - 1 < LOG_GROUP_NAME - 1 &&
           *size == LOG_FILE_GROUP + name + 8 * runs &&
           bide_log_get_(record, 4) == bide_log_crc_(record + 4, (size_t)*size - 4) &&
           memchr(record + LOG_FILE_GROUP, 0, (size_t)name) == NULL;
}

int bide_log_groups_read_(struct log_file *file, int descriptor, uint64_t *end)
{
    uint64_t size = file->groups_size, at = LOG_FILE_HEADER, one = 0;
    uint8_t *bytes = (size_t)size == size ? malloc((size_t)size) : NULL;
    if (bytes == NULL)
        return -ENOMEM;
    int status = bide_log_read_all_(descriptor, bytes, (size_t)size, 0);
    status = status == 0 ? -EIO : status < 0 ? status : 0;
    while (status == 0 && log_group_record_is_whole(bytes + at, size - at, &one)) {
        status = log_group_restore(file, bytes + at);
        at += one;
    }
    free(bytes);
    *end = at;
    return status;
}
