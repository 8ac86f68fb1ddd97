#!/bin/sh
# Installs the shells that tests/shells compares, on Debian and Ubuntu.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends bash busybox dash ksh93u+m mksh yash zsh
