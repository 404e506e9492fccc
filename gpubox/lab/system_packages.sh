#!/bin/sh
# The system's own packages: the one list of what each `make` command needs beyond .venv/.
#
#   sh gpubox/lab/system_packages.sh COMMAND             have them: install what is missing, or say what to run
#   sh gpubox/lab/system_packages.sh --missing COMMAND   print the Debian packages that are missing, one a line
#
# COMMAND is venv, unit, demo or test, or lab for `gpubox lab` alone. It runs before .venv/ and Python exist, hence sh.
# Exit codes: 0 all there; 1 not there, with one line that says what to run; 2 wrong words.
set -eu

# needed by | program, alternatives with "|" (a path: that file; python3:MODULE: that module) | Debian package
list() {
    cat <<'END'
venv  python3                             python3
venv  python3:ensurepip                   python3-venv
venv  /etc/ssl/certs/ca-certificates.crt  ca-certificates
unit  systemd-analyze                     systemd
unit  ssh                                 openssh-client
unit  setpriv                             util-linux
unit  ip                                  iproute2
lab   lxc-start                           lxc
lab   debootstrap                         debootstrap
lab   nft                                 nftables
lab   apt-ftparchive                      apt-utils
lab   dpkg-deb                            dpkg
lab   gpg                                 gpg
lab   gpg-agent                           gpg-agent
lab   ip                                  iproute2
lab   ssh                                 openssh-client
lab   setpriv                             util-linux
test  chromium|google-chrome              chromium
END
}

groups() { # of the list's lines, those that a command needs; nothing for another word
    case $1 in
    venv) echo "venv" ;;
    unit) echo "venv unit" ;;
    lab) echo "lab" ;;
    demo) echo "venv lab" ;;
    test) echo "venv unit lab test" ;;
    esac
}

is_there() {
    case $1 in
    /*) [ -e "$1" ] ;;
    python3:*) "${PYTHON:-python3}" -c "import ${1#python3:}" 2>/dev/null ;;
    python3) command -v "${PYTHON:-python3}" >/dev/null ;;
    *"|"*) is_there "${1%%|*}" || is_there "${1#*|}" ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing() {
    wanted=$(groups "$1")
    list | while read -r group program package; do
        case " $wanted " in *" $group "*) is_there "$program" || echo "$package" ;; esac
    done | sort -u
}

install_them() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q || true # a broken foreign source must not stop what the others can give
    apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" || return 1
    case " $* " in *" lxc "*) # Debian's lxc starts a bridge of its own, which nobody asked for
        if [ -d /run/systemd/system ]; then systemctl disable --now lxc-net.service; fi ;;
    esac
}

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # where Debian keeps nft and debootstrap, whoever asks
only_print=no
if [ "${1:-}" = --missing ]; then
    only_print=yes
    shift
fi
command=${1:-}
if [ -z "$(groups "$command")" ]; then
    echo "system packages: no command \"$command\"; one of: venv, unit, lab, demo, test" >&2
    exit 2
fi
lacking=$(missing "$command")
if [ $only_print = yes ]; then
    [ -z "$lacking" ] || echo "$lacking"
    exit
fi
# shellcheck disable=SC2086,SC2116 # one line of what is a name a line
lacking=$(echo $lacking)
is_root=no
[ "$(id -u)" != 0 ] || is_root=yes
if [ $is_root = no ] && groups "$command" | grep -qw lab; then
    echo "make $command: needs root for its containers (and, missing here: ${lacking:-nothing}); run: sudo make $command" >&2
    exit 1
fi
[ -n "$lacking" ] || exit 0
install="apt-get install --no-install-recommends $lacking"
if ! command -v apt-get >/dev/null; then
    echo "make $command: missing here: $lacking (Debian's names), and no apt-get; on Debian or Ubuntu run: $install" >&2
    exit 1
fi
if [ $is_root = no ]; then
    echo "make $command: missing here: $lacking; run: sudo $install" >&2
    exit 1
fi
# shellcheck disable=SC2086 # a list of names, split on purpose
if ! install_them $lacking >&2; then
    echo "make $command: apt-get did not install $lacking (its reason stands above); then run: $install" >&2
    exit 1
fi
