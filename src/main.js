#!/usr/bin/env node
// Plain JavaScript without imports before the version check: an older Node can load neither TypeScript nor the SQLite driver.

/** Passes signals to the command. A command that shuts down in order sets `onSignal` (see src/cli/command.ts). */
const signals = { onSignal: undefined };

const command = process.argv[2];
const isDaemon = command === 'run' || command === 'demo';
// Under npm, one Ctrl-C arrives twice within milliseconds: from the terminal, and from npm.
const DUPLICATE_SECONDS = 0.1;
let first;

for (const [signal, exitCode] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  process.on(signal, () => {
    if (signals.onSignal === undefined) process.exit(isDaemon ? 0 : exitCode);
    if (first === undefined) {
      first = { signal, at: process.uptime() };
      signals.onSignal(signal);
    } else if (signal !== first.signal || process.uptime() - first.at > DUPLICATE_SECONDS) {
      process.exit(exitCode);
    }
  });
}
// A SIGHUP during the start of the daemon must not end it.
if (command === 'run') process.on('SIGHUP', () => signals.onSignal?.('SIGHUP'));
// By default Node opens its debugger on SIGUSR1, to every user of the machine, and SIGUSR2 ends the process without a line.
for (const signal of ['SIGUSR1', 'SIGUSR2']) process.on(signal, () => {});

if (/\/node_modules\/.*\/src\/main\.js$/.test(import.meta.url)) {
  process.stderr.write(
    'evalwatch is installed from its sources, which Node does not run below node_modules: install the package that `npm run pack` makes in a clone\n',
  );
  process.exitCode = 2;
} else if (Number.parseInt(process.versions.node, 10) >= 24) {
  const { main } = await import('./cli/main.ts');
  process.exitCode = await main(process.argv.slice(2), process, signals);
} else {
  process.stderr.write(
    `evalwatch needs Node 24 or newer, but this is Node ${process.versions.node}: install Node 24; in a clone on Linux x64, ` +
      '`npm ci` does that for `npm run` (as node_modules/.bin/node)\n',
  );
  process.exitCode = 2;
}
