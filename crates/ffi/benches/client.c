/* The C half of benches/cpu.rs: downloads URLs into a directory and takes every event.
 *
 * client DIRECTORY URL...
 */

#include <stdio.h>

#include <pelton.h>

int main(int argc, char **argv) {
    pelton_client *client = NULL;
    pelton_job *job = NULL;
    pelton_error *error = NULL;
    pelton_job_options options = {0};
    options.struct_size = sizeof options;
    options.directory = argv[1];
    options.urls = (const char *const *)(argv + 2);
    options.url_count = (size_t)(argc - 2);
    if (pelton_client_new(NULL, &client, &error) == PELTON_CODE_OK) {
        pelton_job_start(client, &options, &job, &error);
    }
    pelton_event *event = NULL;
    while (pelton_next_event(job, -1, &event, NULL) == PELTON_CODE_OK) {
        pelton_event_free(event);
    }
    pelton_code code = pelton_job_wait(job, -1, error == NULL ? &error : NULL);
    if (code != PELTON_CODE_OK) {
        fprintf(stderr, "%s\n", pelton_error_message(error));
        pelton_error_free(error);
    }
    pelton_job_free(job);
    pelton_client_free(client);
    return code != PELTON_CODE_OK;
}
