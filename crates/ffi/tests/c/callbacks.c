/* Callbacks: events in order on one thread, commands and freeing within them, the meter. */

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "suite.h"

struct watch {
    pelton_client *client;
    pelton_job *job;
    pelton_kind act_at;
    int act;
    pthread_t thread;
    atomic_int events;
    atomic_int is_over;
};

enum { CANCEL = 1, FREE, FREE_BOTH, PAUSE_AND_RESUME };

static pelton_job *watched(const pelton_client *client, const char *url, const char *directory,
                           void (*on_event)(pelton_job *, const pelton_event *, void *), void *data) {
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.urls = &url;
    options.url_count = 1;
    options.directory = directory;
    options.on_event = on_event;
    options.user_data = data;
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, &options, &job, &error), PELTON_CODE_OK, error);
    return job;
}

static void count(pelton_job *job, const pelton_event *event, void *data) {
    struct watch *watch = data;
    CHECK(job != NULL && strlen(pelton_event_json(event)) > 0);
    if (watch->events++ == 0) {
        watch->thread = pthread_self();
    }
    CHECK(pthread_equal(watch->thread, pthread_self()));
    CHECK(!watch->is_over);
    pelton_kind kind = pelton_event_kind(event);
    char *json = NULL;
    pelton_code code = pelton_job_report_json(job, &json, NULL);
    CHECK(code == (kind == PELTON_KIND_END ? PELTON_CODE_OK : PELTON_CODE_AGAIN));
    pelton_string_free(json);
    if (kind == PELTON_KIND_END) {
        CHECK(pelton_job_wait(job, 0, NULL) == PELTON_CODE_OK);
        watch->is_over = 1;
    }
    /* This thread is the one that would have to bring what is waited for. */
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_wait(job, 1000, &error), PELTON_CODE_WRONG_THREAD, error);
    CHECK(strstr(pelton_error_message(error), "wait for itself") != NULL);
    pelton_error_free(error);
}

/* Polls: a job that its own callback frees can't be waited for. */
static void until_over(struct watch *watch) {
    while (!watch->is_over) {
        sched_yield();
    }
}

void case_callbacks(void) {
    pelton_client *client = new_client();
    struct watch watches[3] = {{0}};
    pelton_job *jobs[3];
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "calls/%d", i);
        jobs[i] = watched(client, joined(setting("GOOD"), "/set/"), out(name), count, &watches[i]);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(pelton_job_wait(jobs[i], -1, NULL) == PELTON_CODE_OK);
        CHECK(watches[i].is_over);
        /* Plan, decision, a start and an end of each of three files, summary, end. */
        CHECK(watches[i].events >= 10);
        CHECK(pthread_equal(watches[i].thread, watches[0].thread));
        CHECK(!pthread_equal(watches[i].thread, pthread_self()));
        pelton_job_free(jobs[i]);
    }
    pelton_client_free(client);
}

static void act(pelton_job *job, const pelton_event *event, void *data) {
    struct watch *watch = data;
    CHECK(!watch->is_over);
    pelton_kind kind = pelton_event_kind(event);
    if (kind == watch->act_at) {
        switch (watch->act) {
        case CANCEL:
            CHECK(pelton_job_cancel(job) == PELTON_CODE_OK);
            break;
        case PAUSE_AND_RESUME:
            CHECK(pelton_job_pause(job) == PELTON_CODE_OK && pelton_job_resume(job) == PELTON_CODE_OK);
            CHECK(pelton_job_set_limits(job, NULL, NULL) == PELTON_CODE_OK);
            break;
        default:
            /* The event lives as long as the call, the job does not. */
            pelton_job_free(job);
            CHECK(strlen(pelton_event_json(event)) > 0);
            if (watch->act == FREE_BOTH) {
                pelton_client_free(watch->client);
            }
            watch->is_over = 1;
            return;
        }
        watch->act_at = PELTON_KIND_NONE;
    }
    watch->is_over = kind == PELTON_KIND_END;
}

void case_callback_commands(void) {
    const pelton_kind kinds[] = {PELTON_KIND_PLAN, PELTON_KIND_START, PELTON_KIND_DECISION,
                                 PELTON_KIND_PROGRESS, PELTON_KIND_FILE, PELTON_KIND_SUMMARY, PELTON_KIND_END};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int what = CANCEL; what <= PAUSE_AND_RESUME; what++) {
            struct watch watch = {0};
            watch.client = new_client();
            watch.act_at = kinds[i];
            watch.act = what;
            int is_slow = kinds[i] == PELTON_KIND_PROGRESS;
            const char *url = joined(setting("GOOD"), is_slow ? "/short-slow" : "/set/a.bin");
            char name[32];
            snprintf(name, sizeof name, "act/%d-%d", (int)i, what);
            pelton_job *job = watched(watch.client, url, out(name), act, &watch);
            until_over(&watch);
            if (what == CANCEL || what == PAUSE_AND_RESUME) {
                pelton_code code = ended(job);
                CHECK(code == PELTON_CODE_OK || (what == CANCEL && code == PELTON_CODE_CANCELLED));
                CHECK(what != CANCEL || !is_slow || code == PELTON_CODE_CANCELLED);
            }
            if (what != FREE_BOTH) {
                pelton_client_free(watch.client);
            }
        }
    }
}

/* Whether a callback runs while nobody may be called any more. */
static void touch(pelton_job *job, const pelton_event *event, void *data) {
    (void)job;
    struct watch *watch = data;
    int number = ++watch->events;
    for (int i = 0; i < 2000; i++) {
        CHECK(watch->events == number && pelton_event_kind(event) != PELTON_KIND_NONE);
    }
}

/* Frees a job while its callbacks run on the other thread: afterwards none does, so their data may go. */
void case_callback_threads(void) {
    pelton_client *client = new_client();
    for (int round = 0; round < rounds(40); round++) {
        struct watch *watch = calloc(1, sizeof *watch);
        CHECK(watch != NULL);
        char name[32];
        snprintf(name, sizeof name, "touch/%d", round);
        pelton_job *job = watched(client, joined(setting("GOOD"), "/set/"), out(name), touch, watch);
        while (watch->events < round % 8) {
            sched_yield();
        }
        pelton_job_free(job);
        free(watch);
    }
    pelton_client_free(client);
}

struct sensor {
    atomic_int reads;
    atomic_int releases;
    double joules;
};

static int32_t read_sensor(void *data, double *value) {
    struct sensor *sensor = data;
    CHECK(sensor->releases == 0);
    int reads = ++sensor->reads;
    *value = 5.0 * reads;
    /* Now and then there is none. */
    return reads % 3 == 0;
}

static int32_t read_nothing(void *data, double *value) {
    struct sensor *sensor = data;
    sensor->reads++;
    *value = NAN;
    return 0;
}

static void release_sensor(void *data) {
    ((struct sensor *)data)->releases++;
}

/* Downloads with a meter, and looks at its joules. */
static void measured(pelton_meter *meter, struct sensor *sensor, int has_joules, const char *directory) {
    meter->struct_size = sizeof *meter;
    meter->name = "bench supply";
    meter->user_data = sensor;
    meter->release = release_sensor;
    pelton_client_options asked = quick();
    asked.flags = 0;
    asked.meter = meter;
    pelton_client *client = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_client_new(&asked, &client, &error), PELTON_CODE_OK, error);
    memset(meter, 0xFF, sizeof *meter);

    pelton_job *job = start_one(client, joined(setting("GOOD"), "/short-slow"), directory);
    pelton_event *event = until(job, PELTON_KIND_SUMMARY);
    pelton_summary summary = {0};
    summary.struct_size = sizeof summary;
    CHECK(pelton_event_summary(event, &summary) == PELTON_CODE_OK);
    CHECK(sensor->reads > 0);
    CHECK(strcmp(summary.energy_source, "measured: bench supply") == 0);
    CHECK(has_joules ? summary.energy_j > 0 : isnan(summary.energy_j));
    pelton_event_free(event);
    CHECK(ended(job) == PELTON_CODE_OK);
    CHECK(sensor->releases == 0);
    pelton_client_free(client);
    while (sensor->releases == 0) {
        sched_yield();
    }
    CHECK(sensor->releases == 1);
}

void case_meter(void) {
    struct sensor sensors[4] = {{0}};
    pelton_meter meter = {0};
    meter.read = read_sensor;
    measured(&meter, &sensors[0], 1, out("joules"));
    memset(&meter, 0, sizeof meter);
    meter.read = read_sensor;
    meter.unit = PELTON_METER_UNIT_WATTS;
    meter.scope = PELTON_SCOPE_RADIO;
    meter.interval_ms = 1000;
    meter.step_j = 0.5;
    measured(&meter, &sensors[1], 1, out("watts"));
    memset(&meter, 0, sizeof meter);
    meter.read = read_nothing;
    measured(&meter, &sensors[2], 0, out("nothing"));

    /* A client that is refused takes nothing. */
    memset(&meter, 0, sizeof meter);
    meter.struct_size = sizeof meter;
    meter.name = "bench supply";
    meter.read = read_sensor;
    meter.release = release_sensor;
    meter.user_data = &sensors[3];
    pelton_client_options asked = quick();
    asked.flags = 0;
    asked.meter = &meter;
    asked.policy = 99;
    pelton_client *client = NULL;
    CHECK(pelton_client_new(&asked, &client, NULL) == PELTON_CODE_USAGE);
    CHECK(sensors[3].reads == 0 && sensors[3].releases == 0);
}
