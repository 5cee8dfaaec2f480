import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Whether what cannot run must fail instead of being skipped, as in CI and in `.ci/run`. */
export const IN_CI = (process.env['CI'] ?? '') !== '';

/**
 * Returns the path of the first of these programs on the PATH or at an absolute path. If there is none, it installs the
 * Debian package. If that is not possible, it returns undefined, and tests that need the program are skipped.
 */
export function debianTool(packageName: string, ...names: readonly string[]): string | undefined {
  return find(names) ?? (installDebianPackages(packageName) ? find(names) : undefined);
}

function find(names: readonly string[]): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(delimiter);
  return names
    .flatMap((name) =>
      isAbsolute(name) ? [name] : directories.map((directory) => join(directory, name)),
    )
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Installs packages and returns whether that succeeded. Requires root, apt-get, and npm not set to offline. */
export function installDebianPackages(...packageNames: readonly string[]): boolean {
  if (process.getuid?.() !== 0 || find(['apt-get']) === undefined) return false;
  if (process.env['npm_config_offline'] === 'true') return false;
  const aptGet = (...args: readonly string[]) =>
    execFileSync('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=120', ...args], {
      stdio: 'ignore',
      timeout: 180_000,
      // Runlevel 1 (single-user mode): the services of the package are not started.
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    });
  try {
    aptGet('update');
    aptGet('install', '-y', '--no-install-recommends', ...packageNames);
    return true;
  } catch {
    return false;
  }
}
