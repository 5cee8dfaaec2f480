import { isDeepStrictEqual } from 'node:util';
import type { ErrorInfo, World } from '../../src/simulator/world.ts';
import { RandomWorld } from '../random-world.ts';

const TICK_MS = 300;
/** Maximum time from a daemon's request for an error_info to its line, on a busy machine. */
const ASKED_BEFORE_MS = 15_000;

/** A changing world that records the error_infos of its prompts. */
export interface LivingWorld {
  readonly world: World;
  /** Whether `errorInfo` was that of the prompt at some time in the 15 s before `at`, epoch ms. */
  readonly gave: (promptId: string, errorInfo: unknown, at: number) => boolean;
  readonly hasErrorInfo: (project: string, promptId: string) => boolean;
  start(): void;
  stop(): void;
}

/** `pace` 1 moves about a tenth of the prompts in each tick. */
export function createLivingWorld(
  projects: readonly string[],
  seed: number,
  { promptsPerProject, pace }: { readonly promptsPerProject: number; readonly pace: number },
): LivingWorld {
  const told = new Map<string, { readonly at: number; readonly info: ErrorInfo }[]>();
  const world = new RandomWorld({
    now: () => Date.now(),
    seed,
    projects,
    promptsPerProject,
    datasetsPerProject: 3,
    oddIds: true,
    onError: (id, info) => told.set(id, [...(told.get(id) ?? []), { at: Date.now(), info }]),
    rates: {
      start: 0.15 * pace,
      finish: 0.1 * pace,
      fail: 0.5,
      rerun: 0.05 * pace,
      arrivals: 0.2 * pace,
      comeBack: 0.5,
      dataset: 0.1 * pace,
    },
  });
  let timer: NodeJS.Timeout | undefined;

  return {
    world,
    gave: (promptId, errorInfo, at) => {
      const before = (told.get(promptId) ?? []).filter((entry) => entry.at <= at);
      return before.some(({ info }, index) => {
        const replacedAt = before[index + 1]?.at ?? Infinity;
        return replacedAt >= at - ASKED_BEFORE_MS && isDeepStrictEqual(info, errorInfo);
      });
    },
    hasErrorInfo: (project, promptId) => Boolean(world.prompts(project)?.get(promptId)?.error_info),
    start: () => {
      timer = setInterval(() => world.step(), TICK_MS);
    },
    stop: () => clearInterval(timer),
  };
}
