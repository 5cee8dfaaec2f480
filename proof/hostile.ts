import { measureCosts } from './hostile/costs.ts';
import { cutEverywhere } from './hostile/cuts.ts';
import { countErrorIds } from './hostile/error-ids.ts';
import { besiege } from './hostile/siege.ts';
import type { Figures, Row } from './row.ts';

const PARTS = {
  costs: measureCosts,
  cuts: cutEverywhere,
  'error ids': countErrorIds,
  siege: besiege,
};

/** A service that attacks its client in every way it can: the daemon is not misled or held up, and reveals no key. */
export const hostile: Row = {
  name: 'hostile',
  judges: ['src/evaluation-api/', 'src/monitor/'],
  bug: [
    {
      what: 'a list that was cut is closed and used',
      part: 'cuts',
      file: 'evaluation-api/listing/item-scanner.ts',
      replace: [
        ['if (fault !== undefined) throw', 'if (fault !== undefined && items === 0) throw'],
      ],
      notice: /a partial listing was applied/,
    },
    {
      what: 'a connection that breaks is the end of the body',
      part: 'cuts',
      file: 'evaluation-api/sending/exchange.ts',
      replace: [
        [
          'stop(connectionError(error, scrub));',
          'if (reader) reader.end(); else stop(connectionError(error, scrub));',
        ],
      ],
      notice: /lying length, FIN, cut at byte/,
    },
    {
      what: 'redirects are followed',
      part: 'siege',
      file: 'evaluation-api/sending/dispatcher.ts',
      replace: [
        [
          "import { Pool, ProxyAgent, type Dispatcher } from 'undici';",
          "import { Agent, interceptors, Pool, ProxyAgent, type Dispatcher } from 'undici';",
        ],
        [
          'return new Pool(origin, { ...pooling, connect: tls });',
          'return new Agent({ ...pooling, connect: tls }).compose(interceptors.redirect({ maxRedirections: 1 }));',
        ],
      ],
      notice: /connections elsewhere/,
    },
    {
      what: 'the deadline ends with the headers',
      part: 'siege',
      file: 'evaluation-api/sending/exchange.ts',
      replace: [
        [
          'head = { statusCode, headers: responseHeaders };',
          'head = { statusCode, headers: responseHeaders };\n        deadline.clear();',
        ],
      ],
      notice: /ms too long/,
    },
    {
      what: 'the chunks of a body are kept until its end',
      part: 'costs',
      file: 'evaluation-api/sending/exchange.ts',
      replace: [
        ['memory.use(chunk);', 'memory.use(chunk);\n((head as any).chunks ??= []).push(chunk);'],
      ],
      notice: /memory grew/,
    },
    {
      what: 'each anomaly is kept',
      part: 'costs',
      file: 'evaluation-api/listing/anomaly-counter.ts',
      replace: [
        [
          'group.count += 1;',
          'group.count += 1;\n(group as any).each = [(group as any).each, { reason, index }, wordsOf(identity), wordsOf(identity)];',
        ],
      ],
      notice: /memory grew/,
    },
    {
      what: 'long work gives nobody a turn',
      part: 'costs',
      file: 'monitor/step-queue.ts',
      replace: [['left -= job.bytes;', '']],
      notice: /the event loop was held up/,
    },
    {
      what: 'a compressed body may be 40 times as large',
      part: 'cuts',
      file: 'evaluation-api/sending/body.ts',
      replace: [
        [
          'if (bytes > maxBytes) throw',
          "if (bytes > maxBytes * (headers['content-encoding'] === undefined ? 1 : 40)) throw",
        ],
      ],
      notice: /gzip: not too large/,
    },
    {
      what: 'each error_id has a series',
      part: 'error ids',
      file: 'store/sqlite/sql/error-totals.ts',
      replace: [['< ${MAX_ERROR_LABELS}', '< 1000000']],
      notice: /series of one project/,
    },
    {
      what: 'an error_id has its place for ever',
      part: 'error ids',
      file: 'store/sqlite/sql/pruning.ts',
      replace: [['WHERE last_seen_at < :before', 'WHERE last_seen_at < 0']],
      notice: /error_ids were given up/,
    },
  ],
  run: async (options) => {
    const figures: Figures[] = [];
    for (const [name, run] of Object.entries(PARTS)) {
      if (name === (options.part ?? name)) figures.push(await run(options));
    }
    return figures.flat();
  },
};
