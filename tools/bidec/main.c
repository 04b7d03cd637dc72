/*
 * async int main: the program's main, which runs the function on a loop of its own.
 */
#include "bidec.h"

bool is_main(void)
{
    return strcmp(function->name, "main") == 0;
}

void check_main(void)
{
    const struct declarator *first = function->parameters;
    if (function->is_created || function->size != NULL || function->value != NULL ||
        function->kind != NULL || function->is_static)
        reject_at(function->name_token, "an async main is declared async, and nothing else");
    if (find_function("bide_loop_wait", strlen("bide_loop_wait")) == NULL)
        reject_at(function->name_token,
                  "an async main runs on a loop: include bide/loop.h, or write a plain main, which "
                  "runs an async function with bide_sync_wait");
    if (function->returns_nothing || strspn(function->result, "int ") != strlen(function->result))
        reject_at(function->name_token, "an async main returns an int");
    if (function->parameter_count != 0 && function->parameter_count != 2)
        reject_at(function->name_token,
                  "an async main takes no parameters, or int argc and char *argv[]");
    if (function->parameter_count == 2 && first->name != 0 && first->next->name != 0)
        return;
    if (function->parameter_count == 2)
        reject_at(function->name_token, "the parameters of an async main need names");
}

/*
 * The result is the exit status, as that of a plain main. A negative errno, which a process cannot end
 * with, is reported.
 */
void print_main(struct text *out)
{
    text_print(out,
               "extern char *strerror(int);\nextern int dprintf(int, const char *, ...);\n"
               "int main(int bide_argc, char **bide_argv)\n{\n"
               "    static struct async_main bide_main;\n"
               "    bide_loop *bide_loop_;\n"
               "    int bide_status_ = bide_loop_create(&bide_loop_, 0);\n"
               "    if (bide_status_ == 0) {\n"
               "        bide_status_ = bide_loop_wait(bide_loop_, async_main(&bide_main%s));\n"
               "        if (bide_status_ == 0)\n"
               "            bide_status_ = bide_main.result;\n"
               "        bide_loop_destroy(bide_loop_);\n"
               "    }\n"
               "    if (bide_status_ >= 0 || bide_status_ < -4095)\n"
               "        return bide_status_;\n"
               "    dprintf(2, \"%%s: %%s\\n\", bide_argc > 0 ? bide_argv[0] : \"main\", "
               "strerror(-bide_status_));\n"
               "    return 1;\n"
               "}\n",
               function->parameter_count == 2 ? ", bide_argc, bide_argv" : "");
}
