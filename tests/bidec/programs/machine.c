/* A machine for a small language: unions, bit-fields, enums, switches in loops, gotos, strings. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, JUMP, JUMP_IF, PRINT, HALT };

struct instruction {
    enum kind kind : 5;
    unsigned wide : 1;
    union {
        int number;
        struct {
            short target, unused;
        } jump;
    };
};

struct machine {
    int stack[32], *top;
    const struct instruction *program;
    unsigned long steps;
};

static const char *parse;
static struct instruction made[128];
static int count;

static void emit(enum kind kind, int number)
{
    made[count++] = (struct instruction){.kind = kind, .wide = number > 100, .number = number};
}

static void expression(void);

static void factor(void)
{
    while (isspace((unsigned char)*parse))
        parse++;
    switch (*parse) {
    case '(':
        parse++;
        expression();
        parse++;
        break;
    case '-':
        parse++;
        factor();
        emit(NEGATE, 0);
        break;
    case '0' ... '9': {
        char *end;
        long value = strtol(parse, &end, 10);
        parse = end;
        emit(NUMBER, (int)value);
        break;
    }
    default:
        emit(NUMBER, 0);
    }
    while (isspace((unsigned char)*parse))
        parse++;
}

static void term(void)
{
    factor();
    for (char sign; (sign = *parse) == '*' || sign == '/';) {
        parse++;
        factor();
        emit(sign == '*' ? MULTIPLY : DIVIDE, 0);
    }
}

static void expression(void)
{
    term();
again:
    if (*parse == '+' || *parse == '-') {
        char sign = *parse++;
        term();
        emit(sign == '+' ? ADD : SUBTRACT, 0);
        goto again;
    }
}

static int run(struct machine *machine)
{
    const struct instruction *at = machine->program;
    for (;; at++, machine->steps++) {
        int right;
        switch (at->kind) {
        case NUMBER:
            *machine->top++ = at->number;
            continue;
        case NEGATE:
            machine->top[-1] = -machine->top[-1];
            break;
        case ADD:
        case SUBTRACT:
        case MULTIPLY:
        case DIVIDE:
            right = *--machine->top;
            if (at->kind == ADD)
                machine->top[-1] += right;
            else if (at->kind == SUBTRACT)
                machine->top[-1] -= right;
            else if (at->kind == MULTIPLY)
                machine->top[-1] *= right;
            else if (right == 0)
                goto divided_by_zero;
            else
                machine->top[-1] /= right;
            break;
        case PRINT:
            printf("%d after %lu\n", *--machine->top, machine->steps);
            break;
        case HALT:
            return 0;
        default:
            return -1;
        }
    }
divided_by_zero:
    printf("divided by zero\n");
    return 1;
}

int main(void)
{
    const char *const lines[] = {"1 + 2 * 3", "-(4 - 10) * (7 + 1) / 5", "2 * (3 + 4) * (5 + 6) - 1000",
                                 "1 / (2 - 2)", "((((7))))", ""};
    int sum = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct machine machine = {.program = made};
        machine.top = machine.stack;
        count = 0;
        parse = lines[i];
        expression();
        emit(PRINT, 0);
        emit(HALT, 0);
        sum += run(&machine) + count;
    }
    return sum;
}
