#!/bin/sh
# Checks acpipe against the proxy of LiteLLM, which answers with scripted texts. Nothing is sent to a model; PyPI is
# needed for the installation.
#
# usage: litellm.sh ACPIPE [DIR]    DIR keeps the installation; default: a directory in /tmp
set -eu
acpipe=$1
dir=${2:-/tmp/acpipe-litellm}
mkdir -p "$dir"
if [ ! -x "$dir/venv/bin/litellm" ]; then
    python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install --quiet 'litellm[proxy]'
fi
cat > "$dir/config.yaml" <<'YAML'
model_list:
  - model_name: hello
    litellm_params: {model: openai/mock, api_key: none, mock_response: "Hello from LiteLLM, in several words."}
  - model_name: limited
    litellm_params: {model: openai/mock, api_key: none, mock_response: litellm.RateLimitError, num_retries: 0}
  - model_name: broken
    litellm_params: {model: openai/mock, api_key: none, mock_response: litellm.InternalServerError, num_retries: 0}
general_settings: {master_key: sk-master-of-the-test}
YAML
port=${PORT:-14000}
LITELLM_LOCAL_MODEL_COST_MAP=True "$dir/venv/bin/litellm" --config "$dir/config.yaml" --host 127.0.0.1 --port "$port" \
    > "$dir/proxy.log" 2>&1 &
proxy=$!
trap 'kill $proxy 2>/dev/null; wait $proxy 2>/dev/null || true' EXIT
tries=0
until python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$port/health/liveliness')" 2>/dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 120 ]; then
        echo "the proxy does not start; see $dir/proxy.log" >&2
        exit 1
    fi
    sleep 1
done

url=http://127.0.0.1:$port/v1
failed=0
# check NAME WANTED KEY MODEL OPTIONS…: runs a prompt and looks for a text in what acpipe prints.
check() {
    name=$1 wanted=$2 used=$3 model=$4
    shift 4
    got=$(OPENAI_API_KEY=$used "$acpipe" run --protocol openai --model "$model" --state-dir "$dir/state" "$@" hi -- "$url" \
        < /dev/null 2>&1) || true
    case $got in
        *"$wanted"*) echo "ok      $name" ;;
        *) echo "FAILED  $name: $got"; failed=1 ;;
    esac
    case $got in
        *sk-*) echo "FAILED  $name: the key is shown: $got"; failed=1 ;;
    esac
}
key=sk-master-of-the-test
check "answer" "Hello from LiteLLM, in several words." $key hello --ephemeral
check "usage" '"outputTokens":' $key hello --ephemeral -o json
check "history" "Hello from LiteLLM" $key hello --session litellm
check "history, second prompt" "Hello from LiteLLM" $key hello --session litellm
# Without a database, the proxy answers a wrong key with 400.
check "wrong key" "HTTP 40" sk-wrong-key-of-the-test hello --ephemeral
check "unknown model" "other-model" $key other-model --ephemeral
check "rate limit" '"kind":"overloaded"' $key limited --ephemeral -o json
check "server error" "HTTP 500" $key broken --ephemeral
exit $failed
