#!/bin/sh
# Instructions per update of the whole process of `acpipe run`, or of `acpipe acp` (the row "acp"), a figure that is independent of the machine's load.
#
#   benches/instructions.sh           builds, measures, prints a table; exits 1 if a budget is exceeded
#   benches/instructions.sh --debug   the same with a debug build, which the tests have built anyway, and budgets for it
#   ACPIPE_BIN=PATH AGENT_BIN=PATH CLAUDE_BIN=PATH    measures these instead of building
#
# The figure is (Ir of MANY updates - Ir of FEW) / (MANY - FEW) under callgrind, so that start-up and shut-down cancel out.
# Only acpipe is counted: valgrind does not follow the exec of the agent.
set -eu

profile=dist few=2000 many=22000
text_budget=2500
mixed_budget=9800
# Lines of the Claude Code CLI are longer: each has the ids of its session and message, and the text is sent twice, in pieces and
# whole.
claude_budget=3000
# The text flood, passed on to a client that speaks ACP.
acp_budget=2700
if [ "${1:-}" = --debug ]; then
    profile=dev few=100 many=1100
    text_budget=15400 mixed_budget=65500 claude_budget=17800 acp_budget=11100
fi

cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
    echo "instructions.sh: valgrind is missing" >&2
    exit 2
fi
if [ -z "${ACPIPE_BIN:-}" ] || [ -z "${AGENT_BIN:-}" ] || [ -z "${CLAUDE_BIN:-}" ]; then
    cargo build --quiet --profile "$profile" --features fake-agent --bin acpipe --bin fake-agent --bin fake-claude
fi
built=${CARGO_TARGET_DIR:-target}/$profile
[ "$profile" != dev ] || built=${CARGO_TARGET_DIR:-target}/debug
acpipe=${ACPIPE_BIN:-$built/acpipe}
agent=${AGENT_BIN:-$built/fake-agent}
export CLAUDE_CLI_PATH="${CLAUDE_BIN:-$built/fake-claude}"

# Isolates the run from the user's sessions and settings.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME="$home"
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME

# Writes the messages of a client of `acpipe acp`, until its turn has ended or the files are removed.
drive_acp() {
    echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}'
    echo '{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}'
    until grep -q '"id":2' "$home/out"; do
        [ -e "$home/out" ] || return 0
        sleep 0.1
    done
    session=$(sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' "$home/out" | head -n 1)
    echo '{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"'"$session"'","prompt":[{"type":"text","text":"go"}]}}'
    until tail -c 1000 "$home/out" | grep -q '"stopReason"'; do
        [ -e "$home/out" ] || return 0
        sleep 0.1
    done
}

# instructions MIX UPDATES
instructions() {
    input=/dev/null
    # A new session looks at the cards of stored ones, which would count as updates.
    ACPIPE_STATE_DIR=$(mktemp -d "$home/state-XXXXXX")
    export ACPIPE_STATE_DIR
    case $1 in
    claude)
        flood="[{\"repeat\":[$2,[{\"delta\":\"{i} the quick brown fox jumps\"}]]}]"
        set -- "$1" "$2" run -o chunks "$flood" --agent claude
        ;;
    acp)
        set -- "$1" "$2" acp -- "$agent" --flood --mix text --updates "$2"
        : >"$home/out"
        input=$home/in
        mkfifo "$input"
        drive_acp >"$input" &
        ;;
    *)
        set -- "$1" "$2" run -o chunks go -- "$agent" --flood --mix "$1" --updates "$2"
        ;;
    esac
    mix=$1 updates=$2
    shift 2
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$home/log" --child-silent-after-fork=yes \
        "$acpipe" "$@" \
        <"$input" >"$home/out" 2>"$home/err" || {
        cat "$home/log" "$home/err" >&2
        echo "instructions.sh: the run of $updates $mix updates failed" >&2
        exit 2
    }
    wait
    rm -f "$home/in"
    # The last delta of a mixed flood is the sixth of ten updates.
    last=$((updates - 1))
    [ "$mix" != mixed ] || last=$((updates - 5))
    said=$(printf '%08d' "$last")
    [ "$mix" != claude ] || said="$last the quick"
    if ! grep -q "$said" "$home/out"; then
        echo "instructions.sh: of $updates $mix updates the last delta did not come" >&2
        exit 2
    fi
    sed -n 's/.*Collected *: *//p' "$home/log"
}

over=0
echo "| flood | instructions/update | budget |"
echo "|-|-:|-:|"
for mix in text mixed claude acp; do
    case $mix in
    text) budget=$text_budget ;;
    mixed) budget=$mixed_budget ;;
    claude) budget=$claude_budget ;;
    acp) budget=$acp_budget ;;
    esac
    # On a busy machine a run takes longer, so more timers of acpipe are due in it: the lowest of up to three counts holds.
    each=
    for _ in 1 2 3; do
        at_few=$(instructions "$mix" "$few")
        at_many=$(instructions "$mix" "$many")
        now=$(((at_many - at_few) / (many - few)))
        if [ -z "$each" ] || [ "$now" -lt "$each" ]; then
            each=$now
        fi
        [ "$each" -gt "$budget" ] || break
    done
    verdict=
    if [ "$each" -gt "$budget" ]; then
        verdict=' (exceeded)'
        over=1
    fi
    echo "| $mix | $each | $budget$verdict |"
done
exit "$over"
