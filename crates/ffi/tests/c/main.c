/* suite CASE: runs one case. */

#include <dirent.h>
#include <sched.h>

#include "suite.h"

void check_code(const char *file, int line, pelton_code got, pelton_code wanted, pelton_error *error) {
    if (got != wanted) {
        fprintf(stderr, "%s:%d: %s (%d) and not %s (%d): %s\n", file, line, pelton_code_name(got), got,
                pelton_code_name(wanted), wanted, pelton_error_message(error));
        exit(1);
    }
}

const char *setting(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "the variable %s is missing: run `cargo test -p pelton-ffi`\n", name);
        exit(2);
    }
    return value;
}

const char *joined(const char *first, const char *second) {
    static char texts[1 << 18];
    static size_t used;
    char *text = texts + used;
    used += (size_t)snprintf(text, sizeof texts - used, "%s%s", first, second) + 1;
    CHECK(used <= sizeof texts);
    return text;
}

const char *out(const char *name) {
    return joined(joined(setting("OUT"), "/"), name);
}

int rounds(int many) {
    int few = many / 10;
    return getenv("FEW") == NULL ? many : few < 2 ? 2 : few;
}

pelton_client_options quick(void) {
    pelton_client_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.proxy = "";
    options.flags = PELTON_CLIENT_NO_METER;
    options.attempts = 2;
    options.retry_wait_ms = 1;
    return options;
}

pelton_client *new_client(void) {
    pelton_client_options options = quick();
    pelton_client *client = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_client_new(&options, &client, &error), PELTON_CODE_OK, error);
    CHECK(client != NULL && error == NULL);
    return client;
}

pelton_job *start(const pelton_client *client, const char *const *urls, size_t count, const char *directory) {
    pelton_job_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.urls = urls;
    options.url_count = count;
    options.directory = directory;
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, &options, &job, &error), PELTON_CODE_OK, error);
    CHECK(job != NULL && error == NULL);
    return job;
}

pelton_job *start_one(const pelton_client *client, const char *url, const char *directory) {
    return start(client, &url, 1, directory);
}

pelton_event *next(const pelton_job *job) {
    pelton_event *event = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_next_event(job, -1, &event, &error), PELTON_CODE_OK, error);
    CHECK(event != NULL);
    return event;
}

pelton_event *until(const pelton_job *job, pelton_kind kind) {
    pelton_event *event = next(job);
    while (pelton_event_kind(event) != kind) {
        pelton_event_free(event);
        event = next(job);
    }
    return event;
}

void until_bytes(const pelton_job *job, uint64_t bytes) {
    pelton_progress now = {0};
    now.struct_size = sizeof now;
    while (now.bytes < bytes) {
        pelton_event *event = until(job, PELTON_KIND_PROGRESS);
        CHECK(pelton_event_progress(event, &now) == PELTON_CODE_OK);
        pelton_event_free(event);
    }
}

pelton_code ended(pelton_job *job) {
    pelton_code code = pelton_job_wait(job, -1, NULL);
    pelton_job_free(job);
    return code;
}

long size_of_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return -1;
    }
    CHECK(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    fclose(file);
    return size;
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"basics", case_basics},
    {"download", case_download},
    {"event_fd", case_event_fd},
    {"two_clients", case_two_clients},
    {"fork", case_fork},
    {"errors", case_errors},
    {"timeout", case_timeout},
    {"tls", case_tls},
    {"local_errors", case_local_errors},
    {"nulls", case_nulls},
    {"struct_sizes", case_struct_sizes},
    {"bad_values", case_bad_values},
    {"cancel_points", case_cancel_points},
    {"cancel_sweep", case_cancel_sweep},
    {"free_sweep", case_free_sweep},
    {"pause_and_limits", case_pause_and_limits},
    {"callbacks", case_callbacks},
    {"callback_commands", case_callback_commands},
    {"callback_threads", case_callback_threads},
    {"meter", case_meter},
    {"descriptors", case_descriptors},
    {"pipe", case_pipe},
};

/* Waits until pelton's threads have ended: each of them has to, and then nothing may be left. */
static void until_alone(void) {
    int threads = 0;
    while (threads != 1) {
        DIR *tasks = opendir("/proc/self/task");
        CHECK(tasks != NULL);
        threads = 0;
        for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
            threads += task->d_name[0] != '.';
        }
        closedir(tasks);
        sched_yield();
    }
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            until_alone();
            return 0;
        }
    }
    fprintf(stderr, "usage: %s CASE\n", argv[0]);
    return 2;
}
