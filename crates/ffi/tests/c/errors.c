/* The codes of failed downloads, and of a panic. Not provoked: PELTON_CODE_OTHER, which is for failures
   of later versions, PELTON_CODE_UNSUPPORTED, which no call gives on Linux, and PELTON_CODE_DESCRIPTORS,
   which the tests of the command provoke. */

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "suite.h"

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* That the download of `options` ends with `code`, says why, and says it everywhere. */
static void expect(const pelton_client *client, const pelton_job_options *options, pelton_code code) {
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, options, &job, &error), PELTON_CODE_OK, error);
    CHECK_CODE(pelton_job_wait(job, -1, &error), code, error);
    CHECK(pelton_error_code(error) == code && strlen(pelton_error_message(error)) > 0);

    pelton_event *event = until(job, PELTON_KIND_END);
    const char *message = NULL;
    CHECK(pelton_event_end(event, &message) == code);
    CHECK(strcmp(message, pelton_error_message(error)) == 0);
    CHECK(strstr(pelton_event_json(event), "\"event\":\"end\"") != NULL);
    pelton_event_free(event);
    pelton_error_free(error);

    char *json = NULL;
    CHECK(pelton_job_report_json(job, &json, NULL) == PELTON_CODE_OK);
    CHECK(code == PELTON_CODE_UNFINISHED || strstr(json, pelton_code_name(code)) != NULL);
    pelton_string_free(json);
    pelton_job_free(job);
}

static pelton_job_options into(const char *directory) {
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.directory = directory;
    return options;
}

static void expect_url(const pelton_client *client, const char *url, pelton_code code) {
    pelton_job_options options = into(out(pelton_code_name(code)));
    options.urls = &url;
    options.url_count = 1;
    expect(client, &options, code);
}

void case_errors(void) {
    pelton_client *client = new_client();
    const char *good = setting("GOOD"), *bad = setting("BAD");

    expect_url(client, joined(good, "/missing"), PELTON_CODE_NOT_FOUND);
    expect_url(client, "http://no-such-host.invalid/f", PELTON_CODE_RESOLVE);
    expect_url(client, joined(setting("NOBODY"), "/f"), PELTON_CODE_CONNECT);
    expect_url(client, joined(bad, "/short"), PELTON_CODE_SHORT_BODY);
    expect_url(client, joined(bad, "/no-http"), PELTON_CODE_PROTOCOL);
    expect_url(client, joined(bad, "/reset"), PELTON_CODE_RESET);
    expect_url(client, joined(good, "/status/418"), PELTON_CODE_HTTP_STATUS);
    expect_url(client, joined(good, "/status/500"), PELTON_CODE_SERVER_ERROR);
    expect_url(client, joined(good, "/circle"), PELTON_CODE_REDIRECT);
    expect_url(client, joined(good, "/status/401"), PELTON_CODE_AUTH);
    expect_url(client, joined(good, "/status/503"), PELTON_CODE_OVERLOADED);
    expect_url(client, joined(bad, "/page/"), PELTON_CODE_LISTING);

    const char *mixed[] = {joined(good, "/missing"), joined(good, "/status/401"), joined(good, "/set/a.bin")};
    pelton_job_options options = into(out("unfinished"));
    options.urls = mixed;
    options.url_count = 3;
    expect(client, &options, PELTON_CODE_UNFINISHED);

    /* Two files that are given one name. */
    char same[1024];
    int length = snprintf(same, sizeof same, "%s/set/a.bin\n out=a\n%s/other/a.bin\n out=a\n", good, good);
    CHECK(length > 0 && (size_t)length < sizeof same);
    options.urls = NULL;
    options.url_count = 0;
    options.list = same;
    expect(client, &options, PELTON_CODE_USAGE);
    pelton_client_free(client);
}

void case_timeout(void) {
    pelton_client_options impatient = quick();
    impatient.stall_timeout_ms = 200;
    impatient.connect_timeout_ms = 60000;
    pelton_client *client = NULL;
    CHECK(pelton_client_new(&impatient, &client, NULL) == PELTON_CODE_OK);
    expect_url(client, joined(setting("BAD"), "/hang"), PELTON_CODE_TIMEOUT);
    pelton_client_free(client);
}

/* An authority that nobody knows, and the same one when it is known, or not asked for. */
void case_tls(void) {
    pelton_client_options asked = quick();
    const char *authorities[] = {NULL, setting("CA"), NULL};
    const uint32_t flags[] = {0, 0, PELTON_CLIENT_INSECURE};
    for (int i = 0; i < 3; i++) {
        pelton_client *client = NULL;
        asked.ca_file = authorities[i];
        asked.flags = PELTON_CLIENT_NO_METER | flags[i];
        CHECK(pelton_client_new(&asked, &client, NULL) == PELTON_CODE_OK);
        const char *url = joined(setting("TLS"), "/f");
        if (i == 0) {
            expect_url(client, url, PELTON_CODE_TLS);
        } else {
            CHECK(ended(start_one(client, url, out(i == 1 ? "trusted" : "insecure"))) == PELTON_CODE_OK);
        }
        pelton_client_free(client);
    }
}

void case_local_errors(void) {
    pelton_client *client = new_client();
    const char *url = joined(setting("GOOD"), "/set/a.bin");

    pelton_job_options options = into(out("checksum"));
    options.list = setting("WRONG_DIGEST");
    expect(client, &options, PELTON_CODE_CHECKSUM);

    CHECK(mkdir(out("exists"), 0755) == 0);
    write_file(out("exists/a.bin"), "mine");
    expect_url(client, url, PELTON_CODE_EXISTS);
    CHECK(size_of_file(out("exists/a.bin")) == 4);
    pelton_client_options overwriting = quick();
    overwriting.flags |= PELTON_CLIENT_OVERWRITE;
    pelton_client *other = NULL;
    CHECK(pelton_client_new(&overwriting, &other, NULL) == PELTON_CODE_OK);
    CHECK(ended(start_one(other, url, out("exists"))) == PELTON_CODE_OK);
    CHECK(size_of_file(out("exists/a.bin")) > 4);
    pelton_client_free(other);

    write_file(out("file_io"), "in the way");
    expect_url(client, url, PELTON_CODE_FILE_IO);

    /* Only libraries that were built for debugging have this function. */
    pelton_code (*panic_for_tests)(pelton_error **error) = NULL;
    *(void **)&panic_for_tests = dlsym(RTLD_DEFAULT, "pelton_panic_for_tests");
    if (panic_for_tests != NULL) {
        pelton_error *panicked = NULL;
        CHECK(panic_for_tests(&panicked) == PELTON_CODE_PANIC);
        CHECK(pelton_error_code(panicked) == PELTON_CODE_PANIC && !pelton_error_is_retryable(panicked));
        CHECK(strstr(pelton_error_message(panicked), "asked to panic") != NULL);
        pelton_error_free(panicked);
    }

    /* A process without a free descriptor. */
    pelton_job *job = start_one(client, joined(setting("BAD"), "/hang"), out("internal"));
    struct rlimit limit, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = limit;
    none.rlim_cur = 1;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int fd = 0;
    pelton_error *error = NULL;
    CHECK(pelton_job_event_fd(job, &fd, &error) == PELTON_CODE_INTERNAL);
    CHECK(fd == -1 && strstr(pelton_error_message(error), "eventfd") != NULL);
    pelton_error_free(error);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    pelton_job_free(job);
    pelton_client_free(client);
}
