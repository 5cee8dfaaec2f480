import type { Config, HeartbeatUrl } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import type { SecretSource } from '../domain/secret-source.ts';
import { StoreError } from '../monitor/errors.ts';
import { isSqlite } from '../store/open.ts';

/** What `check` finds about a secret. */
export interface SecretFinding {
  /** Contains no part of the secret. */
  readonly message: string;
  /** False if the daemon may find the secret usable, also in an environment other than that of `check`. */
  readonly isError: boolean;
}

/** Whether a source is a variable without a value. The environment of the daemon may set it. */
export function isUnset(source: SecretSource): boolean {
  return 'env' in source && source.value === undefined;
}

/** Returns what is wrong with the address of the database. */
export async function storeFindings(store: Config['store']): Promise<readonly SecretFinding[]> {
  if (isSqlite(store)) return [];
  const [{ readPostgresUrl }, { readUrl }] = await Promise.all([
    import('../config/postgres-url.ts'),
    import('../store/postgres/url.ts'),
  ]);
  const source = store.postgresUrl;
  return await findingsOf(source, async () => readUrl(await readPostgresUrl(source)));
}

/** Returns what is wrong with the address of the heartbeat. */
export async function heartbeatFindings(
  source: HeartbeatUrl | undefined,
): Promise<readonly SecretFinding[]> {
  if (source === undefined || 'url' in source) return [];
  const { readHeartbeatUrl } = await import('../config/heartbeat-url.ts');
  return await findingsOf(source, () => readHeartbeatUrl(source));
}

async function findingsOf(
  source: SecretSource,
  read: () => Promise<unknown>,
): Promise<readonly SecretFinding[]> {
  try {
    await read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StoreError)) throw error;
    return [{ message: error.message, isError: !isUnset(source) }];
  }
}
