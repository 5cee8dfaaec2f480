import { spawnSync } from 'node:child_process';
import { installDebianPackages } from '../test/support/debian-tool.ts';

/** Python of Debian. Another Python on the PATH does not see Debian's packages. */
export const PYTHON = '/usr/bin/python3';
const PACKAGES = ['python3-requests', 'python3-prometheus-client'];

/**
 * Returns a Python with the packages of the peer, installed if possible. Otherwise warns and returns undefined.
 * @throws {Error} if `CI=true`, because CI may skip nothing
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
