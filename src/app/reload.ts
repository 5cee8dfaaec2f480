import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { contentOf, readSources, sourcesOf } from '../config/load.ts';
import type { Logger } from '../log/logger.ts';
import { StoreError, unlessStoreFails } from '../monitor/errors.ts';
import type { ConfigChanges } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ReloadResult } from '../web/content.ts';
import { type Engine, projectsOf } from './engine.ts';
import { endProcess } from './process.ts';
import type { Scheduling } from './scheduling.ts';

/** Number of looks in a row with the same content after which no writer is expected to be in the middle of it. */
const SETTLED_LOOKS = 2;
/** Number of looks in a row at files that are missing or unreadable, as they can be while they are replaced. */
const UNREADABLE_LOOKS = 5;
/** Time after which a failed reload of watched files is repeated: its cause can be outside of them, such as in the store. */
const RETRY_MS = 60_000;
/** Maximum number of ids in each list, so that a log line stays short when thousands of projects change. */
const MAX_IDS = 20;

interface Failure {
  readonly reasons: readonly string[];
  /** Content of the watched files; undefined if the reload was requested. */
  readonly content: string | undefined;
  /** On the monotonic clock, ms. */
  readonly at: number;
}

/** Reloads the configuration: applies the new one as a whole, or keeps the old one (docs/specification.md#reload). */
export class Reload {
  readonly #engine: Engine;
  readonly #scheduling: Scheduling;
  readonly #clock: Clock;
  readonly #loadConfig: () => Promise<Config>;
  readonly #inSequence = limitConcurrency(1);
  /** The requested reload that has not begun yet. */
  #waiting: Promise<ReloadResult> | undefined;
  /** The last look at the watched files, and how many in a row found the same. */
  #seen = { content: '', looks: 0 };
  /** Failure of the last reload. */
  #failure: Failure | undefined;

  /** @param loadConfig reads the new configuration; it can throw a `ConfigError` */
  constructor(
    engine: Engine,
    scheduling: Scheduling,
    clock: Clock,
    loadConfig: () => Promise<Config>,
  ) {
    this.#engine = engine;
    this.#scheduling = scheduling;
    this.#clock = clock;
    this.#loadConfig = loadConfig;
  }

  /** Reloads. One reload runs at a time, and calls that wait for it share the next one. Rejects only because of a bug. */
  run(): Promise<ReloadResult> {
    this.#waiting ??= this.#inSequence(async () => {
      // `#waiting` is set only after this function has been called.
      await Promise.resolve();
      this.#waiting = undefined;
      return await this.#reload(this.#loadConfig());
    });
    return this.#waiting;
  }

  /**
   * Looks at the files of the configuration, and reloads it if they have a new content that has settled
   * (docs/specification.md#watching-the-configuration). It is called every 2 s.
   */
  async look(): Promise<void> {
    const { content, isReadable } = this.#readSources();
    const looks = content === this.#seen.content ? this.#seen.looks + 1 : 1;
    this.#seen = { content, looks };
    if (looks < (isReadable ? SETTLED_LOOKS : UNREADABLE_LOOKS) || this.#isDone(content)) return;
    await this.#inSequence(async () => {
      const loading = this.#loadConfig();
      await loading.catch(() => {});
      // The files may have changed meanwhile, or another reload may have applied them.
      const isSame = this.#readSources().content === content;
      if (isSame && !this.#isDone(content)) await this.#reload(loading, content);
    });
  }

  #readSources() {
    return readSources(sourcesOf(this.#engine.config));
  }

  /** Whether the content is in force, or was refused less than a minute ago. */
  #isDone(content: string): boolean {
    const failure = this.#failure;
    if (failure === undefined) return content === contentOf(this.#engine.config.sources);
    return content === failure.content && this.#clock.monotonic() - failure.at < RETRY_MS;
  }

  async #reload(loading: Promise<Config>, content?: string): Promise<ReloadResult> {
    const before = this.#engine.config;
    try {
      const next = await loading;
      // With several workers it would change what the others poll.
      if (this.#engine.shutdown.waits.aborted) {
        return { ok: false, reasons: ['evalwatch is stopping'] };
      }
      const reasons = [
        ...changesOf(FIXED, before, next).map(
          (name) => `${name} cannot change while evalwatch runs: restart it`,
        ),
        ...findLost(before, next),
      ];
      if (reasons.length > 0) return this.#fail(reasons, content);
      await this.#apply(next);
    } catch (error) {
      if (error instanceof ConfigError || error instanceof StoreError) {
        return this.#fail(error.message.split('\n'), content);
      }
      // Half a configuration may be in force.
      endProcess(error);
      throw error;
    }
    this.#failure = undefined;
    const after = this.#engine.config;
    const changes = findChanges(before, after);
    this.#engine.emit({ type: 'config.reloaded', projects: after.projects.length, changes });
    return { ok: true, reasons: [] };
  }

  /** Applies a configuration whole, or rejects and changes nothing. @throws {StoreError} */
  async #apply(next: Config): Promise<void> {
    await this.#engine.configure(next);
    this.#scheduling.apply();
    await unlessStoreFails(() => this.#engine.expectations.refresh());
  }

  #fail(reasons: readonly string[], content: string | undefined): ReloadResult {
    const last = this.#failure;
    // A requested reload always logs its failure; one of watched files, if it was not logged for this content.
    const isRepeated =
      content !== undefined &&
      last !== undefined &&
      content === (last.content ?? content) &&
      isDeepStrictEqual(reasons, last.reasons);
    this.#failure = { reasons, content, at: this.#clock.monotonic() };
    this.#engine.emit({ type: 'config.reload_failed', reasons, isRepeated });
    return { ok: false, reasons };
  }
}

type Parts = Readonly<Record<string, (config: Config) => unknown>>;

/** Options that need a restart. */
const FIXED: Parts = {
  store: ({ store }) => store,
  'web.listen': ({ web }) => [web.host, web.port],
  'web.config_file': ({ web }) => web.configFile,
};

/** Options that belong to no project, by their name at the top of the file. */
const SECTIONS: Parts = {
  service: ({ service, promptUrl }) => ({ ...service, promptUrl }),
  jitter: ({ jitterMs }) => jitterMs,
  missing_after: ({ missingAfter }) => missingAfter,
  web: ({ web }) => web,
  metrics: ({ metrics }) => metrics,
  log: ({ log }) => log,
  heartbeat: ({ heartbeat }) => heartbeat,
  notify: ({ notify }) => notify,
};

/** Returns why a configuration is refused that lacks projects of a file that it does not read: they may be lost by mistake. */
function findLost(before: Config, { sources, projects: all }: Config): readonly string[] {
  const read = new Set(sources.map(({ path }) => path));
  const kept = new Set(all.map(({ id }) => id));
  return before.sources.flatMap(({ path, projects = [] }) => {
    const lost = read.has(path) ? [] : projects.filter((id) => !kept.has(id));
    if (lost.length === 0) return [];
    return `${path}: the file is gone, or projects_files no longer names it, and its projects are lost (${lost.length}): to remove them, first write [] into it, or restart evalwatch`;
  });
}

/** Returns the names of the parts that differ. */
function changesOf(parts: Parts, before: Config, after: Config): readonly string[] {
  return Object.entries(parts)
    .filter(([, part]) => !isDeepStrictEqual(part(before), part(after)))
    .map(([name]) => name);
}

/**
 * Returns what differs between two configurations, in ids and names only: a value could be a secret
 * (docs/specification.md#reload). Each list has at most 20 ids.
 */
export function findChanges(before: Config, after: Config): ConfigChanges {
  const [old, next] = [projectsOf(before), projectsOf(after)];
  const added = [...next.keys()].filter((id) => !old.has(id));
  const removed = [...old.keys()].filter((id) => !next.has(id));
  const changed = [...next.keys()].filter(
    (id) => old.has(id) && !isDeepStrictEqual(old.get(id), next.get(id)),
  );
  const omitted = [added, removed, changed].flatMap((ids) => ids.slice(MAX_IDS)).length;
  return {
    added: added.slice(0, MAX_IDS),
    removed: removed.slice(0, MAX_IDS),
    changed: changed.slice(0, MAX_IDS),
    omitted: omitted === 0 ? undefined : omitted,
    sections: changesOf(SECTIONS, before, after),
  };
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
