import type { SecretSource } from '../domain/secret-source.ts';
import { ConfigError } from './config-error.ts';
import { readTextFile } from '../files/read-file.ts';
import { describeUnsetVariable } from './redaction.ts';
import type { SecretOptions } from './secret-options.ts';

const MAX_FILE_BYTES = 16 * 1024;

/**
 * Reads a secret of one line that is no API key, and trims it.
 * @param place section and options that name the source
 * @param findFault returns what is wrong with a secret that is not empty, without any part of it
 * @throws {ConfigError} if the secret is missing or invalid; its message contains no part of it
 */
export async function readSecretText(
  source: SecretSource,
  place: { readonly section: string; readonly options: SecretOptions },
  findFault: (text: string) => string | undefined,
): Promise<string> {
  const { text, fault } =
    'file' in source
      ? readTextFile(source.file, MAX_FILE_BYTES)
      : { text: source.value, fault: undefined };
  const secret = text?.trim() ?? '';
  const message = fault ?? (secret === '' ? missing(source) : findFault(secret));
  if (message === undefined) return secret;
  const [fileOption, variableOption] = place.options;
  const [option, subject] =
    'file' in source
      ? [fileOption, `${source.file}: `]
      : [variableOption, secret === '' ? '' : `environment variable ${source.env}: `];
  const found = { file: `${place.section}.${option}`, line: 0, column: 0 };
  throw new ConfigError('invalid', [{ ...found, message: `${subject}${message}` }]);
}

function missing(source: SecretSource): string {
  return 'file' in source ? 'the file is empty' : describeUnsetVariable(source.env);
}
