import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';

/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Returns the environment of this process. Nothing else reads `process.env`. */
export function environment(): Env {
  return process.env;
}

/** Names that an environment variable can have in every shell. */
export const VARIABLE_NAME = /^[A-Za-z_]\w*$/;

/** Returns the value of a variable; undefined if it is unset or holds only white space. */
export function readVariable(env: Env, name: string): string | undefined {
  // process.env has a prototype.
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  return value?.trim() === '' ? undefined : value;
}

/** Makes a path of the command line or the environment absolute (docs/specification.md#configuration-path). */
export function resolveFromUser(path: string, env: Env): string {
  return resolve(userDirectory(env), path);
}

/** Returns the absolute path of the configuration file: `--config`, `EVALWATCH_CONFIG`, or `config/evalwatch.yaml`. */
export function configFile(option: string | undefined, env: Env): string {
  const file = option ?? readVariable(env, 'EVALWATCH_CONFIG') ?? 'config/evalwatch.yaml';
  return resolveFromUser(file, env);
}

/** Whether output to this stream may have colours (https://no-color.org). */
export function allowsColor(env: Env, stream: { readonly isTTY?: boolean }): boolean {
  return (
    stream.isTTY === true && readVariable(env, 'NO_COLOR') === undefined && env['TERM'] !== 'dumb'
  );
}

const PACKAGE_ROOT = resolve(import.meta.dirname, '../..');

/**
 * Returns the working directory of the user. npm runs the scripts of this package in the root of the package, and
 * stores in INIT_CWD where it was called. INIT_CWD is ignored in scripts of other packages, and in processes that have
 * changed their directory since.
 */
function userDirectory(env: Env): string {
  const start = readVariable(env, 'INIT_CWD');
  return start !== undefined && isAbsolute(start) && isScriptOfPackage(env) ? start : process.cwd();
}

/** Scripts of package.json that run evalwatch. */
const SCRIPTS = new Set<string | undefined>(['evalwatch', 'start', 'demo']);

/** Returns how the user calls evalwatch: npm runs it from a clone, where it need not be on the PATH. */
export function commandName(env: Env): string {
  const isScript = SCRIPTS.has(readVariable(env, 'npm_lifecycle_event')) && isScriptOfPackage(env);
  return isScript ? 'npm run --silent evalwatch --' : 'evalwatch';
}

/** Returns how the user calls evalwatch if npm reads the options before `--`; undefined if it does not. */
export function commandThroughNpm(env: Env): string | undefined {
  if (readVariable(env, 'npm_lifecycle_event') === 'npx') return 'npm exec -- evalwatch';
  const name = commandName(env);
  return name === 'evalwatch' ? undefined : name;
}

function isScriptOfPackage(env: Env): boolean {
  const manifest = readVariable(env, 'npm_package_json');
  if (manifest === undefined || process.cwd() !== PACKAGE_ROOT) return false;
  return realPath(dirname(manifest)) === PACKAGE_ROOT;
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
