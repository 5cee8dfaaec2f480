import { createHash } from 'node:crypto';
import type { Kind } from '../../../src/domain/status.ts';
import type * as KnownRoom from '../../../src/store/postgres/sql/known.ts';
import type * as CommitRoom from '../../../src/store/postgres/sql/poll-commit.ts';
import { builtQueries } from './built-queries.ts';
import { failureStatements } from './failures.ts';
import { knownStatement, pollStatements } from './polls.ts';
import { pruningStatements } from './pruning.ts';
import { queryStatements } from './queries.ts';
import { snapshotStatements } from './snapshots.ts';
import type { Run, Statements } from './statement.ts';
import type { Tables } from './tables.ts';
import { workerStatements } from './workers.ts';

/**
 * Names of the statements of src/store/postgres by the digest of their text. A changed statement has no function: change the
 * function, then the digest. The digest of a query that is built from conditions is that of the text around them.
 */
const DIGESTS: Readonly<Record<string, string>> = {
  baae7c475b2f: 'causes',
  d616a1feee51: 'claim',
  '180fa1036506': 'claim_failures',
  '53a3df61eb55': 'commit_poll',
  c69cc5e9dead: 'configure_projects',
  c08037062341: 'confirm_projects',
  a85a9780d5c5: 'delete_expired',
  bd9f4cd475b3: 'durations',
  f274cb5fae01: 'event_numbers',
  '39386bcb27aa': 'event_settlements',
  '30e66a215124': 'event_transitions',
  '9d4c0d1e18a0': 'event_writers',
  '947748348980': 'owned',
  '71c23d16159d': 'failing_projects',
  '182432094f6e': 'failure_counts',
  ed3d667f36a4: 'failures',
  b00b060cdb12: 'find_schema',
  '1973159fa94b': 'first_left_out',
  '50bc98ed204e': 'flush_health',
  d297bd78abee: 'grant',
  d299ae308a90: 'join',
  '3176db82d392': 'known',
  '82a3ec579feb': 'leave',
  '08e802b356c8': 'load_health',
  '71a5bbde9de2': 'move_counts',
  '22666bced7d6': 'next_epoch',
  '96775c4420f4': 'oldest_others',
  d9884a07209e: 'outdated_projects',
  '43e071d08530': 'owned_projects',
  '40a221d150fe': 'owned_stamps',
  b6db7e7c5e67: 'owner',
  '9b5eeb274598': 'postpone_failure',
  e1b6b8490580: 'projects',
  '1b91dfde274d': 'prune_durations',
  '73315711b90c': 'prune_error_totals',
  c6697dc7d87b: 'prune_keys',
  '00495e550746': 'prune_projects',
  c9373facce89: 'prune_records',
  c025f6e0225b: 'prune_transitions',
  '5b77f79e0573': 'prune_waste',
  '9128514fa5e8': 'prune_waste_durations',
  '078c0e64e921': 'prune_waste_error_totals',
  '2d6993e3be33': 'read_schema',
  cec1fc8fede2: 'refusal',
  '7b251f27b9a0': 'release',
  '127e0dc80d84': 'renew',
  '80c302043641': 'resolve_commit',
  '7dc64f6cf644': 'settle_failure',
  c7c4beb5c835: 'size',
  '6a72fcead083': 'snapshot',
  '788e63d87cbf': 'statuses_newest',
  '18544bee6b91': 'statuses_oldest',
  d4675de4d47c: 'transitions',
  '13a4fe116be5': 'workers',
};

/** Kinds of records for which knownQuery builds a statement. */
const KNOWN_KINDS: readonly (readonly Kind[])[] = [
  [],
  ['prompt'],
  ['dataset'],
  ['prompt', 'dataset'],
];

/** Functions of the sources that build statements. */
export type BuiltStatements = Pick<typeof KnownRoom, 'knownQuery'> &
  Pick<typeof CommitRoom, 'commitStatement'>;

/** Returns a function that finds the function of a statement by its text. */
export function createStatements(
  tables: Tables,
  { knownQuery, commitStatement }: BuiltStatements,
): (text: string) => Run {
  const statements: Statements = {
    ...pollStatements(tables),
    ...workerStatements(tables),
    ...failureStatements(tables),
    ...snapshotStatements(tables),
    ...queryStatements(tables),
    ...pruningStatements(tables),
  };
  const built: Readonly<Record<string, (conditions: string) => Run>> = builtQueries(tables);
  const known = new Map<string, Run>();
  for (const kinds of KNOWN_KINDS) {
    const choices = [new Set<Kind>(), new Set(kinds), ...kinds.map((kind) => new Set([kind]))];
    for (const some of choices) {
      const only = new Map([...some].map((kind) => [kind, []]));
      const { text } = knownQuery('', kinds, only).statement;
      known.set(
        text,
        knownStatement(tables, kinds, (kind) => some.has(kind)),
      );
    }
  }
  expectDigest('known', [...known.keys()]);
  const commits = new Set(everyChoice().map((choice) => commitStatement(choice).text));
  expectDigest('commit_poll', [...commits]);

  function find(text: string): Run {
    const isKnown = known.get(text);
    if (isKnown !== undefined) return isKnown;
    const name = commits.has(text) ? 'commit_poll' : DIGESTS[digestOf(text)];
    const whole = statements[name ?? ''];
    if (whole !== undefined) return whole;
    const parts = takeApart(text);
    const query = built[DIGESTS[digestOf(parts?.around ?? text)] ?? ''];
    if (query === undefined) throw new TypeError(unknown(parts?.around ?? text));
    return query(parts?.conditions ?? '');
  }

  const found = new Map<string, Run>();
  return (text) => {
    let run = found.get(text);
    if (run === undefined) found.set(text, (run = find(text)));
    return run;
  };
}

/** @throws {TypeError} if the texts of a statement are not those for which there is a function */
function expectDigest(name: string, texts: readonly string[]): void {
  const all = texts.join('\n');
  if (DIGESTS[digestOf(all)] !== name) throw new TypeError(unknown(all));
}

/** Returns every choice of the parts of a commit. */
function everyChoice() {
  const either = [false, true];
  return either.flatMap((hasNew) =>
    either.flatMap((hasFailures) =>
      either.map((hasDurations) => ({ hasNew, hasFailures, hasDurations })),
    ),
  );
}

/** Returns the conditions of a built query, and the text around them. */
function takeApart(text: string) {
  const places = normal(text).replaceAll(/\$\d+/g, '?');
  const [, head, conditions = '', tail] =
    /^(.*?)(?: WHERE (.*?))?( ORDER BY .*)$/.exec(places) ?? [];
  return head === undefined || tail === undefined ? undefined : { around: head + tail, conditions };
}

function digestOf(text: string): string {
  return createHash('sha256').update(normal(text)).digest('hex').slice(0, 12);
}

function normal(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function unknown(text: string): string {
  return `the model has no function for the statement ${digestOf(text)}: ${normal(text)}`;
}
