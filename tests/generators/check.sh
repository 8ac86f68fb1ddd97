#!/bin/sh
# Runs public code generators on the committed schemas, compiles what they generate, and compares it with the schemas:
# every type keeps its name, no type gets an anonymous one, and no description is lost (compare.py).
#
#   tests/generators/check.sh [DIRECTORY]
#
# DIRECTORY keeps the generated files and a virtual environment; by default both are temporary. Needs Python 3.11 or
# newer with venv, Node 20 or newer, npm, and the registries PyPI and npm.
set -eu
cd "$(dirname "$0")"
here=$PWD
schemas=$here/../../schemas

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    out=$(cd "$1" && pwd)
else
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi

step() {
    echo "== $*" >&2
    "$@"
}

[ -x "$out/venv/bin/python" ] || step python3 -m venv "$out/venv"
step "$out/venv/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt
step npm ci --silent --no-fund --no-audit
rm -rf "$out/py" "$out/ts"
mkdir "$out/py" "$out/ts"

for file in bundle chunk turn-summary config; do
    case $file in
        # mypy rejects what --field-constraints generates from `propertyNames`, which only the configuration has, and what
        # --use-annotated generates from a `default` beside a reference, which only the bundle has.
        config) constraints=--use-annotated ;;
        *) constraints=--field-constraints ;;
    esac
    step "$out/venv/bin/datamodel-codegen" --input "$schemas/$file.schema.json" --input-file-type jsonschema \
        --output "$out/py/$(echo $file | tr - _).py" --output-model-type pydantic_v2.BaseModel --formatters builtin \
        "$constraints" --use-schema-description --use-default-kwarg --disable-timestamp --disable-warnings
    step node_modules/.bin/json2ts --input "$schemas/$file.schema.json" --output "$out/ts/$file.ts"
done

failed=0
step python3 compare.py "$schemas" "$out" || failed=1
cp uses.py "$out/py"
cp uses.ts "$out/ts"
(cd "$out/py" && step "$out/venv/bin/mypy" --strict . && step "$out/venv/bin/python" uses.py) || failed=1
step node_modules/.bin/tsc --strict --noEmit "$out"/ts/*.ts || failed=1
exit $failed
