import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/**
 * Returns the path of a program: the first of its names that is on the PATH, or of its absolute paths that exists. If it is
 * missing, it is installed from its Debian package where that can be done; otherwise undefined, and what needs it is skipped.
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

/** Whether they could be installed: only by root on a Debian, and not where npm is told to stay offline. */
export function installDebianPackages(...packageNames: readonly string[]): boolean {
  if (process.getuid?.() !== 0 || find(['apt-get']) === undefined) return false;
  if (process.env['npm_config_offline'] === 'true') return false;
  const aptGet = (...args: readonly string[]) =>
    execFileSync('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=120', ...args], {
      stdio: 'ignore',
      timeout: 180_000,
      // As in single-user mode: the package's services are not started.
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
