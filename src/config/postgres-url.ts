import type { SecretSource } from './config.ts';
import { ConfigError } from './config-error.ts';
import { unsetVariable } from './shown.ts';
import { readTextFile } from './document/text-file.ts';

const MAX_FILE_BYTES = 16 * 1024;

/**
 * The address of the PostgreSQL store, login included, without the white space around it: `postgres://` or
 * `postgresql://`, and what follows is read by the engine. Read when it is needed: `check` can do without.
 * @throws {ConfigError} if there is none or it is none; nothing in it tells any part of what was read
 */
export async function readPostgresUrl(source: SecretSource): Promise<string> {
  const [option, place] =
    'file' in source ? ['postgres_url_file', `${source.file}: `] : ['postgres_url_env', ''];
  const { text, fault } =
    'file' in source
      ? await readTextFile(source.file, MAX_FILE_BYTES)
      : { text: source.value, fault: undefined };
  const url = text?.trim() ?? '';
  const message =
    fault ?? ('file' in source || url !== '' ? faultOf(url) : unsetVariable(source.env));
  if (message === undefined) return url;
  const found = { file: `store.${option}`, line: 0, column: 0, message: `${place}${message}` };
  throw new ConfigError('invalid', [found]);
}

function faultOf(url: string): string | undefined {
  if (url === '') return 'the file is empty';
  if (/[\r\n]/.test(url)) return 'there are several lines, and there must be one';
  return /^postgres(ql)?:\/\//.test(url)
    ? undefined
    : 'what it holds must start with postgres:// or postgresql://';
}
