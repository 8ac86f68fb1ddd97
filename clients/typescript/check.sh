#!/bin/sh
# Checks the package: generated types, type checks, tests, and the packed package in an empty project without a network.
#
#   PATH=/path/to/binaries:$PATH ./check.sh      acpipe and fake-agent must be in one directory of PATH
set -eu
cd "$(dirname "$0")"
root=$PWD

step() { printf '\n== %s\n' "$1"; }
skip() { printf '\n!! SKIPPED: %s\n' "$1"; }

step 'install'
npm ci --no-audit --no-fund --loglevel=error

step 'generated types'
node generate.mjs --check

step 'build, with strict type checks'
node build.mjs

step 'test'
node test/all.mjs

step 'pack'
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
platform=$(node -p 'process.platform + "-" + process.arch')
node package.mjs "$temp/package"
node platform-package.mjs "$(command -v acpipe)" "$platform" "$temp/program"
npm pack --silent --pack-destination "$temp" "$temp/package" "$temp/program"
tar -tzf "$temp"/acpipe-[0-9]*.tgz | grep -v '\.d\.ts$' | grep -v '^package/dist/.*\.js$'

step 'install the package offline into an empty project'
mkdir "$temp/project"
cd "$temp/project"
npm init -y >/dev/null
install() { npm install --offline --no-audit --no-fund --loglevel=error --cache "$temp/cache" "$@"; }
# Without the program of the platform, which the empty cache does not have: the package reports it.
install "$temp"/acpipe-[0-9]*.tgz
test "$(ls node_modules)" = acpipe || { echo 'the package has dependencies' >&2; exit 1; }
node_only=$(dirname "$(command -v node)")
PATH=$node_only node_modules/.bin/acpipe 2>&1 | grep "not in the package @acpipe/$platform, which is not installed"
# With it, no other acpipe is needed.
install "$temp"/acpipe-"$platform"-*.tgz
PATH=$node_only node_modules/.bin/acpipe --version
test "$(node -p 'require("acpipe").findBinary({})')" = "$PWD/node_modules/@acpipe/$platform/bin/acpipe"

for type in import require; do
  for entry in acpipe acpipe/ai; do
    step "$type $entry"
    if test $type = import; then
      node --input-type=module -e "console.log(Object.keys(await import('$entry')).join(' '))"
    else
      node -e "console.log(Object.keys(require('$entry')).join(' '))"
    fi
  done
done

export ACPIPE_STATE_DIR="$temp/state" XDG_CONFIG_HOME="$temp/config" ACPIPE_NO_PATH_PROBE=1
for file in $(node "$root/test/readme.mjs" .); do
  if test "$file" = server.mjs; then
    skip "README: $file runs until it is stopped; only its syntax is checked"
    node --check "$file"
    continue
  fi
  step "README: node $file"
  timeout 30 node "$file"
done
skip 'README: the examples for Next.js, React and Hono, which need these packages'

cd "$root"
# Other runtimes come from their npm packages.
for major in 20 22 24 26; do
  case $(node --version) in v$major.*) continue ;; esac
  step "test with Node $major"
  npm exec --yes --package="node@$major" -- node test/all.mjs
done

step 'test with Bun'
bun() { timeout 300 npm exec --yes --package=bun -- bun "$@"; }
bun --version
(cd "$temp/project" && bun hello.mjs)
# One process for each file: the hooks of test/support.mjs are those of one file. Compilers take longer than the 5 s that
# Bun gives a test when the machine is busy.
for file in ./test/*.test.mjs; do bun test --timeout 60000 "$file"; done

printf '\nAll checks passed.\n'
