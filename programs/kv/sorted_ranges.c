/* Commands on ranges of sorted sets: by rank, by score, by member. Each runs to completion on the loop's thread. */
#include "combine.h"
#include "sorted.h"

enum range_kind { BY_RANK, BY_SCORE, BY_MEMBER };

struct score_bound {
    double score;
    bool is_excluded;
};

struct member_bound {
    int infinity; /* -1: before all members; 1: behind all */
    struct bytes member;
    bool is_excluded;
};

/* A range as it is requested. */
struct range {
    enum range_kind kind;
    bool is_backward;
    bool can_choose;       /* BYSCORE, BYLEX and REV are options */
    bool has_scores;       /* WITHSCORES */
    int64_t offset, limit; /* limit -1: none */
    int64_t ranks[2];
    struct score_bound scores[2];
    struct member_bound members[2];
};

/* ---- Arguments ---- */

static bool read_score_bound(struct bytes text, struct score_bound *bound)
{
    bound->is_excluded = text.size > 0 && text.data[0] == '(';
    return score_read_bound(
        (struct bytes){text.data + bound->is_excluded, text.size - bound->is_excluded},
        &bound->score);
}

static bool read_member_bound(struct bytes text, struct member_bound *bound)
{
    char first = '\0';
    if (text.size > 0)
        first = text.data[0];
    if (first == '(' || first == '[') {
        *bound = (struct member_bound){0, {text.data + 1, text.size - 1}, first == '('};
        return true;
    }
    *bound = (struct member_bound){.infinity = first == '-' ? -1 : 1};
    return text.size == 1 && (first == '-' || first == '+');
}

/* Parses the bounds, arguments i and i + 1. Returns false after an error reply. */
static bool read_bounds(struct client *client, size_t i, struct range *range)
{
    if (range->kind == BY_RANK)
        return argument_number(client, i, &range->ranks[0]) &&
               argument_number(client, i + 1, &range->ranks[1]);
    struct bytes low = client_argument(client, i + range->is_backward);
    struct bytes high = client_argument(client, i + !range->is_backward);
    if (range->kind == BY_SCORE) {
        if (read_score_bound(low, &range->scores[0]) && read_score_bound(high, &range->scores[1]))
            return true;
        REPLY(client, "-ERR min or max is not a float");
        return false;
    }
    if (read_member_bound(low, &range->members[0]) && read_member_bound(high, &range->members[1]))
        return true;
    REPLY(client, "-ERR min or max not valid string range item");
    return false;
}

/* Parses the options from argument i on. Returns false after an error reply. */
static bool read_range_options(struct client *client, size_t i, struct range *range, bool stores)
{
    bool has_kind = !range->can_choose, has_direction = !range->can_choose;
    size_t count = client->request.count;
    range->limit = -1;
    for (; i < count; i++) {
        struct bytes word = client_argument(client, i);
        if (!stores && bytes_are(word, "WITHSCORES")) {
            range->has_scores = true;
        } else if (bytes_are(word, "LIMIT") && i + 2 < count) {
            if (!argument_number(client, i + 1, &range->offset) ||
                !argument_number(client, i + 2, &range->limit))
                return false;
            i += 2;
        } else if (!has_direction && bytes_are(word, "REV")) {
            has_direction = range->is_backward = true;
        } else if (!has_kind && bytes_are(word, "BYLEX")) {
            has_kind = true;
            range->kind = BY_MEMBER;
        } else if (!has_kind && bytes_are(word, "BYSCORE")) {
            has_kind = true;
            range->kind = BY_SCORE;
        } else {
            reply_syntax_error(client);
            return false;
        }
    }
    if (range->limit != -1 && range->kind == BY_RANK)
        REPLY(client, "-ERR syntax error, LIMIT is only supported in combination with either "
                      "BYSCORE or BYLEX");
    else if (range->has_scores && range->kind == BY_MEMBER)
        REPLY(client, "-ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    else
        return true;
    return false;
}

/* ---- Ranks ---- */

/* The number of members before the bound; with `behind`, the member of the bound counts too. */
static size_t rank_of_bound(const struct collection *set, const struct member_bound *bound,
                            bool behind)
{
    if (bound->infinity != 0)
        return bound->infinity < 0 ? 0 : set->fields.count;
    return sorted_set_rank_of_member(set, bound->member, behind);
}

/* Leaves out what OFFSET and LIMIT exclude from the `count` members from *first on. Returns how many are left. */
static size_t limit_range(const struct range *range, size_t *first, size_t count)
{
    if (range->offset < 0 || (uint64_t)range->offset >= count)
        return 0;
    size_t rest = count - (size_t)range->offset, kept = rest;
    if (range->limit >= 0 && (uint64_t)range->limit < rest)
        kept = (size_t)range->limit;
    *first += range->is_backward ? rest - kept : (size_t)range->offset;
    return kept;
}

/* The members of a set in the range: the rank of the first in the set's order. Returns how many. */
static size_t find_range(const struct entry *entry, const struct range *range, size_t *first)
{
    *first = 0;
    if (entry == NULL)
        return 0;
    const struct collection *set = entry_collection(entry);
    size_t all = set->fields.count, end;
    if (range->kind == BY_RANK) {
        size_t count = range_of(range->ranks[0], range->ranks[1], all, first);
        if (range->is_backward)
            *first = all - *first - count;
        return count;
    }
    if (range->kind == BY_SCORE) {
        const struct score_bound *bounds = range->scores;
        *first = sorted_set_rank_of_score(set, bounds[0].score, bounds[0].is_excluded);
        end = sorted_set_rank_of_score(set, bounds[1].score, !bounds[1].is_excluded);
    } else {
        const struct member_bound *bounds = range->members;
        *first = rank_of_bound(set, &bounds[0], bounds[0].is_excluded);
        end = rank_of_bound(set, &bounds[1], !bounds[1].is_excluded);
    }
    return limit_range(range, first, end > *first ? end - *first : 0);
}

/* The first node to be visited, of a range that is not empty. */
static const struct sorted_node *
start_of_range(const struct entry *entry, const struct range *range, size_t first, size_t count)
{
    return sorted_set_at(entry_collection(entry), range->is_backward ? first + count - 1 : first);
}

/* ---- Reading ---- */

static void reply_range(struct client *client, struct range range)
{
    struct entry *set;
    size_t first;
    if (!read_range_options(client, 4, &range, false) || !read_bounds(client, 2, &range) ||
        !find_sorted_to_read(client, 1, &set))
        return;
    size_t count = find_range(set, &range, &first);
    struct slice slice = slice_begin(client, set != NULL ? entry_collection(set) : NULL, count);
    if (slice.next == 0)
        reply_members(client, count, range.has_scores);
    if (!range.is_backward)
        first += slice.next;
    const struct sorted_node *node =
        count > 0 ? start_of_range(set, &range, first, count - slice.next) : NULL;
    for (size_t i = slice.next; i < count && !client_refuses_reply(client); client->kv->work++) {
        reply_ranked_member(client, node, range.has_scores);
        if (++i < count && slice_is_over(client, &slice)) {
            slice_pause(client, &slice, i);
            return;
        }
        node = sorted_set_next(node, range.is_backward);
    }
    slice_finish(client, &slice);
}

/* ZRANGE key first last [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES] */
void command_zrange(struct client *client)
{
    reply_range(client, (struct range){.kind = BY_RANK, .can_choose = true});
}

void command_zrevrange(struct client *client)
{
    reply_range(client, (struct range){.kind = BY_RANK, .is_backward = true});
}

void command_zrangebyscore(struct client *client)
{
    reply_range(client, (struct range){.kind = BY_SCORE});
}

void command_zrevrangebyscore(struct client *client)
{
    reply_range(client, (struct range){.kind = BY_SCORE, .is_backward = true});
}

void command_zrangebylex(struct client *client)
{
    reply_range(client, (struct range){.kind = BY_MEMBER});
}

void command_zrevrangebylex(struct client *client)
{
    reply_range(client, (struct range){.kind = BY_MEMBER, .is_backward = true});
}

static void count_range(struct client *client, enum range_kind kind)
{
    struct range range = {.kind = kind, .limit = -1};
    struct entry *set;
    size_t first;
    if (read_bounds(client, 2, &range) && find_sorted_to_read(client, 1, &set))
        reply_number(client, (int64_t)find_range(set, &range, &first));
}

void command_zcount(struct client *client)
{
    count_range(client, BY_SCORE);
}

void command_zlexcount(struct client *client)
{
    count_range(client, BY_MEMBER);
}

/* ---- Changing ---- */

/* Adds the members of the range to the result. */
static void collect_range(struct combination *result, const struct entry *set,
                          const struct range *range)
{
    size_t first, count = find_range(set, range, &first);
    const struct sorted_node *node = count > 0 ? start_of_range(set, range, first, count) : NULL;
    for (; count > 0 && result->status >= 0; count--) {
        result->status = sorted_set_put(result->to, entry_key(node->entry), node->score);
        result->found++;
        result->client->kv->work++;
        node = sorted_set_next(node, range->is_backward);
    }
}

/* ZRANGESTORE target source first last [BYSCORE|BYLEX] [REV] [LIMIT offset count] */
void command_zrangestore(struct client *client)
{
    struct combination result = {.client = client, .has_scores = true};
    struct range range = {.kind = BY_RANK, .can_choose = true};
    struct entry *set;
    if (!read_range_options(client, 5, &range, true) || !read_bounds(client, 3, &range) ||
        !find_sorted_to_read(client, 2, &set) || !combination_create_result(&result))
        return;
    collect_range(&result, set, &range);
    combination_store(&result, "zrangestore");
    combination_end(&result);
}

static void remove_range(struct client *client, enum range_kind kind, const char *event)
{
    struct range range = {.kind = kind, .limit = -1};
    struct entry *set;
    size_t first;
    if (!read_bounds(client, 2, &range) || !find_sorted_set(client, 1, &set))
        return;
    size_t count = find_range(set, &range, &first);
    sorted_remove_range(client, client_argument(client, 1), first, count, event);
    reply_number(client, (int64_t)count);
}

void command_zremrangebyrank(struct client *client)
{
    remove_range(client, BY_RANK, "zremrangebyrank");
}

void command_zremrangebyscore(struct client *client)
{
    remove_range(client, BY_SCORE, "zremrangebyscore");
}

void command_zremrangebylex(struct client *client)
{
    remove_range(client, BY_MEMBER, "zremrangebylex");
}
