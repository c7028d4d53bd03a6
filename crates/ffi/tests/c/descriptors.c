/* Downloads into descriptors. */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

static int opened(const char *name, int flags) {
    int fd = open(out(name), O_CREAT | flags, 0644);
    CHECK(fd >= 0);
    return fd;
}

static pelton_job_options into(const char *const *urls, const int *fds, size_t count) {
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.urls = urls;
    options.url_count = count;
    options.descriptors = fds;
    options.descriptor_count = count;
    return options;
}

/* That a start is refused. */
static void refused(const pelton_client *client, const pelton_job_options *options, pelton_code code,
                    const char *words) {
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, options, &job, &error), code, error);
    CHECK(job == NULL && strstr(pelton_error_message(error), words) != NULL);
    pelton_error_free(error);
}

static pelton_code into_descriptors(const pelton_client *client, const pelton_job_options *options) {
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, options, &job, &error), PELTON_CODE_OK, error);
    return ended(job);
}

void case_descriptors(void) {
    pelton_client *client = new_client();
    const char *good = setting("GOOD");
    const char *urls[] = {joined(good, "/set/a.bin"), joined(good, "/set/b.bin")};
    int fds[] = {opened("one", O_WRONLY), opened("two", O_RDWR)};
    CHECK(lseek(fds[0], 1000, SEEK_SET) == 1000 && write(fds[1], "longer than nothing", 19) == 19);
    pelton_job_options options = into(urls, fds, 2);
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    CHECK_CODE(pelton_job_start(client, &options, &job, &error), PELTON_CODE_OK, error);
    /* pelton has its own. */
    close(fds[0]);
    close(fds[1]);
    CHECK_CODE(pelton_job_wait(job, -1, &error), PELTON_CODE_OK, error);
    pelton_job_free(job);

    /* Digests are read back. */
    pelton_job_options list = into(NULL, fds, 0);
    list.list = setting("ONE_DIGEST");
    list.descriptor_count = 1;
    fds[0] = opened("digest", O_RDWR);
    CHECK(into_descriptors(client, &list) == PELTON_CODE_OK);
    list.list = setting("WRONG_DIGEST");
    CHECK(into_descriptors(client, &list) == PELTON_CODE_CHECKSUM);
    close(fds[0]);
    fds[0] = opened("digest", O_WRONLY);
    list.list = setting("ONE_DIGEST");
    refused(client, &list, PELTON_CODE_USAGE, "open for reading too");
    close(fds[0]);

    int appending[] = {opened("append", O_WRONLY | O_APPEND)};
    options = into(urls, appending, 1);
    refused(client, &options, PELTON_CODE_USAGE, "O_APPEND");
    int reading[] = {opened("append", O_RDONLY)};
    options = into(urls, reading, 1);
    refused(client, &options, PELTON_CODE_USAGE, "not open for writing");
    close(appending[0]);
    close(reading[0]);
    options = into(urls, appending, 1);
    refused(client, &options, PELTON_CODE_FILE_IO, "can't be used");
    int negative[] = {-1};
    options = into(urls, negative, 1);
    refused(client, &options, PELTON_CODE_FILE_IO, "descriptors[0] (-1)");

    fds[0] = opened("one-more", O_WRONLY);
    options = into(urls, fds, 1);
    options.url_count = 2;
    refused(client, &options, PELTON_CODE_USAGE, "2 files and 1 descriptors");
    const char *listing[] = {joined(good, "/set/")};
    options = into(listing, fds, 1);
    refused(client, &options, PELTON_CODE_USAGE, "is a listing");
    const char *same[] = {urls[0], urls[0]};
    int twice[] = {fds[0], fds[0]};
    options = into(same, twice, 2);
    refused(client, &options, PELTON_CODE_USAGE, "descriptors[1] is given twice");
    twice[1] = opened("another", O_WRONLY);
    refused(client, &options, PELTON_CODE_USAGE, "two files are called");
    close(twice[1]);
    close(fds[0]);
    pelton_client_free(client);
}

struct drain {
    int fd;
    size_t bytes;
};

static void *read_all(void *argument) {
    struct drain *drain = argument;
    char buffer[65536];
    ssize_t got;
    while ((got = read(drain->fd, buffer, sizeof buffer)) > 0) {
        drain->bytes += (size_t)got;
    }
    CHECK(got == 0);
    return NULL;
}

/* Waits until a pipe takes no more. */
static void until_full(int end) {
    struct pollfd asked = {end, POLLOUT, 0};
    while (poll(&asked, 1, 0) == 1) {
        sched_yield();
    }
}

/* One file, in order, into what can't be written anywhere. */
void case_pipe(void) {
    pelton_client *client = new_client();
    const char *urls[] = {joined(setting("GOOD"), "/set/a.bin"), joined(setting("GOOD"), "/set/b.bin")};
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct drain drain = {ends[0], 0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_all, &drain) == 0);
    pelton_job_options options = into(urls, &ends[1], 1);
    CHECK(into_descriptors(client, &options) == PELTON_CODE_OK);
    int two[] = {ends[1], ends[1]};
    options = into(urls, two, 2);
    refused(client, &options, PELTON_CODE_USAGE, "a single file");
    close(ends[1]);
    CHECK(pthread_join(thread, NULL) == 0);
    close(ends[0]);
    CHECK(drain.bytes == (size_t)atol(setting("A_SIZE")));

    /* One that its writer does not wait for, and whose reader sleeps at first. */
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    options = into(urls, &ends[1], 1);
    pelton_job *job = NULL;
    CHECK(pelton_job_start(client, &options, &job, NULL) == PELTON_CODE_OK);
    close(ends[1]);
    drain = (struct drain){ends[0], 0};
    CHECK(pthread_create(&thread, NULL, read_all, &drain) == 0);
    CHECK(ended(job) == PELTON_CODE_OK);
    CHECK(pthread_join(thread, NULL) == 0 && drain.bytes == (size_t)atol(setting("A_SIZE")));
    close(ends[0]);

    /* One that nobody reads: cancelling does not wait for that. */
    CHECK(pipe(ends) == 0);
    options = into(urls, &ends[1], 1);
    CHECK(pelton_job_start(client, &options, &job, NULL) == PELTON_CODE_OK);
    until_full(ends[1]);
    CHECK(pelton_job_wait(job, 0, NULL) == PELTON_CODE_AGAIN && pelton_job_cancel(job) == PELTON_CODE_OK);
    CHECK(ended(job) == PELTON_CODE_CANCELLED);

    /* One whose reader is gone. SIGPIPE would end this program. */
    close(ends[0]);
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    CHECK(into_descriptors(client, &options) == PELTON_CODE_FILE_IO);
    close(ends[1]);

    /* A disk that is full. */
    int full = open("/dev/full", O_WRONLY);
    CHECK(full >= 0);
    options = into(urls, &full, 1);
    CHECK(into_descriptors(client, &options) == PELTON_CODE_DISK_FULL);
    close(full);

    /* A file that changes cannot be taken back from a stream. */
    const char *changing = joined(setting("BAD"), "/changing");
    int null = open("/dev/null", O_WRONLY);
    CHECK(null >= 0);
    options = into(&changing, &null, 1);
    CHECK(into_descriptors(client, &options) == PELTON_CODE_CANNOT_RESUME);
    close(null);
    pelton_client_free(client);
}
