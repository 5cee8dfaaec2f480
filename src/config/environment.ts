import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';

/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The environment of this process; nothing else reads it. */
export function environment(): Env {
  return process.env;
}

/** A name that an environment variable can have in any shell. */
export const VARIABLE_NAME = /^[A-Za-z_]\w*$/;

/** A variable's value, undefined if it is unset or holds only white space. */
export function readVariable(env: Env, name: string): string | undefined {
  // process.env has a prototype.
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  return value?.trim() === '' ? undefined : value;
}

/** Returns the absolute path for one on the command line or in the environment (docs/specification.md#configuration-path). */
export function resolveFromUser(path: string, env: Env): string {
  return resolve(userDirectory(env), path);
}

/** Absolute path of the configuration file: `--config`, `EVALWATCH_CONFIG`, or `config/evalwatch.yaml`. */
export function configFile(option: string | undefined, env: Env): string {
  const file = option ?? readVariable(env, 'EVALWATCH_CONFIG') ?? 'config/evalwatch.yaml';
  return resolveFromUser(file, env);
}

/** Whether to colour what goes to a stream (https://no-color.org). */
export function allowsColor(env: Env, stream: { readonly isTTY?: boolean }): boolean {
  return (
    stream.isTTY === true && readVariable(env, 'NO_COLOR') === undefined && env['TERM'] !== 'dumb'
  );
}

const PACKAGE_ROOT = resolve(import.meta.dirname, '../..');

/**
 * Where the user stood. npm runs the scripts of this package in its root and says in INIT_CWD where it was called;
 * scripts of other packages, and whatever has moved on since, stand where they mean to.
 */
function userDirectory(env: Env): string {
  const here = process.cwd();
  const manifest = readVariable(env, 'npm_package_json');
  const start = readVariable(env, 'INIT_CWD');
  if (manifest === undefined || start === undefined || !isAbsolute(start)) return here;
  const movedByNpm = realPath(dirname(manifest)) === PACKAGE_ROOT && here === PACKAGE_ROOT;
  return movedByNpm ? start : here;
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
