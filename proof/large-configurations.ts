import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type * as LoadRoom from '../src/config/load.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { largeTexts, tokens } from './large-configurations/texts.ts';
import { type Row, SOURCE } from './row.ts';

const KIBI = 1024;
/** The long one is close to the maximum size of a configuration. */
const BYTES = { short: 512 * KIBI, long: 3900 * KIBI };
/** A hundred errors, and one that counts the others. */
const MAX_FAULTS = 101;
const MAX_MESSAGE = 50_000;
const TOO_MANY = 'not usable YAML: more than 1500000 tokens';

/** Checks that large configurations, wrong in every place, end in an error of readable size. */
export const largeConfigurations: Row = {
  name: 'large-configurations',
  bug: {
    what: 'all errors of a kind are told',
    file: 'config/to-config-error.ts',
    replace: [['return items.slice(0, MAX_FAULTS);', 'return items;']],
    notice: /faults/,
  },
  run: async ({ short, print, source = SOURCE }) => {
    const { loadConfig } = (await import(join(source, 'config/load.ts'))) as typeof LoadRoom;
    await using directory = await temporaryDirectory();
    const file = join(directory.path, 'evalwatch.yaml');

    async function errorOf(text: string): Promise<ConfigurationError> {
      await writeFile(file, text);
      const options = { file, env: {}, validateSchedule: () => undefined, requireSecrets: true };
      const error: unknown = await loadConfig(options).then(
        () => new Error('it was loaded'),
        (reason: unknown) => reason,
      );
      if (isConfigurationError(error)) return error;
      throw error;
    }

    const texts = largeTexts(short ? BYTES.short : BYTES.long);
    let slowest = 0;
    for (const [what, text] of texts) {
      print(what);
      const started = performance.now();
      const { faults, message } = await errorOf(text);
      slowest = Math.max(slowest, performance.now() - started);
      if (faults.length === 0 || faults.length > MAX_FAULTS || message.length > MAX_MESSAGE) {
        throw new Error(`${what}: ${faults.length} faults, ${message.length} characters`);
      }
    }
    const [accepted, refused] = [
      await errorOf(tokens(1_499_000)),
      await errorOf(tokens(1_501_000)),
    ];
    if (accepted.message.includes(TOO_MANY)) throw new Error('fewer tokens than the limit');
    if (!refused.message.includes(TOO_MANY)) throw new Error('more tokens than the limit');
    return [
      ['texts', String(texts.length)],
      ['the slowest', `${Math.ceil(slowest)} ms`],
      ['more than 101 errors', '0'],
    ];
  },
};

interface ConfigurationError extends Error {
  readonly faults: readonly unknown[];
}

/** Accepts the ConfigError of any copy of the sources. */
function isConfigurationError(error: unknown): error is ConfigurationError {
  return error instanceof Error && error.name === 'ConfigError' && 'faults' in error;
}
