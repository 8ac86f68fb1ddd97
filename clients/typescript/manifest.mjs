// What the manifests of all npm packages of acpipe have in common.
import { readFileSync } from 'node:fs';

/** Platforms that have a package with the program, as `process.platform` and `process.arch` name them. */
export const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];

/** Text of a file of the repository, named relative to this folder. */
export const read = (file) => readFileSync(new URL(file, import.meta.url), 'utf8');

/** The manifest of the sources. */
export const source = JSON.parse(read('package.json'));

/** Where the packages come from. npm checks it against the provenance of a release. */
const repository = process.env.ACPIPE_REPOSITORY;

export const common = {
  version: source.version,
  license: source.license,
  ...(repository && { repository: { type: 'git', url: `git+${repository}.git` } }),
};
