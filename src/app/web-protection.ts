import { isDeepStrictEqual } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { ConfigError } from '../config/config.ts';
import { readSources } from '../config/load.ts';
import { loadWebConfig, type WebConfig } from '../config/web-file.ts';
import type { Logger } from '../log/logger.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ChangingProtection } from '../web/security.ts';

/**
 * Maximum time that the last good web configuration stays in use while the file is bad. Longer than EvalwatchConfigReloadFailed takes
 * to fire, so that a typo does not blind monitoring; bounded, so that a removed user does not keep access.
 */
const GRACE_MS = 15 * 60 * 1000;

export interface WebProtection extends ChangingProtection {
  /** Reads the files again if their content has changed, or the last one was bad. It is called every 2 s. */
  look(): Promise<void>;
  /**
   * Reads the files again.
   * @throws {ConfigError} if they are invalid or contain a change that needs a restart; the last good ones then stay in use for
   * at most 15 minutes
   */
  reload(): Promise<void>;
  /** Calls the listener when the files become valid or invalid. */
  onResult(listener: (ok: boolean) => void): void;
}

/**
 * Loads the web configuration, and later its changes (docs/web-configuration.md#while-it-runs).
 * @param file the web configuration file, absolute
 * @throws {ConfigError} if it cannot be used
 */
export async function openWebProtection(
  file: string,
  clock: Clock,
  logger: Logger,
): Promise<WebProtection> {
  const changes: (() => void)[] = [];
  const results: ((ok: boolean) => void)[] = [];
  const inSequence = limitConcurrency(1);
  const first = await loadWebConfig(file);
  let good = first;
  /** Content of the files of `good`; undefined if they have to be read again. */
  let content: string | undefined;
  let bad: { readonly since: number; readonly error: ConfigError } | undefined;
  let inForce: WebConfig | undefined = first;

  /** Reads the files; with `isLook`, only if that can change something. */
  async function read(isLook: boolean): Promise<void> {
    // Hashed before the files are read: a change in between is noticed at the next look.
    const now = readSources(good.files).content;
    if (isLook && now === content && !bad) return;
    try {
      const next = await loadWebConfig(file);
      checkChange(good, next, file);
      content = isDeepStrictEqual(next.files, good.files) ? now : undefined;
      accept(next);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      reject(error);
    }
  }

  function accept(next: WebConfig): void {
    const isChanged = !isDeepStrictEqual(next, good);
    if (isChanged) good = next;
    if (isChanged || bad) {
      logger.info({ event: 'web_config.reloaded' }, 'Web configuration reloaded');
    }
    if (bad) publish(true);
    bad = undefined;
    use(good);
  }

  function reject(error: ConfigError): void {
    if (error.message !== bad?.error.message) {
      const reasons = error.message.split('\n');
      const event = 'web_config.reload_failed';
      logger.error({ event, reasons }, 'Web configuration not reloaded');
    }
    if (!bad) publish(false);
    bad = { since: bad?.since ?? clock.monotonic(), error };
    if (clock.monotonic() - bad.since > GRACE_MS) use(undefined);
  }

  function use(next: WebConfig | undefined): void {
    if (next === inForce) return;
    inForce = next;
    for (const listener of changes) listener();
  }

  function publish(ok: boolean): void {
    for (const listener of results) listener(ok);
  }

  return {
    current: () => inForce,
    onChange: (listener) => {
      changes.push(listener);
    },
    onResult: (listener) => {
      results.push(listener);
    },
    look: () => inSequence(() => read(true)),
    reload: () =>
      inSequence(async () => {
        await read(false);
        if (bad) throw bad.error;
      }),
  };
}

/** Refuses to turn TLS or client certificates on or off, and to remove all users: the file may be incomplete. */
function checkChange(before: WebConfig, next: WebConfig, file: string): void {
  const needsRestart = [
    {
      what: 'tls_server_config cannot be added or removed',
      is: (before.tls === undefined) !== (next.tls === undefined),
    },
    {
      what: 'client_auth_type cannot change from or to NoClientCert',
      is: asksForCertificate(before) !== asksForCertificate(next),
    },
    {
      what: 'basic_auth_users cannot become empty',
      is: before.users.size > 0 && next.users.size === 0,
    },
  ].filter(({ is }) => is);
  if (needsRestart.length === 0) return;
  const message = (what: string) => `${what} while evalwatch runs: restart it`;
  throw new ConfigError(
    'invalid',
    needsRestart.map(({ what }) => ({ file, line: 1, column: 1, message: message(what) })),
  );
}

function asksForCertificate({ tls }: WebConfig): boolean {
  return tls !== undefined && tls.clientAuth !== 'NoClientCert';
}
