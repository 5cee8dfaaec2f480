import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { systemClock } from '../app/clock.ts';
import { allowsColor, environment } from '../config/environment.ts';
import { visible } from '../domain/visible.ts';
import { assertNpmTookNoOption, rewriteHelpCommand } from './command-words.ts';
import type { WithContext, Context, Signals } from './command.ts';
import { createProgram } from './program.ts';
import { toOutcome } from './outcome.ts';
import { createOutput, type Output, type OutputStream } from './output/output.ts';
import { truncate } from './output/text.ts';

/**
 * Time that each address of a name but the last has to connect; Node's 250 ms end every connection with a longer round
 * trip. One lost packet, which is sent again after a second, fits in, and so does a second address in the 3 s of PostgreSQL.
 */
const ADDRESS_TIMEOUT_MS = 1500;

/**
 * Runs one command line (without the two words for Node and the script) and resolves to its exit code
 * (docs/specification.md#exit-codes). Never rejects.
 */
export async function main(
  argv: readonly string[],
  io: { readonly stdout: OutputStream; readonly stderr: OutputStream },
  signals: Signals,
): Promise<number> {
  setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_TIMEOUT_MS);
  const env = environment();
  const stdout = createOutput(io.stdout, allowsColor(env, io.stdout));
  const { warn, progress } = createNotices(createOutput(io.stderr, false));
  const context: Context = {
    stdout,
    warn,
    progress,
    env,
    clock: systemClock,
    signals,
  };
  let exitCode = 0;
  let help = '';
  const withContext: WithContext = (action) => async (options) => {
    exitCode = await action(options, context);
  };
  const program = createProgram(withContext, {
    writeOut: (text) => {
      help += text;
    },
    writeErr: (text) => {
      for (const line of text.trimEnd().split('\n')) warn(line);
    },
  });

  try {
    assertNpmTookNoOption(program, argv, env);
    await program.parseAsync(rewriteHelpCommand(program, argv), { from: 'user' });
  } catch (error) {
    const outcome = toOutcome(error);
    for (const line of outcome.lines) warn(line);
    exitCode = outcome.exitCode;
  }
  // It is not an error if the reader closes the pipe before it has read the help.
  await stdout.write(help).catch(() => {});
  return exitCode;
}

function createNotices(stderr: Output): Pick<Context, 'warn' | 'progress'> {
  // A failed write to stderr cannot be reported anywhere.
  const write = (text: string) => void stderr.write(text).catch(() => {});
  return {
    warn: (line) => write(`${visible(line)}\n`),
    progress: (text) => {
      const { width } = stderr;
      if (width !== undefined) write(`\r\u001b[2K${truncate(visible(text), width - 1)}`);
    },
  };
}
