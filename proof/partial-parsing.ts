import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { systemClock } from '../src/app/clock.ts';
import type * as KeyRoom from '../src/client/api-key.ts';
import type * as ClientRoom from '../src/client/client.ts';
import type * as ErrorsRoom from '../src/monitor/errors.ts';
import type { MonitorEvent } from '../src/monitor/events.ts';
import type * as PollerRoom from '../src/monitor/poller.ts';
import type { EvaluationService } from '../src/monitor/ports/service.ts';
import { startService } from '../test/support/service.ts';
import { type Sequence, sequences, type Step } from './partial-parsing/bodies.ts';
import { memoryStore } from './partial-parsing/memory-store.ts';
import { naiveService, type Now } from './partial-parsing/naive.ts';
import { type Row, SOURCE } from './row.ts';

const PAIRS = { tests: 400, short: 1500, long: 100_000 };
/** Sequences of one service and one seed. */
const PORTION = 100;

type Rooms = typeof ClientRoom & typeof KeyRoom & typeof PollerRoom & typeof ErrorsRoom;

type PolledService = Pick<EvaluationService, 'list' | 'storing'>;

/** Observable result of one poll of a listing. */
interface Seen {
  readonly events: readonly MonitorEvent[];
  readonly committed: unknown;
}

/** Polls sequences of listings by parsing what is new and by parsing everything: the results must be the same. */
export const partialParsing: Row = {
  name: 'partial-parsing',
  judges: ['src/client/', 'src/monitor/'],
  bug: [
    {
      what: 'a new item with the id of a known one is not noticed',
      file: 'client/listing/listing.ts',
      replace: [['twice: await this.#items.among(added)', 'twice: new Set<string>()']],
      notice: /read whole/,
    },
    {
      what: 'what an incomplete listing lacks is forgotten',
      file: 'domain/transition.ts',
      replace: [['missing.push(before.id);\n      return;', 'return;']],
      notice: /read whole/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE }) => {
    const wanted = PAIRS[!short ? 'long' : source === SOURCE ? 'tests' : 'short'];
    const room = async <Room>(file: string) => (await import(join(source, file))) as Room;
    const rooms: Rooms = {
      ...(await room<typeof ClientRoom>('client/client.ts')),
      ...(await room<typeof KeyRoom>('client/api-key.ts')),
      ...(await room<typeof PollerRoom>('monitor/poller.ts')),
      ...(await room<typeof ErrorsRoom>('monitor/errors.ts')),
    };
    const figures = { pairs: 0, unchanged: 0, partly: 0, whole: 0, failed: 0 };
    const now: Now = { step: undefined, keys: [] };
    for (let portion = 0; figures.pairs < wanted; portion += 1) {
      await using fake = await startService((_, response) => answer(now.step, response));
      const property = fc.asyncProperty(sequences, async (sequence) => {
        const client = openClient(fake.url, now, rooms);
        const counted = countAnswers(client, figures);
        const partly = await play(sequence, now, counted, rooms);
        await client.close();
        const whole = await play(sequence, now, naiveService(now, rooms.ApiError), rooms);
        figures.pairs += sequence.length - 1;
        for (const [index, seen] of partly.entries()) {
          const [one, other] = [shown(seen), shown(whole[index])];
          if (one !== other) throw new Error(`step ${index}: ${one}\nread whole: ${other}`);
        }
      });
      await fc.assert(property, { seed: seed + portion, numRuns: PORTION });
      if (portion % 50 === 49) print(`${figures.pairs} pairs`);
    }
    if (figures.partly * 10 < figures.pairs) throw new Error('hardly anything is read in part');
    return Object.entries(figures).map(([what, count]) => [what, String(count)]);
  },
};

/** Answers with the body of a step, or with 304. */
function answer(step: Step | undefined, response: ServerResponse): void {
  if (step === undefined) throw new Error('no step');
  const etag = `"${hash('sha256', step.body)}"`;
  const isKnown = response.req.headers['if-none-match'] === etag;
  response.writeHead(isKnown ? 304 : 200, step.hasEtag ? { etag } : {});
  // Each piece is a chunk, so the client reads it as one.
  for (const piece of isKnown ? [] : cut(step)) response.write(piece);
  response.end();
}

function cut({ body, cuts }: Step): readonly Buffer[] {
  const places = cuts.map((place) => place % (body.length + 1)).toSorted((a, b) => a - b);
  return [0, ...places].map((from, index) => body.subarray(from, places[index] ?? body.length));
}

function openClient(baseUrl: string, now: Now, rooms: Rooms) {
  return new rooms.HttpEvaluationService({
    service: {
      baseUrl,
      timeoutMs: 600_000,
      retries: 0,
      maxConcurrency: 2,
      maxRequestsPerSecond: 0,
      maxResponseBytes: 1024 * 1024,
      maxItems: 1000,
      authorities: undefined,
      proxyUrl: undefined,
    },
    keyOf: () => ({ env: 'KEY', value: now.keys.at(-1) ?? '' }),
    readKey: rooms.createApiKeyReader(systemClock),
    clock: systemClock,
    emit: () => {},
    version: '1.2.3',
  });
}

/** Counts how listings are read. */
function countAnswers(
  service: EvaluationService,
  figures: Record<'unchanged' | 'partly' | 'whole' | 'failed', number>,
): PolledService {
  return {
    list: async (...call) => {
      try {
        const found = await service.list(...call);
        const isPart = !found.unchanged && found.vanished !== undefined;
        figures[found.unchanged ? 'unchanged' : isPart ? 'partly' : 'whole'] += 1;
        return found;
      } catch (error) {
        figures.failed += 1;
        throw error;
      }
    },
    storing: (bytes) => service.storing(bytes),
  };
}

async function play(
  sequence: Sequence,
  now: Now,
  service: PolledService,
  rooms: Rooms,
): Promise<readonly Seen[]> {
  const store = memoryStore(rooms);
  const events: MonitorEvent[] = [];
  let time = 0;
  const poller = new rooms.Poller({
    service,
    store,
    clock: { ...systemClock, now: () => time, monotonic: () => time },
    emit: (event) => events.push(event),
    missingAfter: () => 2,
    maxIntervalMs: () => 60_000,
    shutdown: { waits: new AbortController().signal, requests: new AbortController().signal },
  });
  const seen: Seen[] = [];
  now.keys = ['the-first-key'];
  for (const step of sequence) {
    time += 1000;
    now.step = step;
    if (step.key !== undefined) now.keys = [...now.keys, step.key];
    store.breaks(step.commitFails);
    await poller.poll({ id: 'p', datasets: step.datasets }, { dueAt: time });
    seen.push({ events: events.splice(0), committed: store.committed() });
  }
  return seen;
}

/** Returns everything but what is said about failures besides their reasons. The order of fields does not matter. */
function shown(seen: Seen | undefined): string {
  return JSON.stringify(seen, (name, value: unknown) => {
    if (value instanceof Map) return [...value];
    if (name === 'failure') return (value as { reason?: string } | undefined)?.reason;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(
      Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
