// Downloads URLs into a directory: handles that free themselves, events by callback.
//
// download DIRECTORY URL...

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <pelton.h>

namespace {

template <auto Free>
struct Deleter {
    template <typename Handle>
    void operator()(Handle *handle) const noexcept {
        Free(handle);
    }
};

using Client = std::unique_ptr<pelton_client, Deleter<pelton_client_free>>;
using Job = std::unique_ptr<pelton_job, Deleter<pelton_job_free>>;
using Error = std::unique_ptr<pelton_error, Deleter<pelton_error_free>>;
using Text = std::unique_ptr<char, Deleter<pelton_string_free>>;

// Throws what `error` says, unless `code` is that of success.
void check(pelton_code code, pelton_error *error) {
    Error owned(error);
    if (code != PELTON_CODE_OK) {
        throw std::runtime_error(std::string(pelton_code_name(code)) + ": " + pelton_error_message(error));
    }
}

// Runs on pelton's dispatcher thread. No exception may leave it.
void on_event(pelton_job *, const pelton_event *event, void *user_data) noexcept {
    auto &files = *static_cast<std::vector<std::string> *>(user_data);
    switch (pelton_event_kind(event)) {
    case PELTON_KIND_PROGRESS: {
        pelton_progress now{};
        now.struct_size = sizeof now;
        if (pelton_event_progress(event, &now) == PELTON_CODE_OK) {
            std::cout << now.bytes << " of " << now.bytes_expected << " bytes, "
                      << now.throughput_bps / 1e6 << " Mbit/s\n";
        }
        break;
    }
    case PELTON_KIND_FILE: {
        pelton_file file{};
        file.struct_size = sizeof file;
        if (pelton_event_file(event, &file) == PELTON_CODE_OK && file.code == PELTON_CODE_OK) {
            files.emplace_back(file.name);
        }
        break;
    }
    default:
        break;
    }
}

void download(const std::string &directory, const std::vector<const char *> &urls) {
    pelton_error *error = nullptr;

    pelton_client_options settings{};
    settings.struct_size = sizeof settings;
    settings.policy = PELTON_POLICY_HAT;
    pelton_client *made = nullptr;
    auto code = pelton_client_new(&settings, &made, &error);
    check(code, error);
    Client client(made);

    // Filled by the callback; before the job in this list, so that it outlives it.
    std::vector<std::string> files;
    pelton_job_options options{};
    options.struct_size = sizeof options;
    options.urls = urls.data();
    options.url_count = urls.size();
    options.directory = directory.c_str();
    options.on_event = on_event;
    options.user_data = &files;
    pelton_job *started = nullptr;
    code = pelton_job_start(client.get(), &options, &started, &error);
    check(code, error);
    Job job(started);

    code = pelton_job_wait(job.get(), -1, &error);
    check(code, error);
    char *json = nullptr;
    code = pelton_job_report_json(job.get(), &json, &error);
    check(code, error);
    Text report(json);
    // From here on the callback does not run, so that the files can be read.
    job.reset();
    for (const auto &file : files) {
        std::cout << file << '\n';
    }
    std::cout << files.size() << " files; the report has " << std::string(report.get()).size() << " bytes\n";
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) {
        std::cerr << "usage: " << argv[0] << " DIRECTORY URL...\n";
        return EXIT_FAILURE;
    }
    try {
        download(argv[1], {argv + 2, argv + argc});
    } catch (const std::exception &failure) {
        std::cerr << failure.what() << '\n';
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
