#!/bin/sh
# System calls of `acpipe run`, of the client that only copies lines (the floor), and of another client if ACPIPE_LIMIT has its
# command: per 1,000 updates of a flood, and per update of a stream of 1,000 updates a second.
#
#   benches/syscalls.sh               builds, counts, prints a table
#   ACPIPE_BIN=PATH AGENT_BIN=PATH FLOOD_BIN=PATH     measures these instead of building; FLOOD_BIN is the benchmark `flood`
#
# Each figure is (calls of MANY updates - calls of FEW) / difference, by strace, so that start-up and shut-down cancel out. The
# calls of the agent do not count. strace slows all programs; in a flood the number of updates that are read at once, and with it
# the number of calls, depends on that.
set -eu

cd "$(dirname "$0")/.."
if ! command -v strace >/dev/null; then
    echo "syscalls.sh: strace is missing" >&2
    exit 2
fi
target=${CARGO_TARGET_DIR:-target}
if [ -z "${ACPIPE_BIN:-}" ] || [ -z "${AGENT_BIN:-}" ]; then
    cargo build --quiet --release --features fake-agent --bin acpipe --bin fake-agent
fi
if [ -z "${FLOOD_BIN:-}" ]; then
    FLOOD_BIN=$(cargo bench --features fake-agent --bench flood --no-run 2>&1 | sed -n 's/.*(\(.*flood-[^)]*\)).*/\1/p')
fi
acpipe=${ACPIPE_BIN:-$target/release/acpipe}
agent=$(realpath "${AGENT_BIN:-$target/release/fake-agent}")

# Isolates the run from the user's sessions and settings.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME="$home"
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME

# calls UPDATES INTERVAL_US COMMAND...: writes the names of the client's calls, with their number, to $home/calls
calls() {
    updates=$1 interval=$2
    shift 2
    strace -f -o "$home/trace" "$@" "$agent" --flood --mix text --updates "$updates" --interval-us "$interval" \
        </dev/null 2>"$home/err" | tail -n 30 >"$home/out"
    grep -q "$(printf '%08d' $((updates - 1)))" "$home/out" || [ "$interval" -gt 0 ] || {
        cat "$home/err" >&2
        echo "syscalls.sh: of $updates updates the last one did not come from $1" >&2
        exit 2
    }
    # A call that was interrupted by another thread has a second line, "resumed".
    awk -v agent="$agent" '
        index($0, "execve(\"" agent "\"") { is_agent[$1] = 1 }
        !is_agent[$1] && match($2, /^[a-z0-9_]+\(/) { count[substr($2, 1, RLENGTH - 1)]++ }
        END { for (name in count) print name, count[name] }
    ' "$home/trace" >"$home/calls"
}

# row NAME LOAD FEW MANY INTERVAL_US PER COMMAND...
row() {
    name=$1 load=$2 few=$3 many=$4 interval=$5 per=$6
    shift 6
    calls "$few" "$interval" "$@"
    mv "$home/calls" "$home/few"
    calls "$many" "$interval" "$@"
    awk -v updates=$((many - few)) -v per="$per" -v head="| $load | $name |" '
        NR == FNR { few[$1] = $2; next }
        { each = ($2 - few[$1]) * per / updates; sum += each; if (each >= 0.05 * (per > 1 ? 10 : 1)) list = list sprintf("%s %.1f, ", $1, each) }
        END { sub(/, $/, "", list); printf "%s %.1f | %s |\n", head, sum, list }
    ' "$home/few" "$home/calls"
}

# rows LOAD FEW MANY INTERVAL_US PER
rows() {
    row acpipe "$@" "$acpipe" run -o chunks go --
    row floor "$@" "$FLOOD_BIN" --floor --
    # shellcheck disable=SC2086
    [ -z "${ACPIPE_LIMIT:-}" ] || row limit "$@" $ACPIPE_LIMIT
}

echo "| load | client | calls | of which |"
echo "|-|-|-:|-|"
rows "1,000 flooded updates" 20000 120000 0 1000
rows "a paced update" 300 1300 1000 1
