#!/bin/sh
# Installs everything into .venv, and Java if it is missing and we may.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "setup: $*" >&2; }

as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

debian() { # install Debian packages, quietly
	DEBIAN_FRONTEND=noninteractive apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

python=
for candidate in python3.11 python3; do
	if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		python=$candidate
		break
	fi
done
if [ -z "$python" ]; then
	say "Python 3.11 or newer is needed; on Debian: apt-get install python3"
	exit 3
fi

if ! [ -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
	say "creating .venv with $("$python" --version)"
	if ! "$python" -m venv --clear .venv >/dev/null 2>&1; then
		if as_root; then
			say "installing python3-venv"
			debian python3-venv
			"$python" -m venv --clear .venv
		else
			say "Python's venv module is missing; run as root: apt-get install python3-venv"
			exit 3
		fi
	fi
fi

say "installing the pinned packages (about 600 MB; a minute or two)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .

if ! command -v java >/dev/null 2>&1 && ! [ -x "${JAVA_HOME:-/nonexistent}/bin/java" ]; then
	if as_root; then
		say "installing openjdk-17-jre-headless"
		debian openjdk-17-jre-headless
	else
		say "Java is missing. The simulator works without it; Spark needs it. Run as root:"
		say "    apt-get install openjdk-17-jre-headless"
	fi
fi
say "done; .venv/bin/penstock doctor tells what this machine can do"
