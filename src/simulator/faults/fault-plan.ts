import { type Fault, type Stage, stageOf, STAGES } from './fault.ts';
import { createRandom } from '../random.ts';

export type Endpoint = 'list_prompts' | 'list_datasets' | 'get_prompt';

/** A fault and the requests that it affects. An absent field matches every request. */
export interface FaultRule {
  readonly fault: Fault;
  readonly project?: string | undefined;
  readonly endpoint?: Endpoint | undefined;
  /** 0 to 1, default 1. */
  readonly probability?: number | undefined;
  /** Maximum number of requests that it affects. Default: no limit. */
  readonly count?: number | undefined;
}

/** The faults of a running simulation. They can be changed at any time. */
export interface FaultPlan {
  /** Replaces all rules. */
  set(rules: readonly FaultRule[]): void;
  add(...rules: readonly FaultRule[]): void;
  clear(): void;
  /** Returns the faults of one request in the order to apply them: at most one for each stage, from the first rule that applies. */
  draw(request: {
    readonly endpoint: Endpoint;
    readonly project: string | undefined;
  }): readonly Fault[];
}

/** @param seed seed of the probabilities: the same requests in the same order get the same faults */
export function createFaultPlan(rules: readonly FaultRule[], seed: number): FaultPlan {
  const random = createRandom(seed);
  let active: { readonly rule: FaultRule; left: number }[] = [];

  function add(...added: readonly FaultRule[]): void {
    active.push(...added.map((rule) => ({ rule, left: rule.count ?? Infinity })));
  }

  add(...rules);
  return {
    add,
    set(replacement) {
      active = [];
      add(...replacement);
    },
    clear() {
      active = [];
    },
    draw({ endpoint, project }) {
      const drawn = new Map<Stage, Fault>();
      for (const entry of active) {
        const { fault, probability = 1, ...only } = entry.rule;
        const matches =
          (only.endpoint ?? endpoint) === endpoint && (only.project ?? project) === project;
        if (!matches || drawn.has(stageOf(fault)) || !random.chance(probability)) continue;
        drawn.set(stageOf(fault), fault);
        entry.left -= 1;
      }
      active = active.filter((entry) => entry.left > 0);
      return STAGES.flatMap((stage) => drawn.get(stage) ?? []);
    },
  };
}
