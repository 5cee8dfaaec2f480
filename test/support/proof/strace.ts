import { debianTool } from '../debian-tool.ts';

/** Path of strace, installed where it lacks and may be; undefined where it cannot be used. Says so, and fails in CI. */
export function findStrace(): string | undefined {
  const path = debianTool('strace', 'strace');
  if (path === undefined) skip('strace is not to be had');
  return path;
}

/** Says out loud that something is not proved here. @throws in CI, where everything has to be */
export function skip(why: string): void {
  if (process.env['CI'] === 'true') throw new Error(`not proved: ${why}`);
  console.warn(`SKIPPED, not proved: ${why}`);
}
