import { isDeepStrictEqual } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { ConfigError } from '../config/config.ts';
import { loadWebConfig } from '../config/web-file.ts';
import type { Protection } from '../domain/options.ts';
import type { Logger } from '../log/logger.ts';
import type { ChangingProtection } from '../web/security.ts';

/** The last valid web configuration, which follows its files (docs/web-configuration.md#while-it-runs). */
export class WebProtection implements ChangingProtection {
  readonly #file: string;
  readonly #logger: Logger;
  readonly #inSequence = limitConcurrency(1);
  readonly #onChange: (() => void)[] = [];
  #inForce: Protection;
  /** Why the files are invalid now. */
  #error: ConfigError | undefined;

  private constructor(file: string, first: Protection, logger: Logger) {
    this.#file = file;
    this.#inForce = first;
    this.#logger = logger;
  }

  /** @param file absolute @throws {ConfigError} if it cannot be used */
  static async open(file: string, logger: Logger): Promise<WebProtection> {
    return new WebProtection(file, await loadWebConfig(file), logger);
  }

  current(): Protection {
    return this.#inForce;
  }

  onChange(listener: () => void): void {
    this.#onChange.push(listener);
  }

  /** Whether the files were valid when they were last read. */
  isValid(): boolean {
    return this.#error === undefined;
  }

  /**
   * Reads the files again, and takes up what has changed. Returns the reason if they are invalid or contain a change that needs
   * a restart. It is called every 2 s and by a reload.
   */
  async look(): Promise<ConfigError | undefined> {
    return await this.#inSequence(async () => {
      const wasInvalid = !this.isValid();
      try {
        const next = await loadWebConfig(this.#file);
        checkChange(this.#inForce, next, this.#file);
        this.#error = undefined;
        const isChanged = !isDeepStrictEqual(next, this.#inForce);
        if (isChanged || wasInvalid) {
          this.#logger.info({ event: 'web_config.reloaded' }, 'Web configuration reloaded');
        }
        if (isChanged) {
          this.#inForce = next;
          for (const listener of this.#onChange) listener();
        }
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        const isNew = error.message !== this.#error?.message;
        this.#error = error;
        if (isNew) {
          const fields = { event: 'web_config.reload_failed', reasons: error.message.split('\n') };
          this.#logger.error(fields, 'Web configuration not reloaded');
        }
      }
      return this.#error;
    });
  }
}

/** Refuses to turn TLS or client certificates on or off, and to remove all users: the file may be incomplete. */
function checkChange(before: Protection, next: Protection, file: string): void {
  const asksForCertificate = ({ tls }: Protection) =>
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
