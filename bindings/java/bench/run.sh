#!/usr/bin/env bash
# Measures call overhead, and CPU seconds a gigabyte of Rust and Java on the same list over loopback. See docs/java.md.
#
#   bindings/java/bench/run.sh [PAIRS]
#
# It wants nginx, and 2 GiB of memory for the files.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/../../.."
work="$(mktemp --directory --tmpdir=/dev/shm)"
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; rm -r "$work"' EXIT

mkdir "$work/files"
urls=()
port=18080
# Three large files, forty medium ones, four hundred small ones: a gigabyte.
add() {
    truncate --size "$3" "$work/files/$1-$2"
    urls+=("http://127.0.0.1:$port/$1-$2")
}
for i in {1..3}; do add large "$i" 250M; done
for i in {1..40}; do add medium "$i" 5M; done
for i in {1..400}; do add small "$i" 64K; done

cat >"$work/nginx.conf" <<END
daemon off; worker_processes 1; pid $work/pid; error_log stderr; user root;
events { worker_connections 1024; }
http { access_log off; sendfile on; server { listen 127.0.0.1:$port backlog=1024; root $work/files; } }
END
PATH="$PATH:/usr/sbin" nginx -c "$work/nginx.conf" -p "$work" &
server=$!

java="java -cp $here/target/classes:$here/../pelton/target/classes"
$java io.pelton.CallOverhead
$java io.pelton.Throughput "$root/target/release/examples/throughput" "$work/out" "${1:-15}" "${urls[@]}"
