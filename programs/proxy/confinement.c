/* The confinement of the proxy: see ../common/confine.h. */
#define _GNU_SOURCE
#include "confinement.h"
#include "../common/monitoring.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Allows the files of a configuration: a reload opens them, or others beside them, again. */
static void allow_files(struct confine *confine, const struct configuration *configuration)
{
    const char *log = configuration->log;
    if (strcmp(log, "off") != 0 && strcmp(log, "stdout") != 0 && strcmp(log, "stderr") != 0)
        confine_allow_replaced(confine, log, CONFINE_WRITE);
    for (const struct listen *listen = configuration->listens; listen != NULL;
         listen = listen->next) {
        if (listen_file(listen) != NULL)
            confine_allow_replaced(confine, listen_file(listen), CONFINE_SOCKET);
        for (const struct certificate *at = listen->certificates; at != NULL; at = at->next) {
            confine_allow_replaced(confine, at->chain, CONFINE_READ);
            if (at->key != NULL)
                confine_allow_replaced(confine, at->key, CONFINE_READ);
            if (at->status != NULL)
                confine_allow_replaced(confine, at->status, CONFINE_READ);
        }
        if (listen->key_log != NULL)
            confine_allow_replaced(confine, listen->key_log, CONFINE_WRITE);
    }
    for (const struct backend *backend = configuration->backends; backend != NULL;
         backend = backend->next) {
        if (backend->authorities != NULL)
            confine_allow_replaced(confine, backend->authorities, CONFINE_READ);
    }
}

/*
 * Files of the system that are often symbolic links to other directories: of names, and of certificate
 * authorities, which the environment may name too.
 */
static void allow_system_links(struct confine *confine)
{
    static const char *const files[] = {
        "/etc/resolv.conf",      "/etc/hosts",    "/etc/nsswitch.conf", "/etc/host.conf",
        "/etc/gai.conf",         "/etc/services", "/etc/ssl/cert.pem",  "/usr/lib/ssl/cert.pem",
        "/etc/pki/tls/cert.pem",
    };
    static const char *const directories[] = {"/etc/ssl/certs", "/usr/lib/ssl/certs",
                                              "/etc/pki/tls/certs"};
    const char *file = secure_getenv("SSL_CERT_FILE");
    const char *directory = secure_getenv("SSL_CERT_DIR");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (access(files[i], F_OK) == 0)
            confine_allow_replaced(confine, files[i], CONFINE_READ);
    }
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        confine_allow_links(confine, directories[i], CONFINE_READ);
    if (file != NULL && file[0] != '\0')
        confine_allow_replaced(confine, file, CONFINE_READ);
    if (directory != NULL && directory[0] != '\0')
        confine_allow_links(confine, directory, CONFINE_READ);
}

void confinement_limit_files(struct program *program)
{
    /* the name service and its libraries, and the authorities of the system */
    static const char *const system[] = {"/etc", "/usr", "/lib", "/lib64", "/run"};
    struct confine *confine = program->confine;
    for (size_t i = 0; i < sizeof system / sizeof system[0]; i++)
        confine_allow(confine, system[i], CONFINE_READ);
    allow_system_links(confine);
    if (program->file != NULL)
        confine_allow_replaced(confine, program->file, CONFINE_READ);
    allow_files(confine, program->next);
    if (program->handover.path != NULL)
        confine_allow_replaced(confine, program->handover.path, CONFINE_SOCKET);
    confine_allow_monitor(confine, program->monitor);
    confine_limit_files(confine, CONFINE_ANY_PORT);
}

void confinement_start(struct program *program)
{
    bool is_uring = strcmp(bide_loop_backend(program->loop).name, "uring") == 0;
    confine_drop_user(program->confine);
    monitoring_start("proxy", program->monitor);
    confine_limit_calls(program->confine,
                        CONFINE_CONNECTS | CONFINE_REMOVES | (is_uring ? CONFINE_URING : 0));
}
