import { z } from 'zod';
import { LOG_LEVELS } from '../domain/log-level.ts';
import {
  DEFAULT_LISTEN,
  parseBaseUrl,
  parseHostName,
  parseListen,
  parseProxyUrl,
} from './values/address.ts';
import {
  checked,
  choice,
  duration,
  flag,
  mapping,
  path,
  size,
  text,
  variableName,
  wholeNumber,
  wrongType,
  wrongValue,
} from './values/option-types.ts';
import { parseTimezone } from './values/timezone.ts';

// Rules that concern several options are in rules.ts: zod skips those of an object with any mistake in it.

const keySource = {
  api_key_file: path(
    'File that holds the API key, relative to this file. Read again before each request; white space around the key is dropped.',
  ).optional(),
  api_key_env: variableName('Environment variable that holds the API key, instead of a file.'),
};

const service = {
  base_url: checked(
    'the address of the Evaluation Service, such as https://evaluation.example.com',
    parseBaseUrl,
  ).meta({
    description:
      'Address of the Evaluation Service. http:// only to a loopback host, or with allow_http.',
    pattern: '^[hH][tT][tT][pP][sS]?://[^\\s\\\\?#/@]+(/[^\\s\\\\?#]*)?$',
  }),
  allow_http: flag(
    false,
    'Allow http:// to other hosts than loopback, although the key can be read on the way.',
  ),
  ...keySource,
  timeout: duration(
    ['10s', '100ms', '10m'],
    'Deadline of one attempt, its body included; waiting for a slot or the rate limit does not count.',
  ),
  retries: wholeNumber(
    [3, 0, 10],
    'Further attempts of a listing after the first. A single prompt is asked for once per try.',
  ),
  max_concurrency: wholeNumber([8, 1, 256], 'Requests in flight at any time.'),
  max_requests_per_second: z
    .number({ error: wrongValue('a number from 0 to 10000') })
    .min(0, { error: wrongValue('a number from 0 to 10000') })
    .max(10_000, { error: wrongValue('a number from 0 to 10000') })
    .prefault(10)
    .meta({
      description: 'Requests sent in any second, listings and details together. 0 is no limit.',
    }),
  max_response_size: size(
    ['64MiB', '1KiB', '256MiB'],
    'Largest body that is read, after decompression.',
  ),
  max_items: wholeNumber(
    [1_000_000, 1, 10_000_000],
    'Items of one listing; a listing with more is not read.',
  ),
  ca_file: path(
    'PEM certificates to trust instead of the usual authorities, relative to this file.',
  ).optional(),
  proxy_url: checked('an address', parseProxyUrl)
    .meta({
      description:
        'HTTP proxy. Proxies that the environment names are not used. With a proxy an http:// service needs allow_http.',
      pattern: '^[hH][tT][tT][pP][sS]?://[^\\s/?#\\\\]+/?$',
    })
    .optional(),
};

const timezone = () => checked('a time zone such as UTC or Europe/Berlin', parseTimezone);
const schedule = () => text('a cron expression', { isShown: true });

/** Longest id that the service accepts, in code points. */
const MAX_ID_LENGTH = 512;

const project = {
  id: text('the id of a project', { isShown: true })
    .refine((id) => Array.from(id).length <= MAX_ID_LENGTH, {
      error: ({ input }) =>
        `must have at most ${MAX_ID_LENGTH} characters, not ${Array.from(String(input)).length}`,
    })
    .refine((id) => id.isWellFormed(), {
      error: 'must be valid Unicode: it has half of a surrogate pair',
    })
    .refine((id) => id !== '.' && id !== '..', {
      error: ({ input }) => `must not be "${String(input)}"`,
    })
    .meta({ description: 'Id of the project at the service.', maxLength: MAX_ID_LENGTH }),
  schedule: schedule()
    .meta({ description: 'Cron expression for this project instead of the default.' })
    .optional(),
  timezone: timezone()
    .meta({ description: 'Time zone for this project instead of the default.' })
    .optional(),
  ...keySource,
  datasets: flag(false, "Also watch the project's datasets."),
};

const store = {
  path: path('SQLite database, relative to this file.')
    .refine((value) => !/(^|\/)postgres(ql)?:\//i.test(value), {
      error:
        'must be the path of a SQLite file; for PostgreSQL use postgres_url_file or postgres_url_env',
    })
    .prefault('data/evalwatch.db'),
  postgres_url_file: path(
    'File that holds the postgres:// address of a database, login included, relative to this file: PostgreSQL instead of path, for several workers.',
  )
    .refine((value) => !value.includes('://'), {
      error: 'must be the path of a file that contains the address, not the address itself',
    })
    .optional(),
  postgres_url_env: variableName(
    'Environment variable that holds the address of the database, instead of a file.',
  ),
  lease: duration(
    ['10s', '5s', '5m'],
    'With PostgreSQL: how long the projects of a worker that is not heard of wait for another one.',
  ),
  retention: duration(
    ['90d', '1s', '3650d'],
    'How long transitions, settled failures and removed projects are kept. Totals outlive it.',
  ),
};

const web = {
  listen: checked(`host:port, such as ${DEFAULT_LISTEN}`, parseListen)
    .prefault(DEFAULT_LISTEN)
    .meta({
      description: 'Address and port to serve HTTP on, such as 0.0.0.0:10570 or [::1]:10570.',
      pattern: '^(\\[[^\\]]+\\]|[^:\\[\\]]+):\\d{1,5}$',
    }),
  allowed_hosts: z
    .array(
      checked('a host name', parseHostName).meta({
        pattern: '^[\\w-]+(\\.[\\w-]+)*$',
        maxLength: 253,
      }),
      { error: wrongType('a list of host names') },
    )
    .prefault([])
    .meta({
      description:
        'Further names by which browsers may open evalwatch where it asks for neither TLS nor a login. Addresses, the host of listen, localhost and names without a dot need not be listed; nor names such as evalwatch.local where listen is no loopback address.',
    }),
  enable_lifecycle: flag(false, 'Allow POST /-/reload.'),
  config_file: path(
    "TLS and basic auth in the format of Prometheus' exporter-toolkit, relative to this file.",
  ).optional(),
};

const log = {
  level: choice(LOG_LEVELS)
    .prefault('info')
    .meta({ description: 'Lines below this level are not written.' }),
};

const A_PROJECT = 'a list of at least one project';

const root = {
  service: mapping(service).meta({ description: 'The Evaluation Service and how to ask it.' }),
  schedule: schedule().prefault('*/30 * * * * *').meta({
    description: 'Cron expression of 5 fields, or 6 with seconds first: when projects are polled.',
  }),
  timezone: timezone()
    .prefault('UTC')
    .meta({ description: 'IANA time zone in which schedules are read.' }),
  jitter: duration(['0s', '0s', '1h'], 'Spread of starts, chosen per project.'),
  missing_after: wholeNumber(
    [3, 1, 1000],
    'Complete listings in a row without a prompt before it counts as gone.',
  ),
  projects: z
    .array(mapping(project), {
      error: ({ input }) =>
        wrongType(input === undefined || input === null ? A_PROJECT : 'a list of projects')({
          input,
        }),
    })
    .min(1, { error: `must be ${A_PROJECT}` })
    .meta({ description: 'The projects to watch.' }),
  store: mapping(store).prefault({}).meta({ description: 'Where statuses are kept.' }),
  web: mapping(web).prefault({}).meta({ description: 'Metrics, health and the status page.' }),
  log: mapping(log).prefault({}).meta({ description: 'Log lines on stdout.' }),
};

/**
 * Schema of the configuration file (docs/specification.md#configuration-file), strict, with its defaults. Durations become
 * ms, sizes bytes. A section may be left empty: the caller puts an empty mapping in its place before parsing.
 */
export const fileSchema = mapping(root);

/** The file's content once parsed. */
export type ConfigFile = z.output<typeof fileSchema>;

/** The options of each section, `''` being the top level and `projects` one project. */
export const KEYS: Readonly<Record<string, readonly string[]>> = {
  '': Object.keys(root),
  service: Object.keys(service),
  projects: Object.keys(project),
  store: Object.keys(store),
  web: Object.keys(web),
  log: Object.keys(log),
};
