import { describe, expect, it } from 'vitest';
import { createLogger, type Destination, type LoggerOptions } from '../../../src/log/logger.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { LOG_LEVELS } from '../../../src/domain/options.ts';

function setUp(options: Partial<LoggerOptions> = {}) {
  const texts: string[] = [];
  const logger = createLogger({
    level: 'debug',
    destination: { write: (line) => texts.push(line) },
    onFatalError: (error) => {
      throw error;
    },
    ...options,
  });
  const lines = () => texts.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { logger, texts, lines };
}

describe('a log line', () => {
  it('is JSON with level, time, event, fields and msg, and nothing else', () => {
    const { logger, texts, lines } = setUp();
    logger.warn({ event: 'some.event', project: 'p', reason: undefined, none: null }, 'Text');
    const [line] = lines();
    expect(texts[0]?.endsWith('}\n')).toBe(true);
    expect(line).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      event: 'some.event',
      project: 'p',
      none: null,
      msg: 'Text',
    });
  });

  it.each(LOG_LEVELS)('names its level %s as a word', (level) => {
    const { logger, lines } = setUp();
    logger[level]({ event: 'e' }, 'm');
    expect(lines()[0]?.['level']).toBe(level);
  });

  it('escapes control characters and line separators in its fields', () => {
    const { logger, texts, lines } = setUp();
    const nasty = 'a\nb\r\u0000"\\\u0085\u009b\u2028\u2029\u202e\u{e0001} 😀';
    logger.info({ event: 'e', prompt_name: nasty }, 'm');
    // Readers do not all agree on what ends a line.
    expect(texts[0]?.trimEnd().split(/[^ -~\u{1f600}]/u)).toHaveLength(1);
    expect(lines()[0]?.['prompt_name']).toBe(nasty);
  });
});

describe('an error', () => {
  it('is logged with type, message, code and causes', () => {
    const { logger, lines } = setUp();
    const system = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    logger.error({ event: 'e', err: new StoreError('full', 'cannot write', system) }, 'm');
    expect(lines()[0]?.['err']).toEqual({
      type: 'StoreError',
      message: 'cannot write',
      cause: { type: 'Error', message: 'no space', code: 'ENOSPC' },
    });
  });

  it.each([[new TypeError('oops')]])('is logged with its stack if it is a bug: %o', (err) => {
    const { logger, lines } = setUp();
    logger.error({ event: 'e', err }, 'm');
    expect(lines()[0]?.['err']).toMatchObject({
      type: err.name,
      stack: expect.stringContaining('logger.test.ts'),
    });
  });

  it('is logged without its stack if it is none', () => {
    const code = 'ECONNREFUSED';
    const { logger, lines } = setUp();
    logger.error({ event: 'e', err: Object.assign(new Error('oops'), { code }) }, 'm');
    expect(lines()[0]?.['err']).toEqual({ type: 'Error', message: 'oops', code });
  });

  it('is logged with 4 causes even if it is its own cause', () => {
    const { logger, texts } = setUp();
    const error = new Error('round');
    error.cause = error;
    logger.error({ event: 'e', err: error }, 'm');
    expect(texts[0]?.match(/"message":"round"/g)).toHaveLength(1 + 4);
  });

  it('is cut if its text is huge, not through a character', () => {
    const { logger, texts } = setUp();
    logger.error({ event: 'e', err: new Error(`x${'😀'.repeat(1_000_000)}`) }, 'm');
    expect(texts[0]?.length).toBeLessThan(10_000);
    expect(texts[0]).not.toMatch(/\\u[dD][89a-fA-F]/);
  });
});

describe('the log level', () => {
  it('suppresses lines of lower levels and can be changed at run time', () => {
    const { logger, lines } = setUp({ level: 'warn' });
    logger.info({ event: 'lost' }, 'm');
    logger.setLevel('info');
    logger.info({ event: 'seen' }, 'm');
    logger.debug({ event: 'lost' }, 'm');
    expect(lines().map((line) => line['event'])).toEqual(['seen']);
  });
});

it('counts the lines that are written, by level', () => {
  const { logger } = setUp({ level: 'info' });
  logger.warn({ event: 'e' }, 'm');
  logger.debug({ event: 'e' }, 'm');
  logger.error({ event: 'e' }, 'm');
  expect(logger.written).toEqual({ debug: 0, info: 0, warn: 1, error: 1 });
});

describe('a destination that fails', () => {
  it('is reported once and not written again, and its lines are not counted', () => {
    let tries = 0;
    const destination: Destination = {
      write: () => {
        tries += 1;
        throw Object.assign(new Error('broken pipe'), { code: 'EPIPE' });
      },
    };
    const deaths: Error[] = [];
    const { logger } = setUp({
      destination,
      onFatalError: (error) => {
        deaths.push(error);
        logger.error({ event: 'daemon.dying', err: error }, 'm');
      },
    });
    logger.info({ event: 'e' }, 'm');
    logger.info({ event: 'e' }, 'm');
    expect(deaths.map((error) => error.message)).toEqual(['broken pipe']);
    expect(tries).toBe(1);
    expect(logger.written.info).toBe(0);
  });
});
