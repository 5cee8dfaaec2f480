import { isDeepStrictEqual } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { ConfigError } from '../config/config.ts';
import { readSources } from '../config/load.ts';
import { loadWebConfig, type WebConfig } from '../config/web-file.ts';
import type { Logger } from '../log/logger.ts';
import type { ChangingProtection } from '../web/security.ts';

/** The last valid web configuration, which follows its files (docs/web-configuration.md#while-it-runs). */
export class WebProtection implements ChangingProtection {
  readonly #file: string;
  readonly #logger: Logger;
  readonly #limited = limitConcurrency(1);
  readonly #onChange: (() => void)[] = [];
  readonly #onResult: ((ok: boolean) => void)[] = [];
  #inForce: WebConfig;
  /** Content of its files when they were last read; undefined if they have to be read again. */
  #content: string | undefined;
  /** Why the files are invalid now. */
  #error: ConfigError | undefined;

  private constructor(file: string, first: WebConfig, logger: Logger) {
    this.#file = file;
    this.#inForce = first;
    this.#logger = logger;
  }

  /** @param file absolute @throws {ConfigError} if it cannot be used */
  static async open(file: string, logger: Logger): Promise<WebProtection> {
    return new WebProtection(file, await loadWebConfig(file), logger);
  }

  current(): WebConfig {
    return this.#inForce;
  }

  onChange(listener: () => void): void {
    this.#onChange.push(listener);
  }

  /** Calls the listener when the files become valid or invalid. */
  onResult(listener: (ok: boolean) => void): void {
    this.#onResult.push(listener);
  }

  /** Reads the files again if their content has changed, or was invalid. It is called every 2 s. */
  async look(): Promise<void> {
    await this.#limited(async () => {
      const isSame = readSources(this.#inForce.files).content === this.#content;
      if (!isSame || this.#error !== undefined) await this.#read();
    });
  }

  /** Reads the files again. @throws {ConfigError} if they are invalid or contain a change that needs a restart */
  async reload(): Promise<void> {
    await this.#limited(async () => {
      await this.#read();
      if (this.#error !== undefined) throw this.#error;
    });
  }

  async #read(): Promise<void> {
    // Hashed before the files are read: a change in between is noticed at the next look.
    const { content } = readSources(this.#inForce.files);
    try {
      const next = await loadWebConfig(this.#file);
      checkChange(this.#inForce, next, this.#file);
      const isChanged = !isDeepStrictEqual(next, this.#inForce);
      // What changed can be the names of the files.
      this.#content = isChanged ? undefined : content;
      const wasInvalid = this.#error !== undefined;
      this.#error = undefined;
      if (isChanged || wasInvalid) {
        this.#logger.info({ event: 'web_config.reloaded' }, 'Web configuration reloaded');
      }
      if (wasInvalid) for (const listener of this.#onResult) listener(true);
      if (!isChanged) return;
      this.#inForce = next;
      for (const listener of this.#onChange) listener();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const before = this.#error;
      this.#error = error;
      if (error.message !== before?.message) {
        const fields = { event: 'web_config.reload_failed', reasons: error.message.split('\n') };
        this.#logger.error(fields, 'Web configuration not reloaded');
      }
      if (before === undefined) for (const listener of this.#onResult) listener(false);
    }
  }
}

/** Refuses to turn TLS or client certificates on or off, and to remove all users: the file may be incomplete. */
function checkChange(before: WebConfig, next: WebConfig, file: string): void {
  const asksForCertificate = ({ tls }: WebConfig) =>
    tls !== undefined && tls.clientAuth !== 'NoClientCert';
  const refused = {
    'tls_server_config cannot be added or removed':
      (before.tls === undefined) !== (next.tls === undefined),
    'client_auth_type cannot change from or to NoClientCert':
      asksForCertificate(before) !== asksForCertificate(next),
    'basic_auth_users cannot become empty': before.users.size > 0 && next.users.size === 0,
  };
  const problems = Object.entries(refused)
    .filter(([, is]) => is)
    .map(([what]) => ({
      file,
      line: 1,
      column: 1,
      message: `${what} while evalwatch runs: restart it`,
    }));
  if (problems.length > 0) throw new ConfigError('invalid', problems);
}
