import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { KnownRecord } from '../../../src/domain/record.ts';
import type { Kind, Status } from '../../../src/domain/status.ts';
import { createLogger, type Logger } from '../../../src/log/logger.ts';
import { EventLog, createRequestFailureLog } from '../../../src/log/lines.ts';
import { StoreError, type StoreFailureReason } from '../../../src/monitor/errors.ts';
import type { MonitorEvent, PollFailure } from '../../../src/monitor/events.ts';
import { configApplied } from '../../support/expected.ts';

type Line = Record<string, unknown>;

const MINUTE = 60_000;
let monotonic = 0;
let lines: Line[] = [];
let logger: Logger;
let observer: EventLog;

beforeEach(() => {
  monotonic = 1;
  lines = [];
  logger = createLogger({
    level: 'debug',
    destination: { write: (line) => lines.push(JSON.parse(line) as Line) },
    onFatalError: (error) => {
      throw error;
    },
  });
  // The wall clock stands still or runs backwards: no line may depend on it.
  observer = new EventLog(logger, {
    ...systemClock,
    now: () => -monotonic,
    monotonic: () => monotonic,
  });
});

/** Returns the lines of these events, without time and msg. */
function linesOf(...events: readonly MonitorEvent[]): Line[] {
  const before = lines.length;
  for (const event of events) observer.observe(event);
  return lines.slice(before).map(({ time, msg, ...line }) => {
    expect(typeof time).toBe('string');
    expect(typeof msg).toBe('string');
    return line;
  });
}

/** Returns the lines of these events as texts: level, event and the other fields in order. */
function textsOf(...events: readonly MonitorEvent[]): readonly string[] {
  return linesOf(...events).map(({ level, event, ...fields }) => {
    const texts = Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    return [level, event, ...texts].join(' ');
  });
}

type PollFinished = Extract<MonitorEvent, { type: 'poll.finished' }>;

function finished(fields: Partial<PollFinished> & { consecutive?: number }): PollFinished {
  const { consecutive = 0, ...rest } = fields;
  return {
    type: 'poll.finished',
    isStored: true,
    project: 'p',
    durationMs: 12,
    health: {
      up: consecutive === 0,
      consecutiveFailures: consecutive,
      reason: undefined,
      lastPollAt: undefined,
      lastSuccessAt: undefined,
    },
    failuresBefore: 0,
    failure: undefined,
    unchanged: false,
    prompts: 7,
    transitions: 0,
    changed: false,
    ...rest,
  };
}

const down: PollFailure = { reason: 'server_error', message: 'down', details: {} };

function failed(consecutive: number, failure: PollFailure = down, project = 'p'): PollFinished {
  return finished({ project, failure, consecutive, failuresBefore: consecutive - 1 });
}

describe('poll.completed', () => {
  it.each([
    [true, 'info'],
    [false, 'debug'],
  ])('with a stored change = %s is logged at level %s', (changed, level) => {
    expect(textsOf(finished({ changed, transitions: 2 }))).toEqual([
      `${level} poll.completed project="p" prompts=7 transitions=2 duration_ms=12`,
    ]);
  });
});

describe('poll.failed', () => {
  it('has the reason and the details of the response', () => {
    const failure: PollFailure = {
      reason: 'redirect',
      message: 'redirected',
      details: {
        url: 'https://evaluation.example.com/v2/projects/p/prompts/',
        statusCode: 302,
        location: 'https://elsewhere.example',
        detail: '[]',
      },
    };
    const fields = `project="p" reason="redirect" url="${failure.details.url}" status_code=302 location="${failure.details.location}" detail="[]"`;
    expect(textsOf(failed(1, failure))).toEqual([
      `error poll.failed ${fields} consecutive_failures=1 duration_ms=12 err={"type":"ApiError","message":"redirected"}`,
    ]);
    const caused = { ...failure, details: { cause: new Error('inner') } };
    expect(linesOf(failed(1, caused, 'q'))).toMatchObject([
      { err: { message: 'redirected', cause: { type: 'Error', message: 'inner' } } },
    ]);
  });

  it('is logged for the first of consecutive failures and then every 5 minutes, with their count', () => {
    const counts = [];
    for (let poll = 1; poll <= 61; poll += 1) {
      counts.push(...linesOf(failed(poll)).map((line) => line['consecutive_failures']));
      monotonic += 10_000;
    }
    expect(counts).toEqual([1, 31, 61]);
  });

  it('is logged for the first failure after each success', () => {
    const events = [failed(1), failed(2), finished({ failuresBefore: 2 }), failed(1), failed(2)];
    const told = linesOf(...events).filter((line) => line['event'] === 'poll.failed');
    expect(told.map((line) => line['consecutive_failures'])).toEqual([1, 1]);
  });

  it('is logged at once for failures that began before the daemon started', () => {
    expect(linesOf(failed(9), failed(10))).toHaveLength(1);
  });

  it('is limited for each project separately', () => {
    expect(linesOf(failed(1, down, 'a'), failed(1, down, 'b'), failed(2, down, 'a'))).toHaveLength(
      2,
    );
  });

  it('is logged again at once for a project that was removed from the configuration', () => {
    linesOf(failed(1, down, 'stays'), failed(1, down, 'leaves'));
    observer.observe(configApplied(['stays']));
    const told = linesOf(failed(2, down, 'stays'), failed(2, down, 'leaves'));
    expect(told.map((line) => line['project'])).toEqual(['leaves']);
  });
});

describe('config.reload_failed', () => {
  it('is logged unless it is the failure of before', () => {
    const failure = { type: 'config.reload_failed', reasons: ['no'] } as const;
    const told = linesOf({ ...failure, isRepeated: false }, { ...failure, isRepeated: true });
    expect(told).toMatchObject([
      { level: 'error', event: 'config.reload_failed', reasons: ['no'] },
    ]);
  });
});

describe('poll.recovered', () => {
  it('is logged with the first success after failures, with their count', () => {
    const told = linesOf(failed(4), finished({ failuresBefore: 4 }), finished({}));
    expect(told.slice(1)).toMatchObject([
      { level: 'info', event: 'poll.recovered', project: 'p', consecutive_failures: 4 },
      { event: 'poll.completed' },
      { event: 'poll.completed' },
    ]);
  });
});

describe('api.retried', () => {
  const retry = (attempt: number, project = 'p'): MonitorEvent => ({
    type: 'api.retry_scheduled',
    project,
    endpoint: 'list_prompts',
    attempt,
    delayMs: 250,
    reason: 'rate_limited',
    statusCode: 429,
  });

  it('has the endpoint, the failure and the delay', () => {
    expect(textsOf(retry(1))).toEqual([
      'warn api.retried project="p" endpoint="list_prompts" attempt=1 delay_ms=250 reason="rate_limited" status_code=429',
    ]);
  });

  it('is a warning for the first retry since the last success, and debug for the others', () => {
    const again = finished({ failuresBefore: 1 });
    const events = [retry(1), retry(2), failed(1), retry(1), again, retry(1), retry(2)];
    const told = linesOf(...events, retry(1, 'other')).filter(
      (line) => line['event'] === 'api.retried',
    );
    expect(told.map((line) => line['level']).join(' ')).toBe('warn debug debug warn debug warn');
  });
});

describe('status changes', () => {
  const transition = { name: 'n', from: 'RUNNING', to: 'FAILED', heldMs: 5 } as const;

  it.each<[Kind, string]>([
    ['prompt', 'prompt_id="i" prompt_name="n"'],
    ['dataset', 'dataset_id="i"'],
  ])('log a transition of a %s', (kind, names) => {
    const moved = { ...transition, id: 'i', kind, transitionId: 3 };
    expect(textsOf({ type: 'record.transition', project: 'p', transition: moved })).toEqual([
      `info ${kind}.transition project="p" ${names} from="RUNNING" to="FAILED" transition_id=3`,
    ]);
  });

  it.each<[Kind, Status, string]>([
    ['dataset', 'RUNNING', 'info'],
    ['prompt', 'RUNNING', 'warn'],
    ['prompt', 'COMPLETED', 'info'],
  ])('log a gone %s in %s at level %s', (kind, status, level) => {
    const record: KnownRecord = {
      id: 'i',
      status,
      statusRaw: undefined,
      name: 'n',
      timestamp: undefined,
      since: 1,
      missing: 3,
      gone: true,
    };
    const names = kind === 'prompt' ? 'prompt_id="i" prompt_name="n"' : 'dataset_id="i"';
    expect(textsOf({ type: 'record.gone', project: 'p', kind, record })).toEqual([
      `${level} ${kind}.gone project="p" ${names} status="${status}"`,
    ]);
  });

  it('log a baseline with the number of records by status', () => {
    const counts = { PENDING: 2, FAILED: 1 };
    const event: MonitorEvent = { type: 'listing.baseline', project: 'p', kind: 'prompt', counts };
    expect(textsOf(event)).toEqual([
      'info project.baseline project="p" kind="prompt" counts={"PENDING":2,"FAILED":1}',
    ]);
  });
});

it('experiment.finished is logged with the fields of its row', () => {
  const finish = {
    finishId: 7,
    at: 4000,
    project: 'p',
    experiment: 'e',
    counts: { PENDING: 0, RUNNING: 0, COMPLETED: 38, FAILED: 2, UNKNOWN: 0 },
    startedAt: 1000,
    endedAt: 3500,
  };
  expect(textsOf({ type: 'experiment.finished', finish })).toEqual([
    'info experiment.finished project="p" experiment="e" prompts={"COMPLETED":38,"FAILED":2,"UNKNOWN":0}' +
      ' first_move="1970-01-01T00:00:01.000Z" ended="1970-01-01T00:00:03.500Z" duration_seconds=2.5 finish_id=7',
  ]);
});

it('listing.paged is logged', () => {
  expect(textsOf({ type: 'listing.paged', project: 'p', kind: 'dataset' })).toEqual([
    'warn listing.paged project="p" kind="dataset"',
  ]);
});

describe('items.anomalous', () => {
  it.each([true, false])('is logged only if the anomaly changed: %s', (changed) => {
    const event: MonitorEvent = {
      type: 'items.anomalous',
      project: 'p',
      kind: 'prompt',
      reason: 'unknown_status',
      count: 30,
      indexes: [0, 4],
      changed,
    };
    const line =
      'warn items.anomalous project="p" kind="prompt" reason="unknown_status" count=30 indexes=[0,4]';
    expect(textsOf(event)).toEqual(changed ? [line] : []);
  });
});

describe('prompt.failed', () => {
  const failure: Extract<MonitorEvent, { type: 'prompt.failed' }> = {
    type: 'prompt.failed',
    project: 'p',
    transitionId: 9,
    promptId: 'i',
    promptName: 'n',
    errorInfo: null,
    errorMsgTruncated: false,
    reason: undefined,
    cause: '0123456789abcdef',
  };
  const errorInfo = { error_id: 'E1', error_msg: null };

  it.each<[Partial<typeof failure>, string]>([
    [{ errorInfo }, 'error_info={"error_id":"E1","error_msg":null}'],
    [
      { errorInfo, errorMsgTruncated: true },
      'error_info={"error_id":"E1","error_msg":null} error_msg_truncated=true',
    ],
    [
      { errorInfo, isUnusual: true },
      'error_info={"error_id":"E1","error_msg":null} error_info_unusual=true',
    ],
    [{ reason: 'not_found' }, 'error_info=null reason="not_found"'],
  ])('has the error_info and what is special about it: %j', (fields, text) => {
    const start = 'error prompt.failed project="p" prompt_id="i"';
    const rest = `transition_id=9 ${text} cause="0123456789abcdef"`;
    expect(textsOf({ ...failure, ...fields })).toEqual([`${start} prompt_name="n" ${rest}`]);
    expect(textsOf({ ...failure, ...fields, promptName: undefined })).toEqual([`${start} ${rest}`]);
  });
});

describe('store.commit_failed', () => {
  const commitFailed = (reason: StoreFailureReason): MonitorEvent => ({
    type: 'store.commit_failed',
    reason,
    error: new StoreError(reason, 'cannot'),
  });

  it('has the reason and the error', () => {
    expect(textsOf(commitFailed('full'))).toEqual([
      'error store.commit_failed reason="full" consecutive_failures=1 err={"type":"StoreError","message":"cannot"}',
    ]);
  });

  it('is logged once per minute and reason, with the count of failures', () => {
    const full = commitFailed('full');
    expect(linesOf(full, full, commitFailed('io'), full)).toHaveLength(2);
    monotonic += MINUTE - 1;
    expect(linesOf(full)).toEqual([]);
    monotonic += 1;
    expect(linesOf(full)).toMatchObject([{ reason: 'full', consecutive_failures: 5 }]);
  });

  it('restarts its count after a commit, and is still logged at most once a minute', () => {
    const committed = { type: 'store.committed', durationMs: 1 } as const;
    const events = [commitFailed('io'), commitFailed('io'), committed];
    expect(linesOf(...events, ...events, ...events)).toHaveLength(1);
    monotonic += MINUTE;
    expect(linesOf(...events, ...events)).toMatchObject([{ consecutive_failures: 1 }]);
  });
});

describe('request.failed', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Returns the number of failures and the message of each line since the last call. */
  const told = () =>
    lines.splice(0).map(({ event, level, failures, err }) => {
      expect({ event, level }).toEqual({ event: 'request.failed', level: 'error' });
      return [failures, err];
    });
  const of = (failures: number, message: string) => [
    failures,
    expect.objectContaining({ message }),
  ];

  it('is logged at once, and for further errors within a minute in one line', () => {
    const onBug = createRequestFailureLog(logger);
    onBug(new Error('first'));
    expect(told()).toEqual([of(1, 'first')]);
    onBug(new Error('second'));
    onBug(new Error('third'));
    vi.advanceTimersByTime(59_999);
    expect(told()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(told()).toEqual([of(2, 'third')]);
    onBug(new Error('fourth'));
    expect(told()).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(told()).toEqual([of(1, 'fourth')]);
  });
});

it('the lines of notifications name the receiver, once for each outage', () => {
  const receiver = 'search-chat';
  const message = 'prompts.failed';
  const reason = '403 invalid_token';
  expect(
    textsOf(
      { type: 'notification.sent', receiver, id: 'm', message },
      {
        type: 'notification.sent',
        receiver,
        id: 'm',
        message,
        doubt: 'recipients refused: 1 of 2',
      },
      { type: 'notification.failed', receiver, reason, statusCode: 403 },
      { type: 'notification.recovered', receiver, failuresBefore: 3 },
      { type: 'notification.store_failed', receiver, error: new StoreError('other', 'x') },
      { type: 'notification.given_up', receiver, project: 'p', message, count: 2, reason },
    ),
  ).toEqual([
    'info notification.sent receiver="search-chat" message_id="m" message="prompts.failed"',
    'warn notification.sent receiver="search-chat" message_id="m" message="prompts.failed" reason="recipients refused: 1 of 2"',
    'warn notification.failed receiver="search-chat" reason="403 invalid_token" status_code=403',
    'info notification.recovered receiver="search-chat" consecutive_failures=3',
    'error notification.store_failed receiver="search-chat" err={"type":"StoreError","message":"x"}',
    'error notification.given_up receiver="search-chat" project="p" message="prompts.failed" count=2 reason="403 invalid_token"',
  ]);
});
