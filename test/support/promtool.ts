import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';

export function hasPromtool(): boolean {
  return spawnSync('promtool', ['--version']).status === 0;
}

/** Returns the output of `promtool check metrics`, one complaint per line. */
export async function promtoolComplaints(exposition: string): Promise<readonly string[]> {
  const child = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(exposition);
  const said = await Promise.all([text(child.stdout), text(child.stderr)]);
  return said
    .join('\n')
    .split('\n')
    .filter((line) => line !== '');
}
