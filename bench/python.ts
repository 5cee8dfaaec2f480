import { spawnSync } from 'node:child_process';
import { installDebianPackages } from '../test/support/debian-tool.ts';

/** Debian's own: another Python on the PATH does not see Debian's packages. */
export const PYTHON = '/usr/bin/python3';
const PACKAGES = ['python3-requests', 'python3-prometheus-client'];

/**
 * A Python with what the peer imports, installed where that can be; otherwise undefined, which is said.
 * @throws {Error} where `CI=true`, as nothing may be skipped there
 */
export function findPython(): string | undefined {
  const missing = 'the Python peer needs python3-requests and python3-prometheus-client';
  if (isComplete() || (installDebianPackages('python3', ...PACKAGES) && isComplete()))
    return PYTHON;
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.warn(`skipped: ${missing}`);
  return undefined;
}

function isComplete(): boolean {
  return spawnSync(PYTHON, ['-c', 'import requests, prometheus_client']).status === 0;
}
