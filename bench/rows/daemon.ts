import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { NODE_FLAGS } from '../../test/support/node-flags.ts';
import { ROOT, startNodeWith, type NodeProcess } from '../node-process.ts';

export const SOURCE = 'src/main.js';
export const COMPILED = 'dist/main.js';

const run = promisify(execFile);

/** Compiles the daemon into `dist`. */
export async function build(): Promise<void> {
  await run('npm', ['run', '--silent', 'build'], { cwd: ROOT });
}

/** The real daemon, and the address of its web port. */
export interface Daemon extends NodeProcess {
  readonly url: string;
}

/** Starts the real daemon, with additional Node flags. Resolves when it is ready. */
export async function startReady(
  program: string,
  config: string,
  flags: readonly string[] = [],
): Promise<Daemon> {
  const daemon = startNodeWith(
    { flags: [...NODE_FLAGS, ...flags] },
    program,
    'run',
    '--config',
    config,
  );
  const { url } = JSON.parse(await daemon.line('"daemon.started"')) as Pick<Daemon, 'url'>;
  return { ...daemon, url };
}
