/* Prints the sizes of objects on this processor. */
#include "board.h"

#include "bide/event.h"
#include "bide/extend/root.h"
#include "bide/sequence8.h"
#include "bide/task.h"

#define PRINT_SIZE(type)                  \
    do {                                  \
        board_print("# " #type ": ");     \
        board_print_number(sizeof(type)); \
        board_print(" bytes\n");          \
    } while (0)

int main(void)
{
    PRINT_SIZE(bide_task);
    PRINT_SIZE(bide_root);
    PRINT_SIZE(bide_event);
    PRINT_SIZE(bide_event_waiter);
    PRINT_SIZE(bide_sequence_barrier8);
    PRINT_SIZE(bide_sequence_barrier);
    PRINT_SIZE(bide_sequence_waiter8);
    PRINT_SIZE(bide_sequence_waiter);
    return 0;
}
