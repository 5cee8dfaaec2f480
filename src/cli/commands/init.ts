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
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
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
