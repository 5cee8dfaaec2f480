import { isDeepStrictEqual } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Logger } from '../log/logger.ts';
import { StoreError } from '../monitor/errors.ts';
import type { ReloadResult } from '../web/reload-result.ts';
import { findChanges } from './config-changes.ts';

export interface Reload {
  /**
   * Reloads the configuration; one reload runs at a time, and calls that wait share the next one. Rejects only because of a
   * bug.
   */
  run(): Promise<ReloadResult>;
  /**
   * Reloads like `run`, unless the files changed or another reload applied them meanwhile. Logs a failure only once for each
   * content and reason.
   */
  runWatched(watched: WatchedContent): Promise<void>;
  /** Whether the last reload failed. */
  hasFailed(): boolean;
}

/** Content of the files of a configuration that is settled: no writer is in the middle of it. */
interface WatchedContent {
  /** Identifies the content. */
  readonly content: string;
  /** Resolves to whether the files still have this content, and no other reload has applied it. */
  readonly isWanted: () => Promise<boolean>;
}

interface Failure {
  readonly reasons: readonly string[];
  /** Undefined if the reload was requested. */
  readonly content: string | undefined;
}

export interface ReloadOptions {
  /** The configuration in force. */
  readonly config: () => Config;
  /** @throws {ConfigError} */
  readonly loadConfig: () => Promise<Config>;
  readonly logger: Logger;
  /** Applies a configuration whole, or rejects and changes nothing. */
  readonly apply: (config: Config) => Promise<void>;
  readonly onResult: (result: ReloadResult) => void;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

/** Reloads the configuration: applies the new one as a whole, or keeps the old one (docs/specification.md#reload). */
export function createReload(options: ReloadOptions): Reload {
  const { config, loadConfig, logger, apply, onResult, onError } = options;
  const inSequence = limitConcurrency(1);
  /** The requested reload that has not begun yet. */
  let waiting: Promise<ReloadResult> | undefined;
  /** Failure of the last reload. */
  let failure: Failure | undefined;

  async function reload(loading: Promise<Config>, content?: string): Promise<ReloadResult> {
    const before = config();
    try {
      const next = await loading;
      const reasons = restartReasons(before, next);
      if (reasons.length > 0) return failed({ reasons, content });
      await apply(next);
    } catch (error) {
      // After a bug, half a configuration may be in force.
      if (!(error instanceof ConfigError || error instanceof StoreError)) {
        onError(error);
        throw error;
      }
      return failed({ reasons: error.message.split('\n'), content });
    }
    failure = undefined;
    const result = { ok: true, reasons: [] };
    onResult(result);
    const after = config();
    logger.info(
      {
        event: 'config.reloaded',
        projects: after.projects.length,
        ...findChanges(before, after),
      },
      'Configuration reloaded',
    );
    return result;
  }

  function failed(next: Failure): ReloadResult {
    const { reasons } = next;
    const result = { ok: false, reasons };
    onResult(result);
    if (!isRepeated(next, failure)) {
      logger.error({ event: 'config.reload_failed', reasons }, 'Configuration not reloaded');
    }
    failure = next;
    return result;
  }

  async function reloadWatched({ content, isWanted }: WatchedContent): Promise<void> {
    const loading = loadConfig();
    await loading.catch(() => {});
    if (await isWanted()) await reload(loading, content);
  }

  return {
    run: () => {
      waiting ??= inSequence(async () => {
        // `waiting` is set only after this function has been called.
        await Promise.resolve();
        waiting = undefined;
        return await reload(loadConfig());
      });
      return waiting;
    },
    runWatched: (watched) => inSequence(() => reloadWatched(watched)),
    hasFailed: () => failure !== undefined,
  };
}

/** Returns whether a failure was logged before. A requested reload always logs its failure. */
function isRepeated({ content, reasons }: Failure, last: Failure | undefined): boolean {
  return (
    content !== undefined &&
    last !== undefined &&
    content === (last.content ?? content) &&
    isDeepStrictEqual(reasons, last.reasons)
  );
}

/** Returns a reason for each changed option that needs a restart. */
function restartReasons(current: Config, next: Config): readonly string[] {
  const changed = [
    { name: 'store', differs: !isDeepStrictEqual(current.store, next.store) },
    {
      name: 'web.listen',
      differs: current.web.host !== next.web.host || current.web.port !== next.web.port,
    },
    { name: 'web.config_file', differs: current.web.configFile !== next.web.configFile },
  ];
  return changed
    .filter(({ differs }) => differs)
    .map(({ name }) => `${name} cannot change while evalwatch runs: restart it`);
}
