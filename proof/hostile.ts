import { cutEverywhere } from './hostile/cuts.ts';
import { besiege } from './hostile/siege.ts';
import type { Figures, Row } from './row.ts';

const PARTS = {
  cuts: cutEverywhere,
  siege: besiege,
};

/** A service that attacks its client in every way it can: the daemon is not misled or held up, and reveals no key. */
export const hostile: Row = {
  name: 'hostile',
  judges: ['src/client/', 'src/monitor/'],
  bug: [
    {
      what: 'a list that was cut is closed and used',
      part: 'cuts',
      file: 'client/listing/scanner.ts',
      replace: [
        ['if (fault !== undefined) throw', 'if (fault !== undefined && this.#count === 0) throw'],
      ],
      notice: /a partial listing was applied/,
    },
    {
      what: 'a connection that breaks is the end of the body',
      part: 'cuts',
      file: 'client/exchange.ts',
      replace: [
        [
          'this.stop(connectionError(error, this.#get.scrub));',
          'if (this.#body) this.#body.end(); else this.stop(connectionError(error, this.#get.scrub));',
        ],
      ],
      notice: /lying length, FIN, cut at byte/,
    },
    {
      what: 'redirects are followed',
      part: 'siege',
      file: 'client/connections.ts',
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
      notice: /requests elsewhere/,
    },
    {
      what: 'failing projects are polled like healthy ones',
      part: 'siege',
      file: 'client/client.ts',
      replace: [["isFailing || number > 1 ? 'failing' : 'healthy'", "'healthy'"]],
      notice: /a healthy poll was/,
    },
    {
      what: 'the deadline ends with the headers',
      part: 'siege',
      file: 'client/exchange.ts',
      replace: [
        [
          'this.#head = { statusCode, headers };',
          'this.#head = { statusCode, headers };\n    this.#deadline?.cancel();',
        ],
      ],
      notice: /a poll of .* has no end/,
    },
    {
      what: 'the chunks of all bodies are kept',
      part: 'siege',
      file: 'client/exchange.ts',
      replace: [
        [
          'this.#chunks += 1;',
          'this.#chunks += 1;\n((globalThis as any).all ??= []).push(Buffer.alloc(8 * chunk.length, 1));',
        ],
      ],
      notice: /memory grew/,
    },
    {
      what: 'each anomaly is kept',
      part: 'siege',
      file: 'client/listing/listing.ts',
      replace: [
        [
          'group.count += 1;',
          'group.count += 1;\n(group as any).each = [(group as any).each, { reason, index }, new Uint32Array(8), new Uint32Array(8)];',
        ],
      ],
      notice: /memory grew/,
    },
    {
      what: 'a file that was read stays open',
      part: 'siege',
      file: 'files/read-file.ts',
      replace: [
        ['import { readFileSync,', 'import { openSync, readFileSync,'],
        ['readFileSync(path)', "readFileSync(openSync(path, 'r'))"],
      ],
      notice: /a leak: open files/,
    },
    {
      what: 'an item of a long listing takes half a second',
      part: 'siege',
      file: 'client/listing/listing.ts',
      replace: [
        [
          'const id = usableId(',
          'const end = index === 50_000 ? process.threadCpuUsage().user + 500_000 : 0;\nif (end > 0) while (process.threadCpuUsage().user < end);\nconst id = usableId(',
        ],
      ],
      notice: /the event loop was held up/,
    },
    {
      what: 'each error_id has a series',
      part: 'siege',
      file: 'store/failures.ts',
      replace: [['< ${MAX_ERROR_LABELS}', '< 1000000']],
      notice: /series of one project/,
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
