import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Returns paths that exist but are no regular files. All but /dev/zero are created in this directory. */
export async function notFiles(directory: string): Promise<Readonly<Record<string, string>>> {
  const at = (name: string) => join(directory, name);
  execFileSync('mkfifo', [at('pipe')]);
  mkdirSync(at('directory'));
  const server = createServer().listen(at('socket'));
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return {
    'a pipe': at('pipe'),
    'a socket': at('socket'),
    'a device': '/dev/zero',
    'a directory': at('directory'),
  };
}
