# settings.sh: what the scripts beside it share; sourced, never run.
#
# Env   TEMPER_CACHE      default ~/.cache/temper; everything fetched or built is below it, by version
#       TEMPER_VM_KERNEL  default 6.18.15+deb13-amd64, a Debian kernel with sched_ext (the full flavour: the cloud one has no 9p);
#                         a series such as 6.1 or 7.2 means the one of it that is in the cache, or the newest there is;
#                         arm64 and arm64-16k mean 6.18.15 for that machine, with pages of 4 and 16 KiB
#       TEMPER_VM_SUITES  default "trixie-backports trixie bookworm", where kernels are looked for
#       TEMPER_VM_MIRROR  default the Debian mirror of this machine's apt sources; an archived snapshot works too
#       TEMPER_VM_QEMU_SUITE  default bookworm-backports, where QEMU is for a machine whose own is too old
#       TEMPER_VM_QEMU    a QEMU to use whatever its version is; default the one that fetch-qemu prints

cache=${TEMPER_CACHE:-$HOME/.cache/temper}

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
# 3 is the exit code for "this machine cannot", as in temper itself.
cannot() { say "$*"; exit 3; }

# What the kernel's console ends with where the emulator ran kernel code that was just being rewritten: the fault that it
# raised is one that the kernel itself cannot have meant. A guest that dies of anything else is never booted again.
emulator_signatures='Oops: int3|PANIC: double fault|Oops: double fault'
# How much of a dead guest's console is printed.
console_lines=60

# emulator_signature CONSOLE: prints the first line with a signature; fails where there is none.
emulator_signature() { grep -aEom 1 ".*($emulator_signatures).*" "$1" 2>/dev/null | sed 's/^\[ *[0-9.]*\] //' | tr -d '\r' | grep .; }

# choose_kernel [VERSION]: sets kernel_version, machine (as uname -m tells it), apt_index, the index of that machine's
# packages, and kernel, where that one is or will be in the cache.
choose_kernel() {
    local newest='' debian=6.18.15+deb13
    kernel_version=${1:-${TEMPER_VM_KERNEL:-$debian-amd64}}
    [[ $kernel_version != arm64* ]] || kernel_version=$debian-$kernel_version
    case $kernel_version in
    *-arm64*) machine=aarch64 apt_index=apt-arm64 apt_options=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64) ;;
    *) machine=x86_64 apt_index=apt apt_options=() ;;
    esac
    [[ $kernel_version =~ ^[0-9]+([.][0-9]+)*([+.-][a-z0-9.]+)*$ ]] || { say "no kernel is called '$kernel_version'; see vm/settings.sh"; exit 2; }
    if is_series "$kernel_version"; then
        newest=$(cd "$cache/kernel" 2>/dev/null && compgen -G "$kernel_version.*/vmlinuz" | sort -V | tail -n 1) || true
        kernel_version=${newest:+${newest%/vmlinuz}}
        kernel_version=${kernel_version:-${1:-$TEMPER_VM_KERNEL}}
    fi
    kernel=$cache/kernel/$kernel_version
}

is_series() { [[ $1 =~ ^[0-9]+([.][0-9]+)?$ ]]; }

one_at_a_time() {
    mkdir -p "$cache"
    exec 9>"$cache/$(basename "$0").lock"
    flock 9
}

# need_packages COMMAND:PACKAGE ... : installs what is missing as root, says what to install otherwise.
# A "COMMAND" with a slash is a file that must exist.
need_packages() {
    local missing=() pair wanted
    for pair in "$@"; do
        wanted=${pair%%:*}
        case $wanted in
        */*) compgen -G "$wanted" >/dev/null || missing+=("${pair#*:}") ;;
        *) command -v "$wanted" >/dev/null || missing+=("${pair#*:}") ;;
        esac
    done
    ((${#missing[@]} == 0)) && return
    command -v apt-get >/dev/null || cannot "needs ${missing[*]} (Debian's names) and cannot install them here: no apt-get"
    ((EUID == 0)) || cannot "needs ${missing[*]}; install them: sudo apt-get install --no-install-recommends ${missing[*]}"
    say "installing ${missing[*]}"
    install_packages "${missing[@]}" || cannot "apt-get could not install ${missing[*]}; its messages are above"
}

# apt fails now and then for reasons of the moment (a mirror, a lock, a package file gone half way) and succeeds when asked again.
install_packages() {
    local try
    export DEBIAN_FRONTEND=noninteractive
    for try in 1 2 3; do
        apt-get -q -o DPkg::Lock::Timeout=120 update >&2 || true
        apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" >&2 && return
        say "apt-get failed ($try of 3); repairing and trying again"
        apt-get -q -o DPkg::Lock::Timeout=120 -f install -y >&2 || true
        sleep $((try * 2))
    done
    return 1
}

debian_mirror() {
    set +o pipefail
    {
        cat /etc/apt/sources.list.d/*.sources | awk '$1 == "URIs:" {print $2}'
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list | sed 's/\[[^]]*\]//' | awk '$1 == "deb" {print $2}'
    } 2>/dev/null | awk '/\/debian\/?$/ && !found++'
    set -o pipefail
}

# private_apt INDEX COMMAND ... : apt with an index of its own below the cache; the system's is not touched.
private_apt() {
    local index=$cache/$1 command=$2
    shift 2
    "$command" -q -o "Dir::State::Lists=$index/lists" -o "Dir::Etc::SourceList=$index/sources.list" \
        -o Dir::Etc::SourceParts=/dev/null -o "Dir::Cache=$index/cache" -o APT::Sandbox::User=root \
        -o Acquire::Retries=3 -o Acquire::Check-Valid-Until=false ${apt_options[@]+"${apt_options[@]}"} "$@"
}

# open_index INDEX SUITE ... : reads what these suites of the mirror have into that index.
open_index() {
    local index=$1 suite mirror=${TEMPER_VM_MIRROR:-$(debian_mirror)}
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    shift
    [[ -n $mirror ]] || cannot "no Debian mirror in this machine's apt sources; name one in TEMPER_VM_MIRROR"
    [[ -e $keyring ]] || cannot "no $keyring; install debian-archive-keyring"
    mkdir -p "$cache/$index/lists/partial" "$cache/$index/cache/archives/partial"
    for suite in "$@"; do echo "deb [signed-by=$keyring] $mirror $suite main"; done >"$cache/$index/sources.list"
    private_apt "$index" apt-get update >&2 || private_apt "$index" apt-get update >&2 || cannot "cannot read $* from $mirror"
}

# libraries_of INDEX PACKAGE ... : prints the libraries that an empty system would need for them, so that nothing depends on
# what this machine happens to have. The C library goes with the machine's own loader and is left out.
libraries_of() {
    local index=$1
    shift
    private_apt "$index" apt-get -s -o Dir::State::status=/dev/null --no-install-recommends install "$@" |
        awk '$1 == "Inst" && $2 ~ /^lib/ && $2 != "libc6" {print $2}'
}
