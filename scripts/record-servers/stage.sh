# shellcheck shell=bash
# What the scripts beside this one share: each starts one server on loopback with its data in a
# temporary folder, loads it, records its threads, and stops it. Packages of this Debian that are
# missing are installed with apt-get and stay; nothing else does.
#
#   SCRIPT [--suite SUITE] [VARIANT]
#
#   --suite SUITE     the server is unpacked from another Debian suite into the temporary folder
#   TEMPER            the command, `temper` by default
#   SECONDS_OF_LOAD   how long is recorded, 10 by default
#   OUT               where recordings go, plugins/builtin_profiles/recordings by default
set -euo pipefail
export LC_ALL=C
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TEMPER=${TEMPER:-temper}
OUT=${OUT:-$here/plugins/builtin_profiles/recordings}
load_s=${SECONDS_OF_LOAD:-10}
repeats="scripts/record-servers/$(basename "$0")${*:+ $*}"
stage=$(mktemp -d)
chmod 711 "$stage"
started=()
ends_by=TERM
suite=${default_suite:-}
if [[ ${1:-} == --suite ]]; then
    suite=$2
    shift 2
fi
# The folder for data as we see it and as the server does, and what every command of it begins with.
outside=$stage/data inside=$stage/data within=()

strike() {
    local code=$? pid number
    ((code == 0)) || tail -n 20 "$stage/log" >&2 || true
    # Clients first: some servers wait for them.
    for ((number = ${#started[@]} - 1; number >= 0; number--)); do
        pid=${started[number]}
        kill -"$ends_by" "$pid" 2>/dev/null || true
        timeout 20 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null || true
    done
    for number in 1 2 3; do
        rm -rf --one-file-system "$stage" 2>/dev/null && break
        sleep 1
    done
    exit "$code"
}
trap strike EXIT

need() { # PACKAGE...: installs those that are missing
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    ((${#missing[@]} == 0)) && return
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

furnish() { # ROOT: what programs find on every Debian and no package of theirs brings
    local name
    for name in bin sbin lib lib64; do [[ -e $1/$name ]] || ln -s "usr/$name" "$1/$name"; done
    mkdir -p -m 1777 "$1/tmp" "$1/dev/shm" "$1/etc" "$1/run" "$1/var/run"
    printf '%s\n' root:x:0:0::/:/bin/sh nobody:x:65534:65534::/:/bin/sh >"$1/etc/passwd"
    printf '%s\n' root:x:0: nogroup:x:65534: >"$1/etc/group"
    echo '127.0.0.1 localhost' >"$1/etc/hosts"
    [[ -e $1/dev/null ]] || mknod -m 666 "$1/dev/null" c 1 3
    [[ -e $1/dev/urandom ]] || mknod -m 444 "$1/dev/urandom" c 1 9
}

need_server() { # PACKAGE...: the server's own, from this Debian or from the suite
    if [[ -z $suite ]]; then
        (($# == 0)) || need "$@"
    else
        need mmdebstrap
        # A mirror that stands still for a while is as good.
        mmdebstrap --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' --include="$(IFS=,; echo "$*")" "$suite" "$stage/root" \
            http://deb.debian.org/debian >>"$stage/log" 2>&1
        furnish "$stage/root"
        outside=$stage/root/data inside=/data within=(chroot "$stage/root")
    fi
    mkdir "$outside"
    chmod 777 "$outside"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

play() { # COMMAND...: starts it, to be stopped at the end; its id is in $played
    "$@" >>"$stage/log" 2>&1 &
    played=$!
    started+=("$played")
}

await() { # COMMAND...: waits until it succeeds
    local tries
    for tries in $(seq 150); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "$repeats: gave up after $tries tries of: $*" >&2
    return 1
}

record() { # NAME PROGRAM VERSION PID...: records into NAME.json
    local name=$1 program=$2 version=$3 pid pids=()
    shift 3
    for pid in "$@"; do pids+=(--pid "$pid"); done
    rm -f "$OUT/$name.json"
    $TEMPER profiles record "${pids[@]}" --seconds "$load_s" --program "$program" \
        --version "$version" --command "$repeats" -o "$OUT/$name.json"
}
