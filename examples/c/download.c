/* Downloads URLs into a directory and shows how far it is.
 *
 * download DIRECTORY URL...
 * download DIRECTORY -i LIST    (a list of URLs, a JSON manifest)
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pelton.h>

/* Shows an error, frees it, and gives what main returns. */
static int failed(const char *what, pelton_error *error) {
    fprintf(stderr, "%s: %s\n", what, pelton_error_message(error));
    pelton_error_free(error);
    return EXIT_FAILURE;
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    size_t size = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text != NULL) {
        size += fread(text + size, 1, capacity - 1 - size, file);
        if (size + 1 < capacity) {
            text[size] = '\0';
            break;
        }
        capacity *= 2;
        char *more = realloc(text, capacity);
        if (more == NULL) {
            free(text);
        }
        text = more;
    }
    fclose(file);
    return text;
}

static void show(const pelton_event *event) {
    switch (pelton_event_kind(event)) {
    case PELTON_KIND_PROGRESS: {
        pelton_progress now = {0};
        now.struct_size = sizeof now;
        if (pelton_event_progress(event, &now) == PELTON_CODE_OK) {
            printf("%5.1f s  %" PRIu64 " of %" PRIu64 " files, %.1f of %.1f MB, %.1f Mbit/s\n",
                   now.at_s, now.files_done, now.files, (double)now.bytes / 1e6,
                   (double)now.bytes_expected / 1e6, now.throughput_bps / 1e6);
        }
        break;
    }
    case PELTON_KIND_FILE: {
        pelton_file file = {0};
        file.struct_size = sizeof file;
        if (pelton_event_file(event, &file) == PELTON_CODE_OK) {
            const char *how = file.code != PELTON_CODE_OK ? file.message
                              : file.already_there        ? "already there"
                                                          : "done";
            printf("%5.1f s  %s: %s\n", file.at_s, file.name, how);
        }
        break;
    }
    case PELTON_KIND_SUMMARY: {
        pelton_summary done = {0};
        done.struct_size = sizeof done;
        if (pelton_event_summary(event, &done) == PELTON_CODE_OK) {
            printf("%" PRIu64 " of %" PRIu64 " files, %" PRIu64 " bytes in %.2f s, %.1f Mbit/s",
                   done.files_done, done.files, done.bytes, done.seconds,
                   done.throughput_bps / 1e6);
            if (!isnan(done.energy_j)) {
                printf(", %.2f J (%s)", done.energy_j, done.energy_source);
            }
            printf("\n");
        }
        break;
    }
    default:
        break;
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s DIRECTORY URL... | DIRECTORY -i LIST\n", argv[0]);
        return EXIT_FAILURE;
    }
    pelton_error *error = NULL;
    pelton_client *client = NULL;
    if (pelton_client_new(NULL, &client, &error) != PELTON_CODE_OK) {
        return failed("no client", error);
    }

    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.directory = argv[1];
    char *list = NULL;
    if (argc == 4 && strcmp(argv[2], "-i") == 0) {
        list = read_file(argv[3]);
        if (list == NULL) {
            perror(argv[3]);
            pelton_client_free(client);
            return EXIT_FAILURE;
        }
        options.list = list;
    } else {
        options.urls = (const char *const *)(argv + 2);
        options.url_count = (size_t)(argc - 2);
    }

    pelton_job *job = NULL;
    pelton_code code = pelton_job_start(client, &options, &job, &error);
    free(list);
    pelton_client_free(client);
    if (code != PELTON_CODE_OK) {
        return failed("not started", error);
    }

    pelton_event *event = NULL;
    while (pelton_next_event(job, -1, &event, NULL) == PELTON_CODE_OK) {
        show(event);
        pelton_event_free(event);
    }
    code = pelton_job_wait(job, -1, &error);
    pelton_job_free(job);
    return code == PELTON_CODE_OK ? EXIT_SUCCESS : failed("incomplete", error);
}
