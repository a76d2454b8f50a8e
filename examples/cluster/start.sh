#!/bin/sh
# Starts three NATS servers, three HTTP servers and two daemons. Ctrl-C ends all of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${FOLDER:-/tmp/roadstead-cluster}
NATS=${NATS:-nats-server}
ROADSTEAD=${ROADSTEAD:-roadstead}
for program in "$NATS" "$ROADSTEAD" python3; do
    command -v "$program" > /dev/null || { echo "$program is missing; see README.md" >&2; exit 1; }
done
mkdir -p "$folder"
pids=
# Each process is ended by its id.
trap 'kill $pids 2> /dev/null || true; wait' EXIT
trap 'exit 0' INT TERM
for n in 1 2 3; do
    cat > "$folder/nats-$n.conf" << END
server_name: n$n
listen: 127.0.0.1:422$n
jetstream { store_dir: "$folder/nats-$n", max_mem: 256M, max_file: 256M }
cluster {
    name: example
    listen: 127.0.0.1:622$n
    routes: [nats://127.0.0.1:6221, nats://127.0.0.1:6222, nats://127.0.0.1:6223]
}
END
    "$NATS" -c "$folder/nats-$n.conf" > "$folder/nats-$n.log" 2>&1 &
    pids="$pids $!"
    python3 "$here/worker.py" "900$n" "server-$n" &
    pids="$pids $!"
done
CLUSTER_SECRET=${CLUSTER_SECRET:-only-for-this-example}
export CLUSTER_SECRET
for name in one two; do
    "$ROADSTEAD" serve "$here/$name.toml" > "$folder/$name.log" 2>&1 &
    echo $! > "$folder/$name.pid"
    pids="$pids $!"
done
echo "The daemons listen on http://127.0.0.1:8081 and http://127.0.0.1:8082; logs are in $folder."
wait
