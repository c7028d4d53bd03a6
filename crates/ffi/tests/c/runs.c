/* Runs that go well: events, reports, event loops, several clients. */

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

void case_basics(void) {
    CHECK(strcmp(pelton_version(), setting("VERSION")) == 0);
    CHECK(strcmp(pelton_code_name(PELTON_CODE_OK), "ok") == 0);
    CHECK(strcmp(pelton_code_name(PELTON_CODE_PANIC), "panic") == 0);
    CHECK(strcmp(pelton_code_name(PELTON_CODE_UNSUPPORTED), "unsupported") == 0);
    CHECK(strcmp(pelton_code_name(PELTON_CODE_OTHER), "other") == 0);
    CHECK(strcmp(pelton_code_name(-7), "unknown") == 0);

    pelton_client *client = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_client_new(NULL, &client, &error), PELTON_CODE_OK, error);
    pelton_client_free(client);
}

/* A listing, followed into its directories, with every kind of event and the report. */
static void a_listing(const pelton_client *client) {
    const char *url = joined(setting("GOOD"), "/set/");
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.urls = &url;
    options.url_count = 1;
    options.directory = out("listing");
    options.flags = PELTON_JOB_RECURSIVE | PELTON_JOB_FSYNC | PELTON_JOB_RESERVE;
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, &options, &job, &error), PELTON_CODE_OK, error);

    uint64_t seen[PELTON_KIND_OTHER + 1] = {0};
    pelton_event *event = NULL;
    pelton_code code;
    while ((code = pelton_next_event(job, -1, &event, &error)) == PELTON_CODE_OK) {
        pelton_kind kind = pelton_event_kind(event);
        CHECK(kind > PELTON_KIND_NONE && kind < PELTON_KIND_OTHER);
        seen[kind]++;
        const char *json = pelton_event_json(event);
        CHECK(json[0] == '{' && strstr(json, "\"event\":\"") != NULL);
        CHECK(json == pelton_event_json(event));

        pelton_file file = {0};
        file.struct_size = sizeof file;
        code = pelton_event_file(event, &file);
        CHECK(code == (kind == PELTON_KIND_FILE || kind == PELTON_KIND_START ? PELTON_CODE_OK : PELTON_CODE_USAGE));
        if (code == PELTON_CODE_OK) {
            CHECK(strstr(file.url, "/set/") != NULL && strlen(file.name) > 0);
            CHECK(strcmp(file.message, "") == 0 && file.code == PELTON_CODE_OK);
            CHECK(kind == PELTON_KIND_START || (file.bytes > 0 && file.connections > 0));
        }
        pelton_summary summary = {0};
        summary.struct_size = sizeof summary;
        code = pelton_event_summary(event, &summary);
        CHECK(code == (kind == PELTON_KIND_SUMMARY ? PELTON_CODE_OK : PELTON_CODE_USAGE));
        if (kind == PELTON_KIND_SUMMARY) {
            CHECK(summary.files == 4 && summary.files_done == 4 && summary.files_failed == 0);
            CHECK(summary.bytes > 0 && summary.requests >= 4 && summary.exit_code == 0);
            CHECK(strcmp(summary.energy_source, "") == 0 && summary.energy_j != summary.energy_j);
        }
        const char *message = NULL;
        code = pelton_event_end(event, &message);
        CHECK(code == (kind == PELTON_KIND_END ? PELTON_CODE_OK : PELTON_CODE_USAGE));
        CHECK(strcmp(message, "") == 0);
        pelton_event_free(event);
    }
    CHECK_CODE(code, PELTON_CODE_END, error);
    CHECK(event == NULL && error == NULL);
    CHECK(pelton_next_event(job, 0, &event, NULL) == PELTON_CODE_END);
    CHECK(seen[PELTON_KIND_PLAN] == 1 && seen[PELTON_KIND_START] == 4 && seen[PELTON_KIND_FILE] == 4);
    CHECK(seen[PELTON_KIND_DECISION] > 0 && seen[PELTON_KIND_SUMMARY] == 1 && seen[PELTON_KIND_END] == 1);

    char *json = NULL;
    CHECK_CODE(pelton_job_report_json(job, &json, &error), PELTON_CODE_OK, error);
    CHECK(strstr(json, "\"files_done\":4") != NULL);
    pelton_string_free(json);
    CHECK_CODE(pelton_job_wait(job, 0, &error), PELTON_CODE_OK, error);
    /* No effect on a run that is over. */
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(pelton_job_pause(job) == PELTON_CODE_OK && pelton_job_resume(job) == PELTON_CODE_OK);
    CHECK(pelton_job_wait(job, -1, NULL) == PELTON_CODE_OK);
    pelton_job_free(job);
}

/* A manifest with digests; the events are never looked at. */
static void a_manifest(const pelton_client *client) {
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.list = setting("MANIFEST");
    options.base_url = joined(setting("GOOD"), "/set/");
    options.directory = out("manifest");
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, &options, &job, &error), PELTON_CODE_OK, error);
    CHECK_CODE(pelton_job_wait(job, -1, &error), PELTON_CODE_OK, error);
    pelton_job_free(job);

    /* Everything is there: the same again transfers nothing. */
    CHECK_CODE(pelton_job_start(client, &options, &job, &error), PELTON_CODE_OK, error);
    pelton_event *event = until(job, PELTON_KIND_FILE);
    pelton_file file = {0};
    file.struct_size = sizeof file;
    CHECK(pelton_event_file(event, &file) == PELTON_CODE_OK && file.already_there == 1);
    pelton_event_free(event);
    CHECK(ended(job) == PELTON_CODE_OK);
}

void case_download(void) {
    pelton_client *client = new_client();
    a_listing(client);
    a_manifest(client);
    pelton_client_free(client);
}

void case_event_fd(void) {
    pelton_client *client = new_client();
    pelton_job *job = start_one(client, joined(setting("GOOD"), "/slow"), out("fd"));
    pelton_error *error = NULL;
    int fd = -1, again = -1;
    CHECK_CODE(pelton_job_event_fd(job, &fd, &error), PELTON_CODE_OK, error);
    CHECK(pelton_job_event_fd(job, &again, NULL) == PELTON_CODE_OK && again == fd && fd >= 0);

    int ends = 0;
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    while (ends == 0) {
        CHECK(poll(&watched, 1, -1) == 1 && watched.revents == POLLIN);
        pelton_event *event = NULL;
        pelton_code code;
        while ((code = pelton_next_event(job, 0, &event, NULL)) == PELTON_CODE_OK) {
            if (pelton_event_kind(event) == PELTON_KIND_PROGRESS) {
                CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
            }
            pelton_event_free(event);
        }
        CHECK(code == PELTON_CODE_AGAIN || code == PELTON_CODE_END);
        ends += code == PELTON_CODE_END;
        /* Readable after the end as well, so that nobody waits for ever. */
        CHECK(poll(&watched, 1, 0) >= ends);
    }
    CHECK(ended(job) == PELTON_CODE_CANCELLED);
    pelton_client_free(client);
}

void case_two_clients(void) {
    enum { JOBS = 6 };
    pelton_client *clients[2] = {new_client(), new_client()};
    pelton_job *jobs[JOBS];
    const char *url = joined(setting("GOOD"), "/set/a.bin");
    for (int i = 0; i < JOBS; i++) {
        char name[32];
        snprintf(name, sizeof name, "two/%d", i);
        jobs[i] = start_one(clients[i % 2], url, out(name));
    }
    /* Downloads go on without their client. */
    pelton_client_free(clients[0]);
    CHECK(ended(jobs[1]) == PELTON_CODE_OK);
    pelton_client_free(clients[1]);
    for (int i = 0; i < JOBS; i++) {
        CHECK(i == 1 || ended(jobs[i]) == PELTON_CODE_OK);
    }
}

/* A child that does nothing but exec does its parent no harm. */
void case_fork(void) {
    pelton_client *client = new_client();
    pelton_job *job = start_one(client, joined(setting("GOOD"), "/set/a.bin"), out("fork"));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(8);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(ended(job) == PELTON_CODE_OK);
    pelton_client_free(client);
}
