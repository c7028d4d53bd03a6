/* Mistakes in calls: NULLs, sizes of structures, texts and numbers that mean nothing. */

#include <math.h>

#include "suite.h"

static void nothing(pelton_job *job, const pelton_event *event, void *user_data) {
    (void)job, (void)event, (void)user_data;
}

/* That a call failed with `code`, and frees its error. */
#define REFUSED(call, code, words) \
    do { \
        pelton_error *error = NULL; \
        CHECK_CODE(call, code, error); \
        CHECK(pelton_error_code(error) == (code) && !pelton_error_is_retryable(error)); \
        if (strstr(pelton_error_message(error), words) == NULL) { \
            fprintf(stderr, "%s: no \"%s\" in: %s\n", #call, words, pelton_error_message(error)); \
            exit(1); \
        } \
        pelton_error_free(error); \
    } while (0)

void case_nulls(void) {
    pelton_client *client = new_client();
    pelton_client *no_client = client;
    pelton_job *job = start_one(client, joined(setting("GOOD"), "/set/a.bin"), out("nulls"));
    pelton_job *no_job = job;
    pelton_job_options options = {0};
    options.struct_size = sizeof options;

    /* What frees does nothing, and what tells has nothing to tell. */
    pelton_client_free(NULL);
    pelton_job_free(NULL);
    pelton_event_free(NULL);
    pelton_error_free(NULL);
    pelton_string_free(NULL);
    CHECK(pelton_error_code(NULL) == PELTON_CODE_OK && !pelton_error_is_retryable(NULL));
    CHECK(strcmp(pelton_error_message(NULL), "") == 0);
    CHECK(pelton_event_kind(NULL) == PELTON_KIND_NONE && strcmp(pelton_event_json(NULL), "") == 0);

    const pelton_code null = PELTON_CODE_NULL_ARGUMENT;
    REFUSED(pelton_client_new(NULL, NULL, &error), null, "client is NULL");
    CHECK(pelton_client_new(NULL, NULL, NULL) == null);
    REFUSED(pelton_client_set_max_rate(NULL, 0, &error), null, "client is NULL");
    REFUSED(pelton_job_start(NULL, &options, &no_job, &error), null, "client is NULL");
    CHECK(no_job == NULL);
    REFUSED(pelton_job_start(client, NULL, &no_job, &error), null, "options is NULL");
    REFUSED(pelton_job_start(client, &options, NULL, &error), null, "job is NULL");
    REFUSED(pelton_job_start(client, &options, &no_job, &error), null, "directory is NULL");
    options.directory = out("nulls");
    options.url_count = 1;
    REFUSED(pelton_job_start(client, &options, &no_job, &error), null, "urls is NULL");
    const char *urls[] = {joined(setting("GOOD"), "/set/a.bin"), NULL};
    options.urls = urls;
    options.url_count = 2;
    REFUSED(pelton_job_start(client, &options, &no_job, &error), null, "urls[1] is NULL");
    options.directory = NULL;
    options.descriptor_count = 2;
    options.url_count = 1;
    REFUSED(pelton_job_start(client, &options, &no_job, &error), null, "descriptors is NULL");

    pelton_client_options asked = quick();
    asked.header_count = 1;
    REFUSED(pelton_client_new(&asked, &no_client, &error), null, "headers is NULL");
    CHECK(no_client == NULL);
    asked = quick();
    pelton_meter meter = {0};
    meter.struct_size = sizeof meter;
    asked.meter = &meter;
    REFUSED(pelton_client_new(&asked, &no_client, &error), null, "pelton_meter.name is NULL");
    meter.name = "m";
    REFUSED(pelton_client_new(&asked, &no_client, &error), null, "pelton_meter.read is NULL");

    CHECK(pelton_job_cancel(NULL) == null && pelton_job_pause(NULL) == null && pelton_job_resume(NULL) == null);
    REFUSED(pelton_job_set_limits(NULL, NULL, &error), null, "job is NULL");
    CHECK(pelton_job_set_limits(job, NULL, NULL) == PELTON_CODE_OK);
    REFUSED(pelton_job_wait(NULL, 0, &error), null, "job is NULL");
    pelton_event *event = (pelton_event *)job;
    REFUSED(pelton_next_event(NULL, 0, &event, &error), null, "job is NULL");
    CHECK(event == NULL);
    REFUSED(pelton_next_event(job, 0, NULL, &error), null, "event is NULL");
    char *json = NULL;
    REFUSED(pelton_job_report_json(NULL, &json, &error), null, "job is NULL");
    REFUSED(pelton_job_report_json(job, NULL, &error), null, "json is NULL");
    int fd = 0;
    REFUSED(pelton_job_event_fd(NULL, &fd, &error), null, "job is NULL");
    CHECK(fd == -1);
    REFUSED(pelton_job_event_fd(job, NULL, &error), null, "descriptor is NULL");

    pelton_progress progress = {sizeof progress, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    CHECK(pelton_event_progress(NULL, &progress) == null);
    pelton_file file = {0};
    file.struct_size = sizeof file;
    CHECK(pelton_event_file(NULL, &file) == null);
    pelton_summary summary = {0};
    summary.struct_size = sizeof summary;
    CHECK(pelton_event_summary(NULL, &summary) == null);
    CHECK(pelton_event_end(NULL, NULL) == null);
    event = until(job, PELTON_KIND_FILE);
    CHECK(pelton_event_file(event, NULL) == null);
    pelton_event_free(event);
    event = until(job, PELTON_KIND_SUMMARY);
    CHECK(pelton_event_summary(event, NULL) == null);
    pelton_event_free(event);
    event = until(job, PELTON_KIND_END);
    CHECK(pelton_event_end(event, NULL) == PELTON_CODE_OK);
    pelton_event_free(event);

    CHECK(ended(job) == PELTON_CODE_OK);
    pelton_client_free(client);
}

/* What a program that was built with a later header hands over. */
struct newer_options {
    pelton_client_options known;
    uint64_t later[4];
};

void case_struct_sizes(void) {
    pelton_client *client = NULL;
    const pelton_code wrong = PELTON_CODE_STRUCT_SIZE;
    pelton_client_options asked = quick();
    for (size_t size = 0; size < sizeof(size_t); size++) {
        asked.struct_size = size;
        REFUSED(pelton_client_new(&asked, &client, &error), wrong, "struct_size");
    }
    asked.struct_size = SIZE_MAX;
    REFUSED(pelton_client_new(&asked, &client, &error), wrong, "struct_size");

    /* An older program: what its structure lacks is zero here. */
    asked.attempts = 99;
    asked.policy = 99;
    asked.struct_size = offsetof(pelton_client_options, policy);
    CHECK(pelton_client_new(&asked, &client, NULL) == PELTON_CODE_OK);
    pelton_client_free(client);
    asked.struct_size = sizeof asked;
    REFUSED(pelton_client_new(&asked, &client, &error), PELTON_CODE_USAGE, "policy 99");

    /* A newer one: what is not known must not be asked for. */
    struct newer_options newer = {quick(), {0}};
    newer.known.struct_size = sizeof newer;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_client_new(&newer.known, &client, &error), PELTON_CODE_OK, error);
    newer.later[3] = 1;
    pelton_client *none = client;
    REFUSED(pelton_client_new(&newer.known, &none, &error), wrong, "does not know");
    CHECK(none == NULL);

    pelton_job *job = NULL;
    pelton_job_options options = {0};
    REFUSED(pelton_job_start(client, &options, &job, &error), wrong, "pelton_job_options.struct_size is 0");
    job = start_one(client, joined(setting("GOOD"), "/slow"), out("sizes"));
    pelton_limits limits = {0};
    REFUSED(pelton_job_set_limits(job, &limits, &error), wrong, "pelton_limits.struct_size is 0");
    pelton_client_options with_limits = quick();
    with_limits.limits = &limits;
    REFUSED(pelton_client_new(&with_limits, &none, &error), wrong, "pelton_limits");
    pelton_client_options with_meter = quick();
    pelton_meter meter = {0};
    with_meter.meter = &meter;
    REFUSED(pelton_client_new(&with_meter, &none, &error), wrong, "pelton_meter");

    /* The same for what pelton fills in: an older program's structure ends early, and a newer one's
     * further fields are zero. */
    struct {
        pelton_progress known;
        unsigned char later[24];
    } told;
    memset(&told, 0xAA, sizeof told);
    pelton_event *event = until(job, PELTON_KIND_PROGRESS);
    told.known.struct_size = 0;
    CHECK(pelton_event_progress(event, &told.known) == wrong);
    told.known.struct_size = offsetof(pelton_progress, bytes);
    CHECK(pelton_event_progress(event, &told.known) == PELTON_CODE_OK);
    CHECK(told.known.at_s > 0 && told.known.bytes == UINT64_C(0xAAAAAAAAAAAAAAAA));
    told.known.struct_size = sizeof told;
    CHECK(pelton_event_progress(event, &told.known) == PELTON_CODE_OK);
    CHECK(told.known.struct_size == sizeof told && told.known.files == 1);
    CHECK(told.later[0] == 0 && told.later[23] == 0);
    pelton_event_free(event);
    pelton_job_free(job);
    pelton_client_free(client);
}

/* That a client with one setting changed is refused. */
#define NO_CLIENT(change, code, words) \
    do { \
        pelton_client_options asked = quick(); \
        asked.change; \
        pelton_client *client = NULL; \
        REFUSED(pelton_client_new(&asked, &client, &error), code, words); \
        CHECK(client == NULL); \
    } while (0)

/* That a job with one setting changed is refused. */
#define NO_JOB(change, code, words) \
    do { \
        pelton_job_options asked = {0}; \
        asked.struct_size = sizeof asked; \
        asked.directory = out("bad"); \
        asked.change; \
        pelton_job *job = NULL; \
        REFUSED(pelton_job_start(client, &asked, &job, &error), code, words); \
        CHECK(job == NULL); \
    } while (0)

void case_bad_values(void) {
    const char *no_header[] = {"no colon"}, *bad_name[] = {"A B: c"}, *bad_value[] = {"A: b\x01"};
    const char *latin1[] = {"X: \xe4"}, *no_url[] = {"no url"}, *ftp[] = {"http://"};
    const char *with_password[] = {"http://u:secret@a.test:99999/x"};
    const pelton_code usage = PELTON_CODE_USAGE, text = PELTON_CODE_NOT_UTF8;
    NO_CLIENT(policy = -1, usage, "policy -1");
    NO_CLIENT(http = 4, usage, "http 4");
    NO_CLIENT(reserved = 1, PELTON_CODE_STRUCT_SIZE, "reserved");
    NO_CLIENT(flags = 8, usage, "0x8");
    NO_CLIENT(user_agent = "a\nb", usage, "user_agent");
    NO_CLIENT(user_agent = "\xff", text, "user_agent is not UTF-8");
    NO_CLIENT(header_count = 1; asked.headers = no_header, usage, "no colon");
    NO_CLIENT(header_count = 1; asked.headers = bad_name, usage, "A B");
    NO_CLIENT(header_count = 1; asked.headers = bad_value, usage, "control characters");
    NO_CLIENT(header_count = 1; asked.headers = latin1, text, "headers[0]");
    NO_CLIENT(header_count = SIZE_MAX; asked.headers = no_header, usage, "no array has");
    NO_CLIENT(password = "x", usage, "no user");
    NO_CLIENT(key_file = "x", usage, "certificate_file");
    NO_CLIENT(bandwidth_bps = -1, usage, "bandwidth_bps is -1");
    NO_CLIENT(rtt_s = 1e300, usage, "rtt_s");
    pelton_limits limits = {0};
    limits.struct_size = sizeof limits;
    limits.max_rate_bps = -1;
    NO_CLIENT(limits = &limits, usage, "max_rate_bps is -1");
    limits.max_rate_bps = 0;
    limits.max_rate_per_origin_bps = -1;
    NO_CLIENT(limits = &limits, usage, "max_rate_per_origin_bps is -1");
    limits.max_rate_per_origin_bps = 0;

    pelton_meter meter = {0};
    meter.struct_size = sizeof meter;
    meter.name = "m";
    meter.read = (int32_t (*)(void *, double *))(void (*)(void))pelton_version;
    NO_CLIENT(meter = &meter, usage, "NO_METER");
    NO_CLIENT(flags = 0; meter.scope = 7; asked.meter = &meter, usage, "scope 7");
    meter.scope = 0;
    NO_CLIENT(flags = 0; meter.unit = 7; asked.meter = &meter, usage, "unit 7");
    meter.unit = 0;
    NO_CLIENT(flags = 0; meter.step_j = -1; asked.meter = &meter, usage, "step_j");
    meter.step_j = 0;
    NO_CLIENT(flags = 0; meter.reserved = 1; asked.meter = &meter, PELTON_CODE_STRUCT_SIZE, "reserved");

    pelton_client *client = new_client();
    REFUSED(pelton_client_set_max_rate(client, INFINITY, &error), usage, "max_rate_bps is inf");
    CHECK(pelton_client_set_max_rate(client, 1e9, NULL) == PELTON_CODE_OK);
    CHECK(pelton_client_set_max_rate(client, 0, NULL) == PELTON_CODE_OK);
    NO_JOB(urls = no_url; asked.url_count = 1, usage, "is no URL");
    NO_JOB(urls = with_password; asked.url_count = 1, usage, "***@a.test:99999");
    NO_JOB(urls = ftp; asked.url_count = 1, usage, "is no URL");
    NO_JOB(urls = latin1; asked.url_count = 1, text, "urls[0]");
    NO_JOB(list = "nonsense", usage, "list: line 1");
    NO_JOB(list = "{}", usage, "list: manifest");
    NO_JOB(list = "a.bin"; asked.base_url = "x", usage, "is no URL");
    NO_JOB(flags = 16, usage, "0x10");
    NO_JOB(directory = "", usage, "directory is empty");
    int fds[] = {1};
    NO_JOB(descriptors = fds; asked.descriptor_count = 1, usage, "choose one");

    /* Events of a callback are nobody else's. */
    const char *url = joined(setting("GOOD"), "/set/a.bin");
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.urls = &url;
    options.url_count = 1;
    options.directory = out("callback");
    options.on_event = nothing;
    pelton_job *job = NULL;
    CHECK(pelton_job_start(client, &options, &job, NULL) == PELTON_CODE_OK);
    limits.max_rate_bps = NAN;
    REFUSED(pelton_job_set_limits(job, &limits, &error), usage, "max_rate_bps");
    pelton_event *event = NULL;
    REFUSED(pelton_next_event(job, 0, &event, &error), usage, "callback");
    int fd = 0;
    REFUSED(pelton_job_event_fd(job, &fd, &error), usage, "callback");
    CHECK(ended(job) == PELTON_CODE_OK);
    pelton_client_free(client);
}
