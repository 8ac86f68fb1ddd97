// Look-up of the acpipe program: ACPIPE_BIN, the package of this platform, PATH.
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { AcpipeError } from './errors.js';
import { resolve } from './packages.js';

const FILE = process.platform === 'win32' ? 'acpipe.exe' : 'acpipe';

/** Name of the package that has the program for a platform. */
export function platformPackage(platform: string = process.platform, arch: string = process.arch): string {
  return `@acpipe/${platform}-${arch}`;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Whether a file is the command of this package, `bin/acpipe.mjs`, which looks for the program itself. */
function isOwnCommand(file: string): boolean {
  return dirname(file).endsWith(join('node_modules', '.bin')) || realpathSync(file).endsWith('.mjs');
}

function inPackage(): string | undefined {
  try {
    return join(dirname(resolve(`${platformPackage()}/package.json`)), 'bin', FILE);
  } catch {
    return undefined;
  }
}

/**
 * Returns the path of the acpipe program.
 *
 * @param env - Environment with `ACPIPE_BIN` and `PATH`.
 */
export function findBinary(env: Record<string, string | undefined> = process.env): string {
  const chosen = env['ACPIPE_BIN'];
  if (chosen) {
    if (isProgram(chosen)) return chosen;
    throw new AcpipeError(
      'binaryNotFound',
      `cannot start acpipe: ACPIPE_BIN is "${chosen}", which is not an executable file; correct or unset the variable`,
    );
  }
  const packaged = inPackage();
  if (packaged !== undefined && isProgram(packaged)) return packaged;
  const named = (env['PATH'] ?? '').split(delimiter).filter(Boolean).map((dir) => join(dir, FILE));
  const inPath = named.find((file) => isProgram(file) && !isOwnCommand(file));
  if (inPath !== undefined) return inPath;
  throw new AcpipeError(
    'binaryNotFound',
    `cannot start acpipe: the program is not in the package ${platformPackage()}, which is ` +
      `${packaged === undefined ? 'not installed' : 'incomplete'}, and not in PATH; ` +
      'install this package with its optional dependencies, install acpipe, or set ACPIPE_BIN to the path of the program',
  );
}
