#!/bin/sh
# Installs the shells that tests/shells compares and the programs that tests/bridge/read_only.rs runs, on Debian and
# Ubuntu.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends bash busybox dash ksh93u+m mksh yash zsh \
    file jq ripgrep tree
