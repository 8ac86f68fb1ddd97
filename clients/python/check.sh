#!/bin/sh
# Runs every check of the Python client in a virtual environment of its own, then installs a wheel with the program from
# PATH into an empty one and runs the first example of the README there.
#
#     ./check.sh             needs acpipe and fake-agent in PATH: cargo build --bins --features fake-agent
#
# pip takes packages from the index, or from a directory that PIP_FIND_LINKS and PIP_NO_INDEX=1 name.
# Prints SKIPPED for what could not run; it fails only for what did run.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
skipped=''

step() { printf '\n== %s\n' "$*"; }
skip() { skipped="$skipped
SKIPPED: $*"; printf 'SKIPPED: %s\n' "$*"; }

step 'virtual environment'
${PYTHON:-python3} -m venv "$work/dev"
python="$work/dev/bin/python"
# The list of pyproject.toml, for which pip needs version 25.1.
"$python" -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
"$python" -m pip install -q --group dev -e .

step 'generated files'
"$python" -m generate --check

step 'ruff'
"$python" -m ruff check .
"$python" -m ruff format --check .

step 'mypy --strict'
"$python" -m mypy --cache-dir "$work/mypy"

step 'pyright, strict'
# The package of PyPI downloads pyright, and Node if there is none; npm has pyright, too.
if "$python" -m pyright --version >"$work/pyright.log" 2>&1; then
    "$python" -m pyright --pythonpath "$python"
elif npx --yes pyright --version >>"$work/pyright.log" 2>&1; then
    npx --yes pyright --pythonpath "$python"
else
    skip "pyright: neither PyPI's nor npm's could be started: $(tail -n 1 "$work/pyright.log")"
fi

program=$(command -v acpipe || true)
if [ -z "$program" ]; then
    skip 'tests: no acpipe in PATH'
    skip 'wheel with the program: no acpipe in PATH'
else
    case $program in /*) ;; *) program="$PWD/$program" ;; esac

    step 'tests'
    if [ -x "$(dirname "$(readlink -f "$program")")/fake-agent" ]; then
        "$python" -m pytest -q -p no:cacheprovider
    else
        skip "tests: no fake-agent beside $program; build it with --features fake-agent"
    fi

    step 'wheels'
    "$python" -m build --wheel --no-isolation -o "$work/pure" . >"$work/build.log"
    ACPIPE_WHEEL_BINARY=$program "$python" -m build --wheel --no-isolation -o "$work/wheel" . >>"$work/build.log"
    ls "$work/pure" "$work/wheel"

    step 'the wheel in an empty environment'
    ${PYTHON:-python3} -m venv "$work/user"
    "$work/user/bin/pip" install -q --disable-pip-version-check "$work"/wheel/*.whl
    # A user's environment: no acpipe in PATH, no files of the user.
    mkdir "$work/home"
    in_user() { env -i HOME="$work/home" PATH="$work/user/bin:/usr/bin:/bin" "$@"; }
    awk '/^```python$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$work/example.py"
    in_user python "$work/example.py" | tee "$work/example.log"
    grep -q 'demo agent' "$work/example.log"
    in_user acpipe --version
    in_user python -c 'import acpipe; print(acpipe.find_acpipe())' | grep '/_bin/acpipe$'
fi

printf '\nPassed.%s\n' "$skipped"
