/* Cancelling and freeing at every point, pausing, and other ceilings. */

#include <pthread.h>
#include <time.h>

#include "suite.h"

/* Cancels at the first event of each kind, and where there is none. */
void case_cancel_points(void) {
    pelton_client_options slowly = quick();
    slowly.retry_wait_ms = 60000;
    slowly.stall_timeout_ms = 60000;
    pelton_client *client = NULL;
    CHECK(pelton_client_new(&slowly, &client, NULL) == PELTON_CODE_OK);
    const char *good = setting("GOOD"), *bad = setting("BAD");

    const pelton_kind kinds[] = {PELTON_KIND_PLAN, PELTON_KIND_START, PELTON_KIND_DECISION, PELTON_KIND_PROGRESS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pelton_job *job = start_one(client, joined(good, "/slow"), out("at-kind"));
        pelton_event_free(until(job, kinds[i]));
        CHECK(pelton_job_cancel(job) == PELTON_CODE_OK && pelton_job_cancel(job) == PELTON_CODE_OK);
        CHECK(ended(job) == PELTON_CODE_CANCELLED);
    }
    /* One of two files is there. */
    const char *urls[] = {joined(good, "/set/a.bin"), joined(good, "/slow")};
    pelton_job *job = start(client, urls, 2, out("at-file"));
    pelton_event_free(until(job, PELTON_KIND_FILE));
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(ended(job) == PELTON_CODE_CANCELLED);

    /* Everything was there. */
    const pelton_kind late[] = {PELTON_KIND_SUMMARY, PELTON_KIND_END};
    for (size_t i = 0; i < 2; i++) {
        job = start_one(client, urls[0], out("at-end"));
        pelton_event_free(until(job, late[i]));
        CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
        CHECK(ended(job) == PELTON_CODE_OK);
    }
    /* At once, while a list is read, while a server says nothing, while the next attempt is waited for,
     * and while it is paused. */
    job = start_one(client, joined(good, "/slow"), out("at-once"));
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(ended(job) == PELTON_CODE_CANCELLED);
    job = start_one(client, joined(bad, "/hang/"), out("listing"));
    CHECK(pelton_job_wait(job, 20, NULL) == PELTON_CODE_AGAIN);
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(ended(job) == PELTON_CODE_CANCELLED);
    const char *waiting[] = {joined(bad, "/hang"), joined(good, "/status/500")};
    for (size_t i = 0; i < 2; i++) {
        job = start_one(client, waiting[i], out("waiting"));
        pelton_event_free(until(job, PELTON_KIND_PROGRESS));
        CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
        CHECK(ended(job) == PELTON_CODE_CANCELLED);
    }
    job = start_one(client, joined(good, "/slow"), out("paused"));
    CHECK(pelton_job_pause(job) == PELTON_CODE_OK);
    pelton_event_free(until(job, PELTON_KIND_PROGRESS));
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(ended(job) == PELTON_CODE_CANCELLED);

    /* What was cancelled goes on where it was. */
    job = start_one(client, joined(good, "/slow"), out("again"));
    until_bytes(job, 500000);
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(ended(job) == PELTON_CODE_CANCELLED);
    job = start_one(client, joined(good, "/slow"), out("again"));
    pelton_event *event = until(job, PELTON_KIND_PROGRESS);
    pelton_progress now = {0};
    now.struct_size = sizeof now;
    CHECK(pelton_event_progress(event, &now) == PELTON_CODE_OK);
    pelton_event_free(event);
    CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
    event = until(job, PELTON_KIND_FILE);
    pelton_file file = {0};
    file.struct_size = sizeof file;
    CHECK(pelton_event_file(event, &file) == PELTON_CODE_OK);
    CHECK(file.code == PELTON_CODE_CANCELLED && file.resumed_from >= 400000 && file.retryable == 1);
    pelton_event_free(event);
    pelton_job_free(job);
    pelton_client_free(client);
}

static void after(int steps) {
    struct timespec pause = {0, (long)steps * 700000};
    nanosleep(&pause, NULL);
}

/* At any moment of a run that takes a few milliseconds, from another thread, while this one takes
 * events. */
static void *cancel_later(void *argument) {
    void **arguments = argument;
    after(*(int *)arguments[1]);
    CHECK(pelton_job_cancel(arguments[0]) == PELTON_CODE_OK);
    return NULL;
}

void case_cancel_sweep(void) {
    pelton_client *client = new_client();
    const char *url = joined(setting("GOOD"), "/set/");
    for (int steps = 0; steps < rounds(40); steps++) {
        char name[32];
        snprintf(name, sizeof name, "sweep/%d", steps);
        pelton_job *job = start_one(client, url, out(name));
        void *arguments[2] = {job, &steps};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, cancel_later, arguments) == 0);
        pelton_event *event = NULL;
        while (pelton_next_event(job, -1, &event, NULL) == PELTON_CODE_OK) {
            pelton_event_free(event);
        }
        CHECK(pthread_join(thread, NULL) == 0);
        pelton_code code = ended(job);
        CHECK(code == PELTON_CODE_OK || code == PELTON_CODE_CANCELLED);
    }
    pelton_client_free(client);
}

void case_free_sweep(void) {
    const char *url = joined(setting("GOOD"), "/set/");
    for (int steps = 0; steps < rounds(40); steps++) {
        char name[32];
        snprintf(name, sizeof name, "freed/%d", steps);
        pelton_client *client = new_client();
        pelton_job *job = start_one(client, url, out(name));
        if (steps % 2 == 0) {
            pelton_client_free(client);
        }
        after(steps);
        pelton_event *event = NULL;
        pelton_code code = pelton_next_event(job, 0, &event, NULL);
        pelton_job_free(job);
        /* An event outlives its job. */
        CHECK((code == PELTON_CODE_OK) == (event != NULL));
        CHECK(event == NULL || strlen(pelton_event_json(event)) > 0);
        pelton_event_free(event);
        if (steps % 2 == 1) {
            pelton_client_free(client);
        }
    }
}

void case_pause_and_limits(void) {
    pelton_limits limits = {0};
    limits.struct_size = sizeof limits;
    limits.max_connections = 4;
    limits.max_connections_per_origin = 4;
    limits.max_files = 4;
    limits.max_streams_per_file = 2;
    limits.split_floor_bytes = 65536;
    pelton_client_options asked = quick();
    asked.limits = &limits;
    asked.policy = PELTON_POLICY_FIXED;
    asked.http = PELTON_HTTP_HTTP1;
    pelton_client *client = NULL;
    CHECK(pelton_client_new(&asked, &client, NULL) == PELTON_CODE_OK);
    const char *urls[] = {joined(setting("GOOD"), "/slow"), joined(setting("GOOD"), "/slow2")};
    pelton_job *job = start(client, urls, 2, out("paused"));
    until_bytes(job, 100000);

    limits.max_connections = 1;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_set_limits(job, &limits, &error), PELTON_CODE_OK, error);
    CHECK(pelton_job_pause(job) == PELTON_CODE_OK && pelton_job_pause(job) == PELTON_CODE_OK);

    /* Nothing moves: what the first event after the pause says is still so in the third. */
    pelton_progress before = {0}, now = {0};
    before.struct_size = now.struct_size = sizeof now;
    for (int i = 0; i < 4; i++) {
        pelton_event *event = until(job, PELTON_KIND_PROGRESS);
        CHECK(pelton_event_progress(event, i < 2 ? &before : &now) == PELTON_CODE_OK);
        pelton_event_free(event);
    }
    CHECK(now.bytes == before.bytes && now.at_s > before.at_s);

    CHECK(pelton_job_resume(job) == PELTON_CODE_OK);
    until_bytes(job, now.bytes + 50000);
    pelton_event *event = until(job, PELTON_KIND_PROGRESS);
    CHECK(pelton_event_progress(event, &now) == PELTON_CODE_OK && now.connections <= 1);
    pelton_event_free(event);
    pelton_job_free(job);
    pelton_client_free(client);
}
