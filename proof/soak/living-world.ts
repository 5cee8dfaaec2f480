import type { ErrorInfo } from '../../src/simulator/world/error-info.ts';
import { isDeepStrictEqual } from 'node:util';
import { World } from '../../src/simulator/world/world.ts';

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
  const world = new World({
    now: () => Date.now(),
    seed,
    projects,
    promptsPerProject,
    oddIds: true,
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
  const told = new Map<string, { readonly at: number; readonly info: ErrorInfo }[]>();
  let seen = 0;
  let timer: NodeJS.Timeout | undefined;

  function remember(project: string, id: string): void {
    const info = world.prompts(project)?.get(id)?.error_info;
    if (info) told.set(id, [...(told.get(id) ?? []), { at: Date.now(), info }]);
  }

  function step(): void {
    world.step();
    for (const { seq, kind, project, id } of world.moves(seen)) {
      if (kind === 'prompt') remember(project, id);
      seen = seq;
    }
  }

  for (const project of projects) {
    for (const id of world.prompts(project)?.keys() ?? []) remember(project, id);
  }
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
      timer = setInterval(step, TICK_MS);
    },
    stop: () => clearInterval(timer),
  };
}
