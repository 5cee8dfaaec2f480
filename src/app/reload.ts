import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { contentOf, readSources } from '../config/load.ts';
import type { Logger } from '../log/logger.ts';
import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ReloadResult } from '../web/content.ts';
import { projectsOf } from './engine.ts';

/** Number of looks in a row with the same content after which no writer is expected to be in the middle of it. */
const SETTLED_LOOKS = 2;
/** Number of looks in a row at files that are missing or unreadable, as they can be while they are replaced. */
const UNREADABLE_LOOKS = 5;
/** Time after which a failed reload of watched files is repeated: its cause can be outside of them, such as in the store. */
const RETRY_MS = 60_000;
/** Maximum number of ids in each list, so that a log line stays short when thousands of projects change. */
const MAX_IDS = 20;

export interface Reload {
  /**
   * Reloads the configuration; one reload runs at a time, and calls that wait share the next one. Rejects only because of a
   * bug.
   */
  run(): Promise<ReloadResult>;
  /**
   * Looks at the files of the configuration, and reloads it if they have a new content that has settled
   * (docs/specification.md#watching-the-configuration). It is called every 2 s.
   */
  look(): Promise<void>;
}

interface Failure {
  readonly reasons: readonly string[];
  /** Identifies the content of the watched files; undefined if the reload was requested. */
  readonly content: string | undefined;
}

export interface ReloadOptions {
  /** The configuration in force. */
  readonly config: () => Config;
  /** @throws {ConfigError} */
  readonly loadConfig: () => Promise<Config>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Applies a configuration whole, or rejects and changes nothing. */
  readonly apply: (config: Config) => Promise<void>;
  readonly onResult: (result: ReloadResult) => void;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

/** Reloads the configuration: applies the new one as a whole, or keeps the old one (docs/specification.md#reload). */
export function createReload(options: ReloadOptions): Reload {
  const { config, loadConfig, logger, clock, apply, onResult, onError } = options;
  const inSequence = limitConcurrency(1);
  /** The requested reload that has not begun yet. */
  let waiting: Promise<ReloadResult> | undefined;
  /** Failure of the last reload. */
  let failure: Failure | undefined;
  let seen = { content: '', looks: 0 };
  /** The last reload of watched files. */
  let attempt: { readonly content: string; readonly at: number } | undefined;

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

  function isApplied(content: string): boolean {
    return !failure && content === contentOf(config().sources);
  }

  function isDone(content: string): boolean {
    if (!failure) return isApplied(content);
    return content === attempt?.content && clock.monotonic() - attempt.at < RETRY_MS;
  }

  /** Reloads, unless the files change meanwhile or another reload has applied them. */
  async function reloadWatched(content: string): Promise<void> {
    const paths = config().sources.map(({ path }) => path);
    const loading = loadConfig();
    await loading.catch(() => {});
    const isSame = readSources(paths).content === content;
    if (isSame && !isApplied(content)) await reload(loading, content);
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
    look: async () => {
      const { content, isReadable } = readSources(config().sources.map(({ path }) => path));
      seen = { content, looks: content === seen.content ? seen.looks + 1 : 1 };
      const isSettled = seen.looks >= (isReadable ? SETTLED_LOOKS : UNREADABLE_LOOKS);
      if (!isSettled || isDone(content)) return;
      attempt = { content, at: clock.monotonic() };
      await inSequence(() => reloadWatched(content));
    },
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

/** What a reload changed, in ids and names only: a value could be a secret. */
interface ConfigChanges {
  /** Ids of projects, at most 20 in each list. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  /** Number of ids that these lists leave out; undefined if there are none. */
  readonly omitted: number | undefined;
  /** Changed options that belong to no project, by their name at the top of the file. */
  readonly sections: readonly string[];
}

/** Returns what differs between two configurations (docs/specification.md#reload). */
export function findChanges(before: Config, after: Config): ConfigChanges {
  const [old, next] = [projectsOf(before), projectsOf(after)];
  const lists = {
    added: [...next.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !next.has(id)),
    changed: [...next.keys()].filter(
      (id) => old.has(id) && !isDeepStrictEqual(old.get(id), next.get(id)),
    ),
  };
  const omitted = Object.values(lists).reduce(
    (sum, ids) => sum + Math.max(0, ids.length - MAX_IDS),
    0,
  );
  return {
    added: lists.added.slice(0, MAX_IDS),
    removed: lists.removed.slice(0, MAX_IDS),
    changed: lists.changed.slice(0, MAX_IDS),
    omitted: omitted === 0 ? undefined : omitted,
    sections: changedSections(before, after),
  };
}

function changedSections(before: Config, after: Config): readonly string[] {
  const sections = {
    service: ({ service, promptUrl }: Config) => ({ ...service, promptUrl }),
    jitter: (config: Config) => config.jitterMs,
    missing_after: (config: Config) => config.missingAfter,
    web: (config: Config) => config.web,
    log: (config: Config) => config.log,
    heartbeat: (config: Config) => config.heartbeat,
  };
  return Object.entries(sections)
    .filter(([, read]) => !isDeepStrictEqual(read(before), read(after)))
    .map(([name]) => name);
}

/**
 * Logs a warning if the configuration file is a mount by itself, as in `docker run -v FILE:FILE`: a file that replaces it on the
 * host is not visible here, so a reload reads the old one. On systems other than Linux it does nothing.
 */
export async function warnIfMounted(file: string, logger: Logger): Promise<void> {
  try {
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    const path = join(await realpath(dirname(file)), basename(file));
    // mountinfo escapes white space and backslashes as octal numbers.
    const escaped = path.replaceAll(
      /[\s\\]/g,
      (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
    );
    if (!mounts.split('\n').some((line) => line.split(' ')[4] === escaped)) return;
  } catch {
    return;
  }
  logger.warn(
    { event: 'config.file_mounted', path: file },
    'The configuration file is a single-file mount: mount its directory, or changes on the host may not be visible',
  );
}
