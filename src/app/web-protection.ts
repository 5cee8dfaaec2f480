import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from '../config/config-error.ts';
import { loadWebConfig, type WebConfig } from '../config/web-file/web-file.ts';
import { versionOf } from '../files/regular-file.ts';
import type { Logger } from '../log/logger.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ChangingProtection } from '../web/protection/changing-protection.ts';

/**
 * Maximum time that the last good web configuration stays in use while the file is bad. Longer than EvalwatchConfigReloadFailed takes
 * to fire, so that a typo does not blind monitoring; bounded, so that a removed user does not keep access.
 */
const GRACE_MS = 15 * 60 * 1000;

export interface WebProtection extends ChangingProtection {
  /**
   * Reads the files again if they have changed.
   * @throws {ConfigError} if the files are invalid or contain a change that needs a restart; the last good ones then stay in
   * use for at most 15 minutes
   */
  reload(): Promise<void>;
  /** Paths of the last good file and of those that it names, absolute. */
  files(): readonly string[];
  /** Calls the listener when the file becomes valid or invalid. */
  onResult(listener: (ok: boolean) => void): void;
}

export interface WebProtectionOptions {
  /** The web configuration file, absolute. */
  readonly file: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Loads the web configuration. `now` loads it again when one of its files has changed
 * (docs/web-configuration.md#while-it-runs).
 * @throws {ConfigError} if it cannot be used
 */
export async function openWebProtection(options: WebProtectionOptions): Promise<WebProtection> {
  const { file, clock, logger } = options;
  const listeners: ((ok: boolean) => void)[] = [];
  const first = await loadWebConfig(file);
  let good = first;
  /** Version of the files of `good`; undefined if they have to be read again. */
  let goodVersion: string | undefined;
  let bad: { readonly since: number; readonly error: ConfigError } | undefined;
  let refreshing: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    // Taken before the files are read: a change in between is detected the next time.
    const version = await versionOf(good.files, clock.now());
    if (version !== undefined && version === goodVersion) return;
    try {
      const next = await loadWebConfig(file);
      checkChange(good, next, file);
      goodVersion = isDeepStrictEqual(next.files, good.files) ? version : undefined;
      accept(next);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      goodVersion = undefined;
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
  }

  function reject(error: ConfigError): void {
    if (error.message !== bad?.error.message) {
      const reasons = error.message.split('\n');
      const event = 'web_config.reload_failed';
      logger.error({ event, reasons }, 'Web configuration not reloaded');
    }
    if (!bad) publish(false);
    bad = { since: bad?.since ?? clock.monotonic(), error };
  }

  function publish(ok: boolean): void {
    for (const listener of listeners) listener(ok);
  }

  const refreshOnce = () => {
    refreshing ??= refresh().finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  };

  return {
    first,
    files: () => good.files,
    onResult: (listener) => {
      listeners.push(listener);
    },
    now: async () => {
      await refreshOnce();
      return bad && clock.monotonic() - bad.since > GRACE_MS ? undefined : good;
    },
    reload: async () => {
      // A refresh that has begun may have read the file too early.
      await refreshing;
      await refreshOnce();
      if (bad) throw bad.error;
    },
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
