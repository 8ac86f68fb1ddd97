# Makes a repository in $1/repo whose configuration names a program for everything that git runs: each appends its name to
# $1/CANARY. Its worktree, index, history and submodule differ in all the ways that commands show.
set -e
dir=$1
cd "$dir"
mkdir -p home bin tmp hooks repo
export HOME="$dir/home" GIT_CONFIG_NOSYSTEM=1
for name in alias askpass clean credential editor external fsmonitor gpg included merge pager smudge ssh submodule-external \
    submodule-fsmonitor submodule-textconv textconv; do
    cat >"bin/$name" <<END
#!/bin/sh
echo $name >>"$dir/CANARY"
if test -f "\$1"; then cat "\$1"; fi
END
    chmod +x "bin/$name"
done
for hook in applypatch-msg commit-msg post-checkout post-commit post-index-change post-merge post-rewrite pre-auto-gc pre-commit \
    pre-merge-commit prepare-commit-msg push-to-checkout reference-transaction; do
    sed "s/echo gpg/echo $hook/" bin/gpg >"hooks/$hook"
    chmod +x "hooks/$hook"
done
start() {
    git init -q -b main "$1"
    git -C "$1" config user.name n
    git -C "$1" config user.email e
}
start submodule
(cd submodule && echo a >f && git add . && git commit -q -m one && echo b >>f && git commit -q -am two)
start repo
cd repo
git config protocol.file.allow always
printf '*.merge merge=trap\n*.text diff=trap\n*.filter filter=trap\n' >.gitattributes
for file in a.merge a.text a.filter a b; do printf 'b\nx\na\n' >"$file"; done
mkdir src
echo 'fn main() {} // x' >src/c.rs
git add .
git commit -q -m one
git -c protocol.file.allow=always submodule --quiet add "$dir/submodule" sub
git -C sub checkout -q HEAD~1
git add .
git commit -q -m two
git checkout -q -b side
for file in a.merge a.text; do echo side >"$file"; done
git commit -q -am side
git checkout -q main
for file in a.merge a.text; do echo main >"$file"; done
git commit -q -am main
if git merge -q side >/dev/null 2>&1; then exit 1; fi
for file in a.merge a.text; do echo merged >"$file"; done
git add .
git commit -q -m merged
git -C sub checkout -q -
git add sub
git commit -q -m moved
git cat-file commit HEAD | awk '!done && /^$/ {
    print "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"; done = 1 } { print }' >"$dir/commit"
git update-ref refs/heads/main "$(git hash-object -t commit -w --stdin <"$dir/commit")"
git tag -m tagged tag
echo stashed >>a.text
git stash -q
for file in a.text a.filter b sub/f; do echo changed >>"$file"; done
echo staged >>a
git add a
echo new >untracked
bin="$dir/bin"
while read -r name value; do git config "$name" "$value"; done <<END
alias.trap !$bin/alias
core.askPass $bin/askpass
core.editor $bin/editor
core.fsmonitor $bin/fsmonitor
core.hooksPath $dir/hooks
core.pager $bin/pager
core.sshCommand $bin/ssh
credential.helper $bin/credential
diff.external $bin/external
diff.trap.textconv $bin/textconv
filter.trap.clean $bin/clean
filter.trap.smudge $bin/smudge
gpg.program $bin/gpg
gpg.ssh.program $bin/gpg
include.path $dir/included
interactive.diffFilter $bin/pager
log.diffMerges remerge
merge.trap.driver $bin/merge %A
merge.trap.name trap
pretty.trap format:%G?
END
git config -f "$dir/included" sequence.editor "$bin/included"
cd sub
echo '* diff=trap' >"$(git rev-parse --git-path info)/attributes"
git config core.fsmonitor "$bin/submodule-fsmonitor"
git config diff.external "$bin/submodule-external"
git config diff.trap.textconv "$bin/submodule-textconv"
