import type { SecretSource } from '../domain/secret-source.ts';
import { ConfigError } from './config-error.ts';
import { describeUnsetVariable } from './redaction.ts';
import { readTextFile } from './document/text-file.ts';

const MAX_FILE_BYTES = 16 * 1024;

/**
 * Reads the address of the PostgreSQL store, login included, and trims it. It starts with `postgres://` or
 * `postgresql://`; the engine parses the rest.
 * @throws {ConfigError} if the address is missing or invalid; its message contains no part of the address
 */
export async function readPostgresUrl(source: SecretSource): Promise<string> {
  const { text, fault } =
    'file' in source
      ? await readTextFile(source.file, MAX_FILE_BYTES)
      : { text: source.value, fault: undefined };
  const url = text?.trim() ?? '';
  const message = fault ?? faultOf(url, source);
  if (message === undefined) return url;
  const [option, place] =
    'file' in source
      ? ['postgres_url_file', `${source.file}: `]
      : ['postgres_url_env', url === '' ? '' : `environment variable ${source.env}: `];
  const found = { file: `store.${option}`, line: 0, column: 0, message: `${place}${message}` };
  throw new ConfigError('invalid', [found]);
}

function faultOf(url: string, source: SecretSource): string | undefined {
  if (url === '') return 'file' in source ? 'the file is empty' : describeUnsetVariable(source.env);
  if (/[\r\n]/.test(url)) return 'the address must be one line';
  return /^postgres(ql)?:\/\//.test(url)
    ? undefined
    : 'the address must start with postgres:// or postgresql://';
}
