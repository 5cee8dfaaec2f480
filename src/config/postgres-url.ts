import type { SecretSource } from '../domain/secret-source.ts';
import { POSTGRES_URL_OPTIONS } from './secret-options.ts';
import { readSecretText } from './secret-text.ts';

/**
 * Reads the address of the PostgreSQL store, login included, and trims it. It starts with `postgres://` or
 * `postgresql://`; the engine parses the rest.
 * @throws {ConfigError} if the address is missing or invalid; its message contains no part of the address
 */
export async function readPostgresUrl(source: SecretSource): Promise<string> {
  return await readSecretText(
    source,
    { section: 'store', options: POSTGRES_URL_OPTIONS },
    (url) => {
      if (/[\r\n]/.test(url)) return 'the address must be one line';
      return /^postgres(ql)?:\/\//.test(url)
        ? undefined
        : 'the address must start with postgres:// or postgresql://';
    },
  );
}
