/* For scripts: one look as text or as JSON, and the list of programs. */
#ifndef TOP_ONCE_H
#define TOP_ONCE_H

#include "wire.h"

/* Each returns the exit status. */
int once_print(bide_loop *loop, const char *path, const wire_request *request, bool has_colours);
int once_print_json(bide_loop *loop, const char *path, const wire_request *request);
int once_list(bide_loop *loop, bool as_json);

#endif
