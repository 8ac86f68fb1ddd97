#!/bin/sh
# Runs the tests of the editor examples, headless, against a scripted agent.
#
#   cargo build --bins --features fake-agent
#   PATH="$PWD/target/debug:$PATH" examples/editors/check.sh
#
# An editor that is not installed is skipped with a note; with CI in the environment, that is a failure.
# Debian packages: neovim, emacs-nox. The VS Code example needs Node 20 or newer, and npm for its one dependency.
set -eu
cd "$(dirname "$0")"
here=$PWD

FAKE_AGENT=$(dirname "$(readlink -f "$(command -v acpipe || true)")")/fake-agent
if [ ! -x "$FAKE_AGENT" ]; then
    echo "no acpipe with fake-agent beside it in PATH: run cargo build --bins --features fake-agent," \
        "and prepend target/debug to PATH" >&2
    exit 2
fi

command -v pgrep >/dev/null || { echo "pgrep is not installed (Debian: apt-get install procps)" >&2; exit 2; }

passed= skipped= failed=

skip() { # NAME REASON
    printf '\n!!!! SKIPPED: %s: %s\n' "$1" "$2" >&2
    skipped="$skipped $1"
}

# Waits until no process has the directory in its command line, as acpipe and the agent of a test have.
all_exited() { # DIRECTORY
    tries=100
    while left=$(pgrep -af -- "$1"); do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || break
        sleep 0.1
    done
    [ -z "$left" ] || printf 'processes are left:\n%s\n' "$left" >&2
    [ -z "$left" ]
}

# Runs a command in an empty project, with state, configuration and home of its own.
check() { # NAME COMMAND...
    name=$1
    shift
    printf '\n== %s\n' "$name"
    world=$(mktemp -d)
    mkdir "$world/project" "$world/home"
    cp "$here/agent.json" "$world"
    code=0
    (
        cd "$world/project"
        for variable in $(env | sed -n 's/^\(ACPIPE_[A-Z_]*\|XDG_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
        export HOME="$world/home" ACPIPE_STATE_DIR="$world/state" ACPIPE_NO_PATH_PROBE=1
        export FAKE_AGENT AGENT_SCRIPT="$world/agent.json" TAPE="$world/tape"
        exec timeout --kill-after=10 120 "$@"
    ) </dev/null || code=$?
    all_exited "$world" || code=1
    if [ "$code" = 0 ]; then
        passed="$passed $name"
    else
        echo "FAILED: $name (exit code $code)" >&2
        failed="$failed $name"
    fi
    rm -rf "$world"
}

if command -v nvim >/dev/null; then
    nvim --version | head -n 1
    # cquit: only reached if the tests cannot be loaded.
    check neovim nvim --headless -u NONE -i NONE -n --cmd "set runtimepath+=$here/neovim" \
        -c "luafile $here/neovim/test.lua" -c 'cquit 1'
else
    skip neovim "nvim is not installed (Debian: apt-get install neovim)"
fi

if command -v emacs >/dev/null; then
    emacs --version | head -n 1
    check emacs emacs -Q --batch -L "$here/emacs" -l "$here/emacs/acpipe-test.el" -f ert-run-tests-batch-and-exit
else
    skip emacs "emacs is not installed (Debian: apt-get install emacs-nox)"
fi

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    skip vscode "node and npm are not installed"
elif ! npm ci --prefix vscode --silent --no-fund --no-audit; then
    skip vscode "npm ci failed: vscode-jsonrpc is not installed"
else
    echo "node $(node --version)"
    check vscode node --test "$here/vscode/test.js"
fi
printf '\n!!!! NOT TESTED: the extension inside VS Code; @vscode/test-electron downloads VS Code (see README.md)\n' >&2

printf '\npassed:%s\nskipped:%s\nfailed:%s\n' "${passed:- none}" "${skipped:- none}" "${failed:- none}"
[ -z "$failed" ] || exit 1
[ -z "$skipped" ] || [ -z "${CI:-}" ] || exit 1
