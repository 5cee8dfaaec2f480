#!/usr/bin/env node
// Plain JavaScript, and nothing imported before the check: an older Node can neither load TypeScript nor the SQLite driver.

let exit = (code) => process.exit(code);

/** How signals reach a command: one that stops in an orderly way sets `onSignal` (see src/cli/command.ts). */
const signals = { onSignal: undefined };

const command = process.argv[2];
const isDaemon = command === 'run' || command === 'demo';
// Under npm one Ctrl-C arrives twice, from the terminal and passed on by npm, a few milliseconds apart.
const ECHO_SECONDS = 0.1;
let first;

for (const [signal, exitCode] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  process.on(signal, () => {
    if (signals.onSignal === undefined) exit(isDaemon ? 0 : exitCode);
    if (first === undefined) {
      first = { signal, at: process.uptime() };
      signals.onSignal(signal);
    } else if (signal !== first.signal || process.uptime() - first.at > ECHO_SECONDS) {
      exit(exitCode);
    }
  });
}
// A reload asked for while the daemon starts must not kill it.
if (command === 'run') process.on('SIGHUP', () => signals.onSignal?.('SIGHUP'));

if (Number.parseInt(process.versions.node, 10) >= 24) {
  const files = await import('./files/thread-work.ts');
  exit = files.exit;
  const { main } = await import('./cli/cli.ts');
  process.exitCode = await main(process.argv.slice(2), process, signals);
  if (files.hasPendingWork()) exit(process.exitCode);
} else {
  process.stderr.write(
    `evalwatch needs Node 24 or newer, but this is Node ${process.versions.node}: on Linux x64 \`npm ci\` installs Node 24 ` +
      'for `npm run` (as node_modules/.bin/node), elsewhere install Node 24\n',
  );
  process.exitCode = 2;
}
