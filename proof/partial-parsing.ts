import { join } from 'node:path';
import { systemClock } from '../src/app/clock.ts';
import { createRecordBudget } from '../src/evaluation-api/listing/record-budget.ts';
import * as fc from 'fast-check';
import type * as KeyRoom from '../src/evaluation-api/api-key.ts';
import type * as ListingRoom from '../src/evaluation-api/listing/listing.ts';
import type * as PollerRoom from '../src/monitor/poller.ts';
import type * as ErrorsRoom from '../src/monitor/errors.ts';
import type { MonitorEvent } from '../src/monitor/events.ts';
import { sequences, type Sequence } from './partial-parsing/bodies.ts';
import { memoryStore } from './partial-parsing/memory-store.ts';
import { byDifference, naively, type Reader } from './partial-parsing/readers.ts';
import { type Row, SOURCE } from './row.ts';

const PORTION = 500;

/** Observable result of one poll of a listing. */
interface Seen {
  readonly events: readonly MonitorEvent[];
  readonly committed: unknown;
}

/** Polls sequences of listings by parsing what is new and by parsing everything: the results must be the same. */
export const partialParsing: Row = {
  name: 'partial-parsing',
  judges: ['src/evaluation-api/listing/'],
  bug: [
    {
      what: 'a new item with the id of a known one is not noticed',
      file: 'evaluation-api/listing/listing-stream.ts',
      replace: [
        [
          'hasAnyId(table, matcher.places(), added)',
          'hasAnyId(table, matcher.places(), new Set())',
        ],
      ],
      notice: /read whole/,
    },
    {
      what: 'the listing after an incomplete one is compared with it',
      file: 'evaluation-api/listing/listing-stream.ts',
      replace: [['before?.isComplete === true', 'true']],
      notice: /read whole/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE }) => {
    const wanted = short ? 1500 : 100_000;
    const modules = {
      ...((await import(join(source, 'monitor/errors.ts'))) as typeof ErrorsRoom),
      ...((await import(join(source, 'evaluation-api/api-key.ts'))) as typeof KeyRoom),
      ...((await import(join(source, 'monitor/poller.ts'))) as typeof PollerRoom),
      ...((await import(join(source, 'evaluation-api/listing/listing.ts'))) as typeof ListingRoom),
    };
    const figures = { pairs: 0, unchanged: 0, partly: 0, whole: 0, twice: 0, failed: 0 };
    const difference = await byDifference(source, (how) => (figures[how] += 1));
    for (let portion = 0; figures.pairs < wanted; portion += 1) {
      await fc.assert(
        fc.asyncProperty(sequences, async (sequence) => {
          const partly = await play(sequence, difference, modules);
          const whole = await play(sequence, naively(modules), modules);
          figures.pairs += sequence.length - 1;
          for (const [index, seen] of partly.entries()) {
            const [one, other] = [shown(seen), shown(whole[index])];
            if (one !== other) throw new Error(`step ${index}: ${one}\nread whole: ${other}`);
          }
        }),
        { seed: seed + portion, numRuns: PORTION },
      );
      if (portion % 20 === 19) print(`${figures.pairs} pairs`);
    }
    if (figures.partly * 10 < figures.pairs) throw new Error('hardly anything is read in part');
    return [
      ['pairs of listings', String(figures.pairs)],
      ['… the same', String(figures.unchanged)],
      ['… read in part', String(figures.partly)],
      ['… read whole', String(figures.whole)],
      ['… of them requested again for it', String(figures.twice)],
      ['… invalid', String(figures.failed)],
      ['told or stored otherwise than by parsing everything', '0'],
    ];
  },
};

async function play(
  sequence: Sequence,
  read: Reader,
  modules: typeof PollerRoom & typeof KeyRoom & typeof ErrorsRoom,
): Promise<readonly Seen[]> {
  const readKey = modules.createApiKeyReader(systemClock);
  let { scrub } = await readKey({ env: 'KEY', value: 'the-first-key' });
  const store = memoryStore(modules);
  const events: MonitorEvent[] = [];
  let time = 0;
  let step = sequence[0];
  const poller = modules.createPoller({
    service: {
      list: async (_project, kind, { previous, allowDifference, onRequest }) => {
        onRequest();
        if (step === undefined) throw new Error('no step');
        if (step.notModified && previous !== undefined) return { unchanged: true, full: false };
        return await read({ step, kind, previous, allowDifference, scrub });
      },
    },
    store,
    clock: { ...systemClock, now: () => time, monotonic: () => time },
    emit: (event) => events.push(event),
    missingAfter: () => 2,
    maxIntervalMs: () => 60_000,
    holdRecords: createRecordBudget(Infinity, systemClock).holdRecords,
    shutdown: { waits: new AbortController().signal, requests: new AbortController().signal },
  });
  const seen: Seen[] = [];
  for (step of sequence) {
    time += 1000;
    if (step.key !== undefined) ({ scrub } = await readKey({ env: 'KEY', value: step.key }));
    store.breaks(step.commitFails);
    await poller.poll({ id: 'p', datasets: step.datasets }, { dueAt: time, nextAt: time + 1000 });
    seen.push({ events: events.splice(0), committed: store.committed() });
  }
  return seen;
}

/** Returns everything but the messages of errors. */
function shown(seen: Seen | undefined): string {
  return JSON.stringify(seen, (name, value: unknown) => {
    if (value instanceof Map) return [...value];
    return name === 'message' ? undefined : value;
  });
}
