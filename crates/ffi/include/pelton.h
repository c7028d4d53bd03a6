/*
 * The C interface of pelton: downloads many files over HTTP at the throughput, the energy, or the
 * balance of the two that you ask for.
 *
 * Handles (pelton_client, pelton_job, pelton_event, pelton_error) are opaque and have one owner each.
 * A function that can fail returns a pelton_code, and tells why in words through a pelton_error ** that
 * may be NULL. There is no error of the last call, and nothing global. No function throws or unwinds.
 * Using a handle that was freed is undefined, and so is a pointer that points to nothing.
 *
 * Structures begin with struct_size. Set one to zeros, set struct_size to its sizeof, then what is
 * needed: zero is every field's default, so a program that was built with an older or a newer header
 * works with this library as long as it uses nothing that the library lacks.
 *
 * fork: pelton's threads do not survive it, and locks may be held for ever. The child of a process that
 * uses pelton may exec or _exit, and may call no function of pelton. The parent goes on undisturbed, and
 * no descriptor of pelton survives exec.
 *
 * The guide is docs/c.md.
 */

#ifndef PELTON_H
#define PELTON_H

/* Written by `cargo xtask header` from crates/ffi/src/c. Do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A flag of pelton_client_options: replaces existing files that differ.
 */
#define PELTON_CLIENT_OVERWRITE 1

/**
 * A flag of pelton_client_options: accepts every certificate.
 */
#define PELTON_CLIENT_INSECURE 2

/**
 * A flag of pelton_client_options: no meter, so that no joules are reported.
 */
#define PELTON_CLIENT_NO_METER 4

/**
 * A flag of pelton_job_options: starts over instead of continuing parts, and keeps none.
 */
#define PELTON_JOB_NO_RESUME 1

/**
 * A flag of pelton_job_options: a file is complete only when it is on the disk.
 */
#define PELTON_JOB_FSYNC 2

/**
 * A flag of pelton_job_options: reserves the blocks of a file at once, so that a full disk shows at
 * the start.
 */
#define PELTON_JOB_RESERVE 4

/**
 * A flag of pelton_job_options: follows sub-directories of listings.
 */
#define PELTON_JOB_RECURSIVE 8

/**
 * What a function did, or why a file or a run failed.
 *
 * The numbers are stable: none is ever given another meaning, and new ones are added at the end of
 * their group. A program must bear numbers that it does not know. 1 to 99 are failures of a
 * download, 100 to 199 mistakes in a call, and from 200 on nothing failed.
 */
enum pelton_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is done; of a run: every file is there.
     */
    PELTON_CODE_OK = 0,
    /**
     * The input is malformed or contradicts itself.
     */
    PELTON_CODE_USAGE = 1,
    /**
     * HTTP 404 or 410.
     */
    PELTON_CODE_NOT_FOUND = 2,
    /**
     * The host name has no address. Tried again.
     */
    PELTON_CODE_RESOLVE = 3,
    /**
     * No connection: refused, unreachable, reset while connecting. Tried again.
     */
    PELTON_CODE_CONNECT = 4,
    /**
     * The TLS handshake failed: expired, wrong name, unknown authority.
     */
    PELTON_CODE_TLS = 5,
    /**
     * Nothing arrived for too long. Tried again.
     */
    PELTON_CODE_TIMEOUT = 6,
    /**
     * The connection ended before the body did. Tried again from there.
     */
    PELTON_CODE_SHORT_BODY = 7,
    /**
     * The server broke HTTP. Tried again.
     */
    PELTON_CODE_PROTOCOL = 8,
    /**
     * The server reset the connection. Tried again, with fewer connections.
     */
    PELTON_CODE_RESET = 9,
    /**
     * What is there can't be continued.
     */
    PELTON_CODE_CANNOT_RESUME = 10,
    /**
     * The file system is full, or the quota is used up.
     */
    PELTON_CODE_DISK_FULL = 11,
    /**
     * The target exists and differs; see PELTON_CLIENT_OVERWRITE.
     */
    PELTON_CODE_EXISTS = 12,
    /**
     * A file could not be created, written or renamed.
     */
    PELTON_CODE_FILE_IO = 13,
    /**
     * A status that says that the request was wrong.
     */
    PELTON_CODE_HTTP_STATUS = 14,
    /**
     * A status of the 5xx family that may pass. Tried again.
     */
    PELTON_CODE_SERVER_ERROR = 15,
    /**
     * Redirects led in a circle, were too many, or led from https to http.
     */
    PELTON_CODE_REDIRECT = 16,
    /**
     * HTTP 401, 403 or 407.
     */
    PELTON_CODE_AUTH = 17,
    /**
     * HTTP 429 or 503. Tried again as the server says, with fewer connections.
     */
    PELTON_CODE_OVERLOADED = 18,
    /**
     * The bytes are not those that the digest promised.
     */
    PELTON_CODE_CHECKSUM = 19,
    /**
     * A URL that ends in `/` is no directory listing.
     */
    PELTON_CODE_LISTING = 20,
    /**
     * pelton_job_cancel or pelton_job_free ended it.
     */
    PELTON_CODE_CANCELLED = 21,
    /**
     * A fault of pelton itself.
     */
    PELTON_CODE_INTERNAL = 22,
    /**
     * Of a run: files failed, and not all for the same reason.
     */
    PELTON_CODE_UNFINISHED = 23,
    /**
     * A failure that has no number yet; its message says what it is.
     */
    PELTON_CODE_OTHER = 24,
    /**
     * No more files and sockets may be open. Tried again with fewer at once.
     */
    PELTON_CODE_DESCRIPTORS = 25,
    /**
     * A pointer is NULL where one is needed.
     */
    PELTON_CODE_NULL_ARGUMENT = 100,
    /**
     * A `struct_size` is too small, or a field that this library does not know is not zero.
     */
    PELTON_CODE_STRUCT_SIZE = 101,
    /**
     * A text is not UTF-8.
     */
    PELTON_CODE_NOT_UTF8 = 102,
    /**
     * The dispatcher thread, which runs the callbacks, would wait for itself.
     */
    PELTON_CODE_WRONG_THREAD = 103,
    /**
     * This system can't do that.
     */
    PELTON_CODE_UNSUPPORTED = 104,
    /**
     * pelton panicked: a fault of pelton. The handles of the call should only be freed.
     */
    PELTON_CODE_PANIC = 105,
    /**
     * Not yet: nothing happened within the time-out.
     */
    PELTON_CODE_AGAIN = 200,
    /**
     * There are no further events.
     */
    PELTON_CODE_END = 201,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum pelton_code pelton_code;
#else
typedef int32_t pelton_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What sort of event it is. A program must bear kinds that it does not know.
 */
enum pelton_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * No event: the pointer was NULL.
     */
    PELTON_KIND_NONE = 0,
    /**
     * What will be done, before the first byte. Its parts are in the JSON.
     */
    PELTON_KIND_PLAN = 1,
    /**
     * A file's transfer begins: see pelton_event_file.
     */
    PELTON_KIND_START = 2,
    /**
     * Channels or streams are dealt anew, and why. Its parts are in the JSON.
     */
    PELTON_KIND_DECISION = 3,
    /**
     * A file is there, or given up: see pelton_event_file.
     */
    PELTON_KIND_FILE = 4,
    /**
     * How far the run is, at most four times a second and at the end: see pelton_event_progress.
     */
    PELTON_KIND_PROGRESS = 5,
    /**
     * Totals, when every file is over: see pelton_event_summary.
     */
    PELTON_KIND_SUMMARY = 6,
    /**
     * The last event of every job: the report is ready. See pelton_event_end.
     */
    PELTON_KIND_END = 7,
    /**
     * An event that has no number yet; the JSON says what it is.
     */
    PELTON_KIND_OTHER = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum pelton_kind pelton_kind;
#else
typedef int32_t pelton_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which HTTP version is spoken.
 */
enum pelton_http
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Over TLS what the server picks of HTTP/2 and HTTP/1.1, else HTTP/1.1.
     */
    PELTON_HTTP_AUTO = 0,
    /**
     * HTTP/1.1 only.
     */
    PELTON_HTTP_HTTP1 = 1,
    /**
     * HTTP/2 over TLS, HTTP/1.1 in cleartext.
     */
    PELTON_HTTP_HTTP2 = 2,
    /**
     * HTTP/2 without asking, in cleartext too.
     */
    PELTON_HTTP_HTTP2_PRIOR_KNOWLEDGE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum pelton_http pelton_http;
#else
typedef int32_t pelton_http;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a meter tells.
 */
enum pelton_meter_unit
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Joules that were used since any fixed moment. What falls, or rises faster than 100 kW, begins anew.
     */
    PELTON_METER_UNIT_JOULES = 0,
    /**
     * Watts at this moment. Below zero or beyond 100 kW is no value.
     */
    PELTON_METER_UNIT_WATTS = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum pelton_meter_unit pelton_meter_unit;
#else
typedef int32_t pelton_meter_unit;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What is asked for.
 */
enum pelton_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The most throughput per joule.
     */
    PELTON_POLICY_EHT = 0,
    /**
     * The most throughput.
     */
    PELTON_POLICY_HAT = 1,
    /**
     * The least energy.
     */
    PELTON_POLICY_LOWE = 2,
    /**
     * `max_files` files at once over `max_streams_per_file` streams each, exactly; 0 is one.
     */
    PELTON_POLICY_FIXED = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum pelton_policy pelton_policy;
#else
typedef int32_t pelton_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a meter covers.
 */
enum pelton_scope
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The whole device.
     */
    PELTON_SCOPE_DEVICE = 0,
    /**
     * The network interface.
     */
    PELTON_SCOPE_RADIO = 1,
    /**
     * The processor cores.
     */
    PELTON_SCOPE_CPU = 2,
    /**
     * The processor package.
     */
    PELTON_SCOPE_PACKAGE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum pelton_scope pelton_scope;
#else
typedef int32_t pelton_scope;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Downloads with one set of settings, and the dispatcher thread of its downloads.
 *
 * Threads: every function may be called by several threads at once with the same client, except
 * pelton_client_free.
 */
typedef struct pelton_client pelton_client;

/**
 * Why a call failed, in words. Made by the functions that take a `pelton_error **`.
 *
 * Such a pointer may be NULL: then only the code is told. Otherwise the function first sets what it
 * points to to NULL, and to an error that the caller frees with pelton_error_free if it fails.
 * PELTON_CODE_AGAIN and PELTON_CODE_END are no failures and make no error.
 */
typedef struct pelton_error pelton_error;

/**
 * Something that a run tells.
 *
 * Threads: every function may be called by several threads at once with the same event, except
 * pelton_event_free.
 */
typedef struct pelton_event pelton_event;

/**
 * A download under way.
 *
 * Threads: every function may be called by several threads at once with the same job, except
 * pelton_job_free.
 */
typedef struct pelton_job pelton_job;

/**
 * Ceilings that bind every policy. Zero is each field's default.
 *
 * Set it to zeros, then `struct_size`, then what is needed.
 */
typedef struct pelton_limits {
    /**
     * sizeof(struct pelton_limits).
     */
    size_t struct_size;
    /**
     * No range stream is made for fewer bytes. 0: two windows of a stream.
     */
    uint64_t split_floor_bytes;
    /**
     * Files in transfer at once. 0: as the policy says.
     */
    uint32_t max_files;
    /**
     * Range streams of one file. 0: as the policy says.
     */
    uint32_t max_streams_per_file;
    /**
     * Connections to one origin. 0: 64.
     */
    uint32_t max_connections_per_origin;
    /**
     * Connections over all origins. 0: 128.
     */
    uint32_t max_connections;
    /**
     * Bytes of bodies come no faster than this, bits a second, over all files together; files share
     * it evenly. 0: no limit.
     */
    double max_rate_bps;
    /**
     * Buffers and windows of connections hold no more than this together, which bounds how many there
     * are. 0: 512 MiB; less than 1 MiB counts as 1 MiB.
     */
    uint64_t max_memory_bytes;
    /**
     * The same as `max_rate_bps` for each origin, below it. 0: no limit.
     */
    double max_rate_per_origin_bps;
} pelton_limits;

/**
 * A sensor that the application reads, such as a phone's battery gauge.
 *
 * Set it to zeros, then `struct_size`, then what is needed. pelton copies it, so it and its texts
 * may go after pelton_client_new.
 */
typedef struct pelton_meter {
    /**
     * sizeof(struct pelton_meter).
     */
    size_t struct_size;
    /**
     * Its name, as in `measured: NAME`. UTF-8. Must not be NULL.
     */
    const char *name;
    /**
     * Writes the present value and gives 0; another result means that there is none now. Must not
     * be NULL.
     *
     * It is called about ten times a second and when a file begins or ends, on the thread of each download of the client, so with
     * several downloads by several threads at once. It must return at once, must not throw, and may
     * call no function of pelton that waits.
     */
    int32_t (*read)(void *user_data,
                    double *value);
    /**
     * Handed to `read` and `release`.
     */
    void *user_data;
    /**
     * Called once, on any thread, when `read` will not be called again: the client is freed and its
     * downloads are over. If pelton_client_new fails, neither is ever called. May be NULL.
     */
    void (*release)(void *user_data);
    /**
     * The least difference that shows, joules.
     */
    double step_j;
    /**
     * The time between two fresh values; 0: always fresh. Above 200 ms the joules of policies come
     * from the model, and this meter's stand in the report.
     */
    uint32_t interval_ms;
    /**
     * A value of pelton_scope.
     */
    int32_t scope;
    /**
     * A value of pelton_meter_unit.
     */
    int32_t unit;
    /**
     * Zero.
     */
    int32_t reserved;
} pelton_meter;

/**
 * The settings of a client. Zero is each field's default.
 *
 * Set it to zeros, then `struct_size`, then what is needed. pelton copies it: it and what it points
 * to may go after pelton_client_new. Texts are UTF-8.
 */
typedef struct pelton_client_options {
    /**
     * sizeof(struct pelton_client_options).
     */
    size_t struct_size;
    /**
     * Ceilings. NULL: the defaults.
     */
    const struct pelton_limits *limits;
    /**
     * Where joules come from. NULL: the best that this machine has, else a model.
     */
    const struct pelton_meter *meter;
    /**
     * The value of User-Agent. NULL: pelton and its version.
     */
    const char *user_agent;
    /**
     * `header_count` header fields as `Name: value`, sent with every request.
     */
    const char *const *headers;
    /**
     * How many `headers` there are.
     */
    size_t header_count;
    /**
     * The user name for Basic authentication. NULL: none.
     */
    const char *user;
    /**
     * Its password. NULL: empty.
     */
    const char *password;
    /**
     * `http://`, `socks5://` or `socks5h://`, with user and password where it wants them. NULL: the
     * environment's; empty: none.
     */
    const char *proxy;
    /**
     * A PEM file with authorities that are trusted besides the platform's. NULL: none.
     */
    const char *ca_file;
    /**
     * A PEM file with the client's certificates. NULL: none.
     */
    const char *certificate_file;
    /**
     * A PEM file with its key. NULL: in `certificate_file`.
     */
    const char *key_file;
    /**
     * What the link carries, bits a second, until the measurement knows better. 0: not known.
     */
    double bandwidth_bps;
    /**
     * Its round-trip time, seconds. 0: not known.
     */
    double rtt_s;
    /**
     * A value of pelton_policy.
     */
    int32_t policy;
    /**
     * A value of pelton_http.
     */
    int32_t http;
    /**
     * PELTON_CLIENT_... joined by `|`.
     */
    uint32_t flags;
    /**
     * How long opening a connection may take. 0: 30 s.
     */
    uint32_t connect_timeout_ms;
    /**
     * A stream that brings nothing for this long has failed. 0: 30 s.
     */
    uint32_t stall_timeout_ms;
    /**
     * Attempts in a row without progress before a file is given up; four times as many where the
     * server says that it is overloaded (429, 503). 0: 5.
     */
    uint32_t attempts;
    /**
     * The first pause between two attempts, which doubles. 0: 250 ms.
     */
    uint32_t retry_wait_ms;
    /**
     * Zero.
     */
    uint32_t reserved;
} pelton_client_options;

/**
 * What a download is told. Zero is each field's default.
 *
 * Set it to zeros, then `struct_size`, then what is needed: `urls` or `list`, and `directory` or
 * `descriptors`. pelton copies it: it and what it points to may go after pelton_job_start. Texts are
 * UTF-8.
 */
typedef struct pelton_job_options {
    /**
     * sizeof(struct pelton_job_options).
     */
    size_t struct_size;
    /**
     * `url_count` URLs. One that ends in `/` is a directory listing and means its files.
     */
    const char *const *urls;
    /**
     * How many `urls` there are.
     */
    size_t url_count;
    /**
     * The text of a list, besides the URLs or instead: a JSON manifest, URLs with aria2's options, or
     * a list of checksums. See docs/command.md. NULL: none.
     */
    const char *list;
    /**
     * What names in a list of checksums and relative URLs in a manifest are relative to. NULL: none.
     */
    const char *base_url;
    /**
     * Files go below this directory, which is made if it is missing.
     */
    const char *directory;
    /**
     * Instead of a directory: file descriptors, open for writing, one a file in the order of the
     * URLs and then of the list; no listings. Each is emptied and filled from its start, whatever its
     * position; for a digest to be checked it has to be open for reading too. A file that fails
     * leaves what has arrived; nothing is resumed. A single file may go to something else, such as a
     * pipe: then it comes in order over one stream, as fast as its reader takes it. A reader that
     * goes away is a PELTON_CODE_FILE_IO; SIGPIPE does not come. pelton duplicates them, so that the caller may
     * close its own after pelton_job_start.
     */
    const int32_t *descriptors;
    /**
     * How many `descriptors` there are.
     */
    size_t descriptor_count;
    /**
     * Takes the events instead of pelton_next_event. NULL: events wait for that.
     *
     * It is called on the client's dispatcher thread, for one event after the other, those of all
     * jobs of the client. While it runs, nothing is told of the other jobs either: no callback, no
     * event, and no end to pelton_job_wait. So it must return soon, and must not wait for a thread
     * that waits for one of these. The event belongs to pelton and ends with the call. It may call every function of pelton, pelton_job_free too, but
     * none that waits for this client. It must not throw.
     */
    void (*on_event)(struct pelton_job *job,
                     const struct pelton_event *event,
                     void *user_data);
    /**
     * Handed to `on_event`.
     */
    void *user_data;
    /**
     * PELTON_JOB_... joined by `|`.
     */
    uint32_t flags;
    /**
     * How many levels of sub-directories are followed. 0: all.
     */
    uint32_t depth;
} pelton_job_options;

/**
 * How far a run is. Set `struct_size` before the call.
 */
typedef struct pelton_progress {
    /**
     * sizeof(struct pelton_progress).
     */
    size_t struct_size;
    /**
     * Since the run began, seconds.
     */
    double at_s;
    /**
     * Goodput over the last sample, bits a second.
     */
    double throughput_bps;
    /**
     * Energy so far, joules; not a number without a meter.
     */
    double energy_j;
    /**
     * Expected time to the end at this rate, seconds; not a number when nothing moves.
     */
    double remaining_s;
    /**
     * Body bytes received.
     */
    uint64_t bytes;
    /**
     * Body bytes of the whole list, as far as known or predicted.
     */
    uint64_t bytes_expected;
    /**
     * Files in the list.
     */
    uint64_t files;
    /**
     * Files that are there.
     */
    uint64_t files_done;
    /**
     * Files given up.
     */
    uint64_t files_failed;
    /**
     * Connections open.
     */
    uint32_t connections;
    /**
     * Zero.
     */
    uint32_t reserved;
} pelton_progress;

/**
 * A file that begins or is over. Set `struct_size` before the call.
 */
typedef struct pelton_file {
    /**
     * sizeof(struct pelton_file).
     */
    size_t struct_size;
    /**
     * Its name under the directory; empty for a listing that can't be read. Belongs to the event.
     */
    const char *name;
    /**
     * Where from. Belongs to the event.
     */
    const char *url;
    /**
     * Why it is not there: one line for people, else empty. Belongs to the event.
     */
    const char *message;
    /**
     * Since the run began, seconds.
     */
    double at_s;
    /**
     * From its first request to its end, seconds.
     */
    double seconds;
    /**
     * What it drew while its bytes moved, joules; not a number without a meter.
     */
    double energy_j;
    /**
     * Its size, or what of it is there, bytes.
     */
    uint64_t bytes;
    /**
     * Bytes that an earlier run had left.
     */
    uint64_t resumed_from;
    /**
     * A value of pelton_code: PELTON_CODE_OK when it is there and verified, and when it begins.
     */
    int32_t code;
    /**
     * Connections that brought it.
     */
    uint32_t connections;
    /**
     * 1: it was there already and nothing was transferred.
     */
    uint32_t already_there;
    /**
     * 1: it failed, and a rerun may succeed.
     */
    uint32_t retryable;
} pelton_file;

/**
 * What a run did. Set `struct_size` before the call.
 */
typedef struct pelton_summary {
    /**
     * sizeof(struct pelton_summary).
     */
    size_t struct_size;
    /**
     * Where joules come from: `measured: ...` or `modelled: ...`; empty without a meter. Belongs to
     * the event.
     */
    const char *energy_source;
    /**
     * From the start to the last file's end, seconds.
     */
    double seconds;
    /**
     * Bytes over seconds, bits a second.
     */
    double throughput_bps;
    /**
     * Energy with the radio's tail, joules; not a number without a meter.
     */
    double energy_j;
    /**
     * CPU time of this process during the run, seconds.
     */
    double cpu_s;
    /**
     * Body bytes received.
     */
    uint64_t bytes;
    /**
     * Files in the list.
     */
    uint64_t files;
    /**
     * Files that are there.
     */
    uint64_t files_done;
    /**
     * Files given up.
     */
    uint64_t files_failed;
    /**
     * Connections opened.
     */
    uint64_t connections;
    /**
     * Requests made.
     */
    uint64_t requests;
    /**
     * Requests made again.
     */
    uint64_t retries;
    /**
     * What the command `pelton` would exit with.
     */
    uint32_t exit_code;
    /**
     * Zero.
     */
    uint32_t reserved;
} pelton_summary;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, such as `0.1.0`.
 *
 * Ownership: a constant, never freed. Threads: any.
 */
const char *pelton_version(void);

/**
 * The name of a code, such as `not_found`: what the JSON of events and reports calls it.
 *
 * Ownership: a constant, never freed. Threads: any. Errors: a number that is no code gives
 * `"unknown"`.
 */
const char *pelton_code_name(int32_t code);

/**
 * The code of an error.
 *
 * Threads: any. NULL: PELTON_CODE_OK.
 */
pelton_code pelton_error_code(const struct pelton_error *error);

/**
 * One line for people: what failed, on which URL or file, why, what to do. UTF-8.
 *
 * Ownership: belongs to the error and ends with it. Threads: any. NULL: an empty text.
 */
const char *pelton_error_message(const struct pelton_error *error);

/**
 * Whether the same may succeed later.
 *
 * Threads: any. NULL: no.
 */
bool pelton_error_is_retryable(const struct pelton_error *error);

/**
 * Frees an error.
 *
 * Ownership: takes the error. Threads: any. NULL: nothing happens.
 */
void pelton_error_free(struct pelton_error *error);

/**
 * Makes a client.
 *
 * Ownership: `*client` belongs to the caller, who frees it with pelton_client_free. `options` is
 * copied. Threads: any. NULL: `options` may be NULL, which means the defaults; so may `error`.
 * Errors: PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_NOT_UTF8,
 * PELTON_CODE_USAGE for a value that means nothing, PELTON_CODE_INTERNAL when no thread can be
 * started; `*client` is NULL then. Files that settings name are read when a download starts.
 */
pelton_code pelton_client_new(const struct pelton_client_options *options,
                              struct pelton_client **client,
                              struct pelton_error **error);

/**
 * From now on the bodies of all downloads of `client` come no faster than this together, bits a second;
 * their files share it evenly. 0 is no limit. What each download may take besides is in pelton_limits.
 *
 * Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT. Errors: PELTON_CODE_NULL_ARGUMENT,
 * PELTON_CODE_USAGE for a rate that is none.
 */
pelton_code pelton_client_set_max_rate(const struct pelton_client *client,
                                       double max_rate_bps,
                                       struct pelton_error **error);

/**
 * Frees a client. Its downloads go on; their handles are freed apart.
 *
 * Ownership: takes the client. Threads: any, callbacks too; no other call with this client may be
 * under way. NULL: nothing happens.
 */
void pelton_client_free(struct pelton_client *client);

/**
 * Starts a download on a thread of its own.
 *
 * Ownership: `*job` belongs to the caller, who frees it with pelton_job_free. `options` is copied,
 * file descriptors are duplicated, and the client may be freed while the download goes on.
 * `*job` is set before the first callback. Threads: any. NULL: only `error` may be. Errors:
 * PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_NOT_UTF8, PELTON_CODE_USAGE for a
 * malformed URL or list and for options that contradict each other, PELTON_CODE_FILE_IO for a
 * descriptor that is none, PELTON_CODE_DESCRIPTORS when too many are open, PELTON_CODE_INTERNAL when
 * no thread can be started; `*job` is NULL then. What else goes wrong is told by events and by pelton_job_wait.
 */
pelton_code pelton_job_start(const struct pelton_client *client,
                             const struct pelton_job_options *options,
                             struct pelton_job **job,
                             struct pelton_error **error);

/**
 * Frees a job, and cancels it if it is not over. What has arrived is kept for a later download into
 * the same directory.
 *
 * From the return on its callback is not called, and does not run on another thread: this waits for
 * a call that is under way, unless the callback itself calls this. (The caller must hold no lock
 * that the callback wants.) The download ends shortly after.
 *
 * Ownership: takes the job. Threads: any, its own callback too; no other call with this job may be
 * under way. NULL: nothing happens.
 */
void pelton_job_free(struct pelton_job *job);

/**
 * Stops for good and keeps what a later download into the same directory needs to go on. It returns
 * at once; the end shows as an event, and pelton_job_wait gives PELTON_CODE_CANCELLED then, unless
 * everything was there already. No effect once the run is over.
 *
 * Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT.
 */
pelton_code pelton_job_cancel(const struct pelton_job *job);

/**
 * Stops all streams; what has arrived is kept. It returns at once. No effect once the run is over.
 *
 * Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT.
 */
pelton_code pelton_job_pause(const struct pelton_job *job);

/**
 * Goes on after pelton_job_pause. It returns at once. No effect once the run is over.
 *
 * Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT.
 */
pelton_code pelton_job_resume(const struct pelton_job *job);

/**
 * Other ceilings from now on; streams beyond them are ended. It returns at once. No effect once the
 * run is over.
 *
 * Threads: any, callbacks too. NULL: `limits` means the defaults; `job` may not be. Errors:
 * PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_USAGE for a rate that is none.
 */
pelton_code pelton_job_set_limits(const struct pelton_job *job,
                                  const struct pelton_limits *limits,
                                  struct pelton_error **error);

/**
 * Waits for the next event at most `timeout_ms` milliseconds, or forever if that is negative.
 *
 * Events come in order, each to one caller, and end with one of the kind end. Those that nobody
 * takes are kept until the job is freed, except that of several in a row that say how far the run is
 * only the last is.
 *
 * Ownership: `*event` belongs to the caller, who frees it with pelton_event_free. Threads: any.
 * NULL: only `error` may be. Errors: PELTON_CODE_AGAIN when nothing came in time, PELTON_CODE_END
 * after the last event (these two make no error), PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_USAGE when
 * events go to a callback, PELTON_CODE_WRONG_THREAD in a callback of the same client unless
 * `timeout_ms` is 0; `*event` is NULL then.
 */
pelton_code pelton_next_event(const struct pelton_job *job,
                              int32_t timeout_ms,
                              struct pelton_event **event,
                              struct pelton_error **error);

/**
 * A file descriptor (an eventfd) for poll, epoll and the like: readable while pelton_next_event
 * would not wait, so after the last event too. Only poll it: pelton reads and writes it.
 *
 * Ownership: belongs to the job and ends with it. Threads: any. NULL: only `error` may be. Errors:
 * PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_USAGE when events go to a callback,
 * PELTON_CODE_UNSUPPORTED on other systems than Linux and Android, PELTON_CODE_INTERNAL when the
 * process has no descriptor left; `*descriptor` is -1 then.
 */
pelton_code pelton_job_event_fd(const struct pelton_job *job,
                                int32_t *descriptor,
                                struct pelton_error **error);

/**
 * Waits for the end of the run at most `timeout_ms` milliseconds, or forever if that is negative.
 * Events are left where they are. A callback has been told of the end, and has returned: the caller
 * must hold no lock that it wants, and no callback may wait for a thread that waits here.
 *
 * PELTON_CODE_OK: every file is there. If files failed, the code of their failures if it is the same
 * for all, else PELTON_CODE_UNFINISHED; `*error` has the first one's message. A run that could not
 * begin gives the code of the reason.
 *
 * Threads: any. NULL: only `error` may be. Errors besides: PELTON_CODE_AGAIN when it is not over in
 * time (without an error), PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_WRONG_THREAD in a callback of the
 * same client unless `timeout_ms` is 0.
 */
pelton_code pelton_job_wait(const struct pelton_job *job,
                            int32_t timeout_ms,
                            struct pelton_error **error);

/**
 * The report of a run that is over, as JSON: what `pelton get --report FILE.json` writes. UTF-8.
 *
 * Ownership: `*json` belongs to the caller, who frees it with pelton_string_free. Threads: any,
 * callbacks too. NULL: only `error` may be. Errors: PELTON_CODE_AGAIN before the end (without an
 * error), PELTON_CODE_NULL_ARGUMENT; `*json` is NULL then.
 */
pelton_code pelton_job_report_json(const struct pelton_job *job,
                                   char **json,
                                   struct pelton_error **error);

/**
 * Frees a text that a function says belongs to the caller.
 *
 * Ownership: takes the text. Threads: any. NULL: nothing happens.
 */
void pelton_string_free(char *string);

/**
 * What sort of event it is.
 *
 * Threads: any. NULL: PELTON_KIND_NONE.
 */
pelton_kind pelton_event_kind(const struct pelton_event *event);

/**
 * The event as one line of JSON, as `pelton get --json` writes it; UTF-8. The last event, which only
 * this interface has, is `{"event":"end","code":...,"message":...}`.
 *
 * Ownership: belongs to the event and ends with it. Threads: any. NULL: an empty text.
 */
const char *pelton_event_json(const struct pelton_event *event);

/**
 * How far the run is, from an event of the kind progress.
 *
 * Threads: any. NULL: neither may be. Errors: PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE,
 * PELTON_CODE_USAGE for an event of another kind.
 */
pelton_code pelton_event_progress(const struct pelton_event *event,
                                  struct pelton_progress *progress);

/**
 * The file of an event of the kind start or file. Of one that begins only `name`, `url` and `at_s`
 * are known.
 *
 * Ownership: its texts belong to the event. Threads: any. NULL: neither may be. Errors:
 * PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_USAGE for an event of another
 * kind.
 */
pelton_code pelton_event_file(const struct pelton_event *event,
                              struct pelton_file *file);

/**
 * The totals of an event of the kind summary.
 *
 * Ownership: its texts belong to the event. Threads: any. NULL: neither may be. Errors:
 * PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_USAGE for an event of another
 * kind.
 */
pelton_code pelton_event_summary(const struct pelton_event *event,
                                 struct pelton_summary *summary);

/**
 * How the run ended, from an event of the kind end: what pelton_job_wait gives.
 *
 * Ownership: `*message` belongs to the event. Threads: any. NULL: `message` may be; `event` gives
 * PELTON_CODE_NULL_ARGUMENT. Errors: PELTON_CODE_USAGE, with an empty message, for an event of
 * another kind.
 */
pelton_code pelton_event_end(const struct pelton_event *event,
                             const char **message);

/**
 * Frees an event of pelton_next_event. The event of a callback belongs to pelton and is not freed.
 *
 * Ownership: takes the event. Threads: any. NULL: nothing happens.
 */
void pelton_event_free(struct pelton_event *event);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PELTON_H */
