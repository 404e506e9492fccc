"""The Debian releases that a box can be made of, and what each needs besides its own packages."""

from dataclasses import dataclass

DEFAULT = "bookworm"
"""What a box is made of unless somebody asks for another; the hypervisor always is."""


@dataclass(frozen=True)
class Release:
    """One Debian release as a box's system."""

    version: int
    has_python_311: bool
    """The practice stack's locks and wheels are for Python 3.11; a release without it gets one below /usr/local."""


RELEASES = {
    "bookworm": Release(12, has_python_311=True),
    "trixie": Release(13, has_python_311=False),
    "bullseye": Release(11, has_python_311=False),
}

# Debian's own source package of Python 3.11, plain and unoptimised: the box only needs one that runs. `altinstall`
# leaves the name python3 to the release's own. apt checks the signature of the source with the archive's key.
PYTHON_311 = r"""
export DEBIAN_FRONTEND=noninteractive
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb-src [signed-by=$keyring] {mirror} bookworm main" > /etc/apt/sources.list.d/python-source.list
apt-get update
apt-mark showmanual > /tmp/manual
apt-get install -y --no-install-recommends gcc make libc6-dev libssl-dev zlib1g-dev libffi-dev libbz2-dev \
    liblzma-dev libsqlite3-dev uuid-dev xz-utils
mkdir /tmp/python
cd /tmp/python
apt-get source --download-only python3.11
tar xf python3.11_*.orig.tar.[gx]z --strip-components=1
./configure --quiet --without-ensurepip --disable-test-modules
make --quiet -j2
make --quiet altinstall
cd /
rm -rf /tmp/python /usr/local/share/man /etc/apt/sources.list.d/python-source.list
/usr/local/bin/python3.11 -c 'import ssl, ctypes, sqlite3, lzma, bz2, zlib, uuid'
# what the build needed goes again, except the libraries that the interpreter is linked to
apt-mark showmanual | grep -vxFf /tmp/manual | xargs -r apt-mark auto
find /usr/local/lib/python3.11/lib-dynload /usr/local/bin/python3.11 -type f -exec ldd {} + \
    | awk '/=> \// { print $3 }' | sort -u | xargs readlink -e | sed 's,.*/,*/,' | xargs dpkg -S \
    | cut -d : -f 1 | sort -u | xargs apt-mark manual
apt-get autoremove -y --purge
rm -f /tmp/manual
apt-get clean
rm -rf /var/lib/apt/lists/*
"""
