import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const program = fileURLToPath(new URL('write-lines.ts', import.meta.url));

interface Run {
  readonly child: ChildProcess;
  readonly stderr: Promise<string>;
  readonly exitCode: Promise<number | null>;
}

function run(args: readonly string[], stdout: 'pipe' | number): Run {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['pipe', stdout, 'pipe'] });
  if (child.stderr === null) throw new Error('stderr is a pipe');
  const exitCode = once(child, 'close').then(([code]) => code as number | null);
  return { child, stderr: text(child.stderr), exitCode };
}

it('a closed pipe is reported once, as EPIPE', async () => {
  const { child, stderr, exitCode } = run(['1000'], 'pipe');
  child.stdout?.destroy();
  child.stdin?.write('go\n');
  expect(await stderr).toBe('dead: EPIPE\n');
  expect(await exitCode).toBe(1);
});

it('a full disk is reported once, as ENOSPC', async () => {
  const full = openSync('/dev/full', 'w');
  const { child, stderr, exitCode } = run(['1000'], full);
  closeSync(full);
  child.stdin?.write('go\n');
  expect(await stderr).toBe('dead: ENOSPC\n');
  expect(await exitCode).toBe(1);
});

it.concurrent.each(['blocking', 'nonblocking'])(
  'no line is lost when the reader of a %s pipe stalls',
  async (mode) => {
    const count = 20_000;
    const shell = `"$0" "$1" ${count} ${mode} | { sleep 0.5; cat; }`;
    const child = spawn('sh', ['-c', shell, process.execPath, program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin.write('go\n');
    // A second stall, after that of the shell.
    await sleep(700);
    const lines = (await text(child.stdout)).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { number: number }).number)).toEqual(
      Array.from({ length: count }, (_, number) => number),
    );
  },
);
