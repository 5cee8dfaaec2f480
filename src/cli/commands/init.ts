import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { commandName, configFile } from '../../config/environment.ts';
import { visible } from '../../domain/visible.ts';
import { type Context, type Define, UsageError } from '../command.ts';
import { quoteWord } from '../output.ts';

const EXAMPLE = new URL('../../../config/evalwatch.yaml', import.meta.url);

const HELP = `
Replaces no file. Set service.base_url, the API key and your projects in it, and run check --connect.

Examples:
  evalwatch init
  evalwatch init /etc/evalwatch/evalwatch.yaml`;

export const defineInit: Define = (command, run) => {
  command
    .argument('[file]', 'file to write (default: $EVALWATCH_CONFIG, else config/evalwatch.yaml)')
    .addHelpText('after', HELP)
    .action(run(init));
};

async function init({ stdout, env }: Context, given: string | undefined): Promise<number> {
  const file = configFile(given, env);
  // The schema for editors is not beside the new file.
  const text = (await readFile(EXAMPLE, 'utf8')).replace(/^# yaml-language-server.*\n#\n/, '');
  // Not with `recursive`, which never ends below /proc.
  await mkdir(dirname(file)).catch((error: unknown) => {
    if (!isExisting(error)) throw error;
  });
  await writeFile(file, text, { flag: 'wx' }).catch((error: unknown) => {
    if (!isExisting(error)) throw error;
    throw new UsageError(`${file} already exists: name a file that does not`);
  });
  const named = given === undefined ? '' : ` --config ${quoteWord(given)}`;
  await stdout.write(
    `${visible(file)} is written.\n` +
      'Set service.base_url, the API key and your projects in it. Then try it:\n' +
      `  ${visible(`${commandName(env)} check --connect${named}`)}\n`,
  );
  return 0;
}

function isExisting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST';
}
