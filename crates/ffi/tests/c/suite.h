/* What the cases share. A case ends the process with a message when something is not as it should be. */

#ifndef SUITE_H
#define SUITE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pelton.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #condition); \
            exit(1); \
        } \
    } while (0)

/* That `got` is `wanted`, or the message of `error`. */
#define CHECK_CODE(got, wanted, error) \
    do { \
        pelton_code got_ = (got); \
        check_code(__FILE__, __LINE__, got_, (wanted), (error)); \
    } while (0)

void check_code(const char *file, int line, pelton_code got, pelton_code wanted, pelton_error *error);

/* A setting that the driver of the tests made, such as the URL of a server. */
const char *setting(const char *name);

/* `first` and `second`, one behind the other; lasts as long as the process. For the main thread. */
const char *joined(const char *first, const char *second);

/* A path below the directory of this run. */
const char *out(const char *name);

/* How often a loop runs: fewer times under valgrind. */
int rounds(int many);

/* Options for quick tests: direct, without a meter, retries at once. */
pelton_client_options quick(void);

pelton_client *new_client(void);

/* `count` URLs into `directory`. */
pelton_job *start(const pelton_client *client, const char *const *urls, size_t count, const char *directory);

/* One URL into `directory`. */
pelton_job *start_one(const pelton_client *client, const char *url, const char *directory);

/* The next event, which has to come; the caller frees it. */
pelton_event *next(const pelton_job *job);

/* Takes events until one of this kind, which the caller frees. */
pelton_event *until(const pelton_job *job, pelton_kind kind);

/* Waits until as many bytes have arrived. */
void until_bytes(const pelton_job *job, uint64_t bytes);

/* Waits for the end and frees the job. */
pelton_code ended(pelton_job *job);

long size_of_file(const char *path);

void case_basics(void);
void case_download(void);
void case_event_fd(void);
void case_two_clients(void);
void case_fork(void);
void case_errors(void);
void case_timeout(void);
void case_tls(void);
void case_local_errors(void);
void case_nulls(void);
void case_struct_sizes(void);
void case_bad_values(void);
void case_cancel_points(void);
void case_cancel_sweep(void);
void case_free_sweep(void);
void case_pause_and_limits(void);
void case_callbacks(void);
void case_callback_commands(void);
void case_callback_threads(void);
void case_meter(void);
void case_descriptors(void);
void case_pipe(void);

#endif
