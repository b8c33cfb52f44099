# processes.sh: how the scripts beside it start and end the programs of one control plane; sourced, never run.
#
# A control plane lives in one directory. NAME.pid and NAME.log are of the process NAME, NAME.command is how it was
# started, one argument a line. Nothing is ended that does not name the directory in its own command line.

begin() { # DIRECTORY NAME COMMAND... : in the background, in a session of its own
    local directory=$1 name=$2
    shift 2
    printf '%s\n' "$@" >"$directory/$name.command"
    begin_again "$directory" "$name"
}

begin_again() { # DIRECTORY NAME : as it was started before
    local -a command
    mapfile -t command <"$1/$2.command"
    setsid "${command[@]}" >>"$1/$2.log" 2>&1 </dev/null &
    echo $! >"$1/$2.pid"
    # until it is that program: before, it is still this shell, which need not name the directory
    while kill -0 "$!" 2>/dev/null && ! is_ours "$1" "$!"; do sleep 0.02; done
}

# is_ours DIRECTORY PID : whether that process lives and names the directory. While a process changes to another program it
# has no command line for a moment, and one that has ended but was not waited for has none for good: so it is read again.
is_ours() {
    local line tries=10
    while ((tries--)) && kill -0 "$2" 2>/dev/null; do
        line=$(tr '\0' ' ' 2>/dev/null <"/proc/$2/cmdline") || true
        [[ -z $line ]] || break
        sleep 0.02
    done 2>/dev/null
    [[ ${line:-} == *"$1"* ]]
}

# finish DIRECTORY NAME [SECONDS] : TERM, and KILL after that time, which is short: nothing there is worth keeping.
finish() {
    local directory=$1 name=$2 tenths=$((${3:-2} * 10)) pid
    [[ -s $directory/$name.pid ]] || return 0
    pid=$(<"$directory/$name.pid")
    is_ours "$directory" "$pid" && kill -TERM "$pid" 2>/dev/null
    while is_ours "$directory" "$pid" && ((tenths-- > 0)); do sleep 0.1; done
    ! is_ours "$directory" "$pid" || kill -KILL "$pid" 2>/dev/null || true
    while is_ours "$directory" "$pid"; do sleep 0.05; done
    rm -f "$directory/$name.pid"
}

# until_ready DIRECTORY URL SECONDS : waits for the API server's own word; tells which process died meanwhile
until_ready() {
    local directory=$1 url=$2 deadline=$((SECONDS + $3)) name
    until [[ $(curl -s --noproxy '*' --max-time 2 --cacert "$directory/ca.crt" "$url/readyz" || true) == ok ]]; do
        for name in etcd kube-apiserver; do
            is_ours "$directory" "$(<"$directory/$name.pid")" || cannot "$name ended: $(tail -n 3 "$directory/$name.log")"
        done
        ((SECONDS < deadline)) || cannot "the API server is not ready after $3 s; see $directory/*.log"
        sleep 0.1
    done
}
