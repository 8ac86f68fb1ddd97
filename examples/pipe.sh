#!/bin/sh
# `acpipe run` in pipes: one prompt, one answer. Needs acpipe and jq in PATH. The demo agent answers, or the agent
# that ACPIPE_AGENT names: ACPIPE_AGENT=opencode examples/pipe.sh
set -eu
export ACPIPE_AGENT="${ACPIPE_AGENT:-acpipe demo-agent}"

# stdin is appended to the prompt: the question first, then what it is about.
ls | acpipe run "What kind of project is this?"

# -o json: the summary of the turn as one object, with text, stopReason, toolCalls, usage, errors …
acpipe run -q -o json "list the files here" | jq '{text, toolsUsed, stopReason, seconds: (.durationMs / 1000)}'

# -o chunks: each AI SDK chunk as it arrives, one a line; here the tool calls without the text.
acpipe run -q -o chunks "list the files here" | jq -r --unbuffered 'select(.type == "tool-input-available").title'
