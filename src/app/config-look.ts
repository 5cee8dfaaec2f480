import type { Config } from '../config/config.ts';
import { contentOf, readSources } from '../config/source.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Reload } from './reload.ts';

/** Number of looks in a row with the same content after which no writer is expected to be in the middle of it. */
const SETTLED_LOOKS = 2;
/** Number of looks in a row at files that are missing or unreadable, as they can be while they are replaced. */
const UNREADABLE_LOOKS = 5;
/** Time after which a failed reload is repeated: its cause can be outside of the watched files, such as in the store. */
const RETRY_MS = 60_000;

export interface ConfigWatchOptions {
  /** Has the configuration in force. */
  readonly engine: { config(): Pick<Config, 'sources'> };
  readonly reload: Pick<Reload, 'runWatched' | 'hasFailed'>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/**
 * Returns the function that looks at the files of the configuration, and reloads it if they have a new content that has
 * settled (docs/specification.md#watching-the-configuration). It is called every 2 s.
 */
export function createConfigLook(options: ConfigWatchOptions): () => Promise<void> {
  const { engine, reload, clock } = options;
  let seen = { content: '', looks: 0 };
  let attempt: { readonly content: string; readonly at: number } | undefined;

  function isApplied(content: string): boolean {
    return !reload.hasFailed() && content === contentOf(engine.config().sources);
  }

  function isDone(content: string): boolean {
    if (!reload.hasFailed()) return isApplied(content);
    return content === attempt?.content && clock.monotonic() - attempt.at < RETRY_MS;
  }

  return async () => {
    const { sources } = engine.config();
    const { content, isReadable } = await readSources(sources);
    seen = { content, looks: content === seen.content ? seen.looks + 1 : 1 };
    const isSettled = seen.looks >= (isReadable ? SETTLED_LOOKS : UNREADABLE_LOOKS);
    if (!isSettled || isDone(content)) return;
    attempt = { content, at: clock.monotonic() };
    await reload.runWatched({
      content,
      // Another reload that ran before this one may have applied it.
      isWanted: async () => !isApplied(content) && (await readSources(sources)).content === content,
    });
  };
}
