/** Listings of the service of a measurement. */
export interface Workload {
  readonly projects: number;
  /** Prompts of each project. */
  readonly prompts: number;
  /** Number of listings, each 1 % different from the previous, served in order. */
  readonly versions: number;
  readonly encoding: 'identity' | 'gzip';
  /** Whether the service sends an ETag, and answers 304 to it. */
  readonly sendsEtag: boolean;
  /** Whether all projects have the same listings, again and again; otherwise the last one of each repeats. */
  readonly isShared: boolean;
  /** Number of polls that get a version before the next one. */
  readonly pollsEach: number;
  /** Interval between the polls of a project, if doubled ones are counted. */
  readonly everyMs: number;
}

export const ONE_LISTING: Workload = {
  projects: 1,
  prompts: 100,
  versions: 1,
  encoding: 'identity',
  sendsEtag: false,
  isShared: false,
  pollsEach: 1,
  everyMs: 0,
};

const TASKS = [
  'Answer the question of the customer from the passages below and name the passage that you used.',
  'Summarise the conversation in at most three sentences, without names, numbers of orders or addresses.',
  'Classify the ticket by product area and urgency; answer with a JSON object and nothing else.',
  'Rewrite the paragraph for a reader who has never used the product. Keep every fact and add none.',
];
const METRICS = ['accuracy', 'exact_match', 'rouge_l', 'llm_judge_helpfulness'];
/** Prompts that follow each other in an experiment, and experiments of a project at most. */
const PROMPTS_EACH = 20;
const EXPERIMENTS = 170;
const FIRST_STATUSES = ['COMPLETED', 'COMPLETED', 'COMPLETED', 'RUNNING', 'PENDING', 'FAILED'];

export function projectIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `project-${index}`);
}

/**
 * Yields the bodies of the prompt listing of one project, one for each version. Items have every field that the service
 * documents and 350 to 600 bytes. Their ids are ordered by time (UUID version 7), so that a store that inserts them in
 * the order of the listing fills one page after the other.
 */
export function* listingBodies(
  project: number,
  { prompts, versions }: Pick<Workload, 'prompts' | 'versions'>,
): Generator<Buffer> {
  const random = randomNumbers(project + 1);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const items = Array.from({ length: prompts }, (_, index) => {
    const { status, ...fields } = item(project, index, pick);
    // All fields but the status, which comes last.
    return { start: `${JSON.stringify(fields).slice(0, -1)},"status":"`, status };
  });
  for (let version = 0; version < versions; version += 1) {
    if (version > 0) {
      for (const index of someIndexes(prompts, random)) {
        const moved = items[index];
        if (moved !== undefined) moved.status = nextStatus(moved.status, random());
      }
    }
    yield Buffer.from(`[${items.map(({ start, status }) => `${start}${status}"}`).join(',')}]`);
  }
}

function item(project: number, index: number, pick: <T>(values: readonly T[]) => T) {
  const at = new Date(Date.UTC(2026, 0, 1) + (project * 1000 + index) * 1000);
  const number = String(index).padStart(6, '0');
  return {
    id: uuid(at, project, index),
    name: `Regression suite ${project}, case ${number}`,
    timestamp: at.toISOString(),
    dataset: `support-conversations-2026-${(project % 12) + 1}`,
    experiment: `prompt-template-${Math.floor(index / PROMPTS_EACH) % EXPERIMENTS}-temperature-0.7`,
    task_description: `${pick(TASKS)}${index % 3 === 0 ? ` ${pick(TASKS)}` : ''}`,
    metric: pick(METRICS),
    status: pick(FIRST_STATUSES),
  };
}

function uuid(at: Date, project: number, index: number): string {
  const time = at.getTime().toString(16).padStart(12, '0');
  const tail = (project * 1_000_000 + index).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${tail}`;
}

/** Returns 1 % of the indexes, at least one. */
function someIndexes(count: number, random: () => number): ReadonlySet<number> {
  const indexes = new Set<number>();
  while (indexes.size < Math.max(1, Math.round(count / 100))) {
    indexes.add(Math.floor(random() * count));
  }
  return indexes;
}

/** Returns the next status. One evaluation in ten fails; ended ones run again. */
function nextStatus(status: string, chance: number): string {
  if (status === 'PENDING') return 'RUNNING';
  if (status === 'RUNNING') return chance < 0.1 ? 'FAILED' : 'COMPLETED';
  return 'PENDING';
}

/** Creates a generator of numbers from 0 to 1 for a seed (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
