#!/bin/sh
# `acpipe run` in pipes: one prompt, one answer. Needs acpipe and jq in PATH; the demo agent answers,
# or the one that ACPIPE_AGENT names: ACPIPE_AGENT="opencode acp" examples/pipe.sh
set -eu

# Piped stdin joins the prompt: the question stands in front, what it is about comes after it.
ls | acpipe run "What kind of project is this?"

# -o json: the whole turn as one object when it is over, with text, stopReason, toolCalls, usage, errors …
acpipe run -q -o json "list the files here" | jq '{text, toolsUsed, stopReason, seconds: (.durationMs / 1000)}'

# -o chunks: every event as it happens, an AI SDK chunk a line; here what the agent does, not what it says.
acpipe run -q -o chunks "list the files here" | jq -r --unbuffered 'select(.type == "tool-input-available").title'
