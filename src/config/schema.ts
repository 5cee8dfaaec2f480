import { z } from 'zod';
import { LOG_LEVELS } from '../domain/options.ts';
import { NOTIFY_KINDS, RECEIVER_TYPES } from '../domain/receiver.ts';
import {
  DEFAULT_LISTEN,
  parseBaseUrl,
  parseExternalUrl,
  parseHeartbeatUrl,
  parseHostName,
  parseListen,
  parsePromptUrl,
  parseProxyUrl,
} from './addresses.ts';
import {
  parsedText,
  choice,
  duration,
  durationOr,
  flag,
  mapping,
  path,
  size,
  text,
  variableName,
  wholeNumber,
  wrongType,
  wrongValue,
  butNot,
  parseTimezone,
} from './options.ts';
import type { Options } from './faults.ts';
import { isPattern } from './projects-files.ts';

// Rules for several options are in rules.ts, because zod skips the rules of an object that has any error.

const keySource = {
  api_key_file: path(
    'File with the API key, read before each request. White space around the key is ignored.',
  ).optional(),
  api_key_env: variableName('Environment variable with the API key, instead of a file.'),
};

/** An address without login, query and fragment. */
const HTTP_ADDRESS = '^[hH][tT][tT][pP][sS]?://[^\\s\\\\?#/@]+(/[^\\s\\\\?#]*)?$';

const service = {
  base_url: parsedText(
    'the address of the Evaluation Service, such as https://evaluation.example.com',
    parseBaseUrl,
  ).meta({
    description:
      'Address of the Evaluation Service. http:// only to a loopback host, or with allow_http.',
    pattern: HTTP_ADDRESS,
  }),
  allow_http: flag(
    false,
    'Allow http:// to hosts other than loopback, although the API key can then be read on the network.',
  ),
  ...keySource,
  timeout: duration(
    ['10s', '100ms', '10m'],
    'Time limit of one attempt with its body, without the wait for a slot or for the rate limit.',
  ),
  retries: wholeNumber(
    [3, 0, 10],
    'Further attempts to fetch a listing after the first one. They do not apply to single prompts.',
  ),
  max_concurrency: wholeNumber([8, 1, 256], 'Maximum number of requests in flight.'),
  max_requests_per_second: z
    .number({ error: wrongValue('a number from 0 to 10000') })
    .min(0, { error: wrongValue('a number from 0 to 10000') })
    .max(10_000, { error: wrongValue('a number from 0 to 10000') })
    .prefault(10)
    .meta({
      description:
        'Maximum number of requests in any second, for listings and single prompts together. 0 is no limit.',
    }),
  max_response_size: size(
    ['64MiB', '1KiB', '256MiB'],
    'Maximum size of a response body, after decompression.',
  ),
  max_items: wholeNumber(
    [1_000_000, 1, 10_000_000],
    'Maximum number of items in a listing. A larger listing is rejected.',
  ),
  ca_file: path(
    'PEM file with the certificates of the authorities to trust instead of the default ones.',
  ).optional(),
  proxy_url: parsedText('an address', parseProxyUrl)
    .meta({
      description:
        'HTTP proxy. Proxy variables of the environment are ignored. With a proxy, an http:// service needs allow_http.',
      pattern: '^[hH][tT][tT][pP][sS]?://[^\\s/?#\\\\]+/?$',
    })
    .optional(),
  prompt_url: parsedText(
    'an address such as https://evaluation.example.com/prompts/{prompt_id}',
    parsePromptUrl,
  )
    .meta({
      description:
        "Address of a prompt at the service's own pages, with {prompt_id} and, if needed, {project}, for links.",
      pattern:
        '^(?=.*\\{prompt_id\\})[hH][tT][tT][pP][sS]?://[^\\s\\\\?#/@{}]+[/?#]([^\\s\\\\{}]|\\{(prompt_id|project)\\})*$',
    })
    .optional(),
};

const timezone = () => parsedText('a time zone such as UTC or Europe/Berlin', parseTimezone);
const schedule = () => text('a cron expression', wrongValue);

const stateLimit = (status: string, [atFirst, max]: readonly [string, string]) =>
  durationOr(
    ['auto', 'off'],
    ['30m', '1s', '365d'],
    `How long a prompt may be ${status}: \`auto\` is learned (5m to ${max}; at first ${atFirst}), \`off\` sets no limit.`,
  );
const maxFailureRatio = () => {
  const error = wrongValue('a number from 0 to 0.8, or off');
  return z
    .union([z.number({ error }).min(0, { error }).max(0.8, { error }), z.literal('off')], { error })
    .meta({
      description: 'Share of the prompts that finish which may fail; `off` sets no objective.',
    });
};

const maxPending = () => stateLimit('PENDING', ['1h', '12h']);
const maxRunning = () => stateLimit('RUNNING', ['4h', '48h']);

const expect = {
  max_pending: maxPending().prefault('auto'),
  max_running: maxRunning().prefault('auto'),
  max_failure_ratio: maxFailureRatio().prefault(0.2),
};

/** The same options without defaults. */
const projectExpect = {
  max_pending: maxPending().optional(),
  max_running: maxRunning().optional(),
  max_failure_ratio: maxFailureRatio().optional(),
};

/** A name of letters, digits and few signs: that of a team becomes a label value, and Alertmanager routes by it. */
const shortName = (what: string) =>
  text(what, wrongValue).regex(/^[A-Za-z0-9_.-]{1,64}$/, {
    error: ({ input }) => `must be 1 to 64 letters, digits, _, . or -${butNot(input)}`,
  });

/** Maximum length of an id at the service, in code points. */
const MAX_ID_LENGTH = 512;

const timeOfMaintenance = {
  cron: schedule().meta({ description: 'When it begins: a cron expression.' }),
  timezone: timezone()
    .meta({ description: 'Time zone of cron instead of that of the project.' })
    .optional(),
  duration: duration(['1h', '1s', '31d'], 'How long it lasts.'),
  polls: choice(['stop', 'continue'])
    .prefault('stop')
    .meta({ description: '`continue` polls and stores, without alerts and messages.' }),
};

const maintenance = (description: string) =>
  z
    .array(mapping(timeOfMaintenance), { error: wrongType('a list of times of maintenance') })
    .prefault([])
    .meta({ description });

const project = {
  id: text('the id of a project', wrongValue)
    .refine((id) => Array.from(id).length <= MAX_ID_LENGTH, {
      error: ({ input }) =>
        `must have at most ${MAX_ID_LENGTH} characters, not ${Array.from(String(input)).length}`,
    })
    .refine((id) => id.isWellFormed(), {
      error: 'must be valid Unicode: it has half of a surrogate pair',
    })
    .refine((id) => !id.includes('\0'), { error: 'must not contain U+0000' })
    .refine((id) => id !== '.' && id !== '..', {
      error: ({ input }) => `must not be "${String(input)}"`,
    })
    .meta({ description: 'Id of the project at the service.', maxLength: MAX_ID_LENGTH }),
  schedule: schedule()
    .meta({ description: 'Cron expression for this project instead of the default.' })
    .optional(),
  idle_schedule: schedule()
    .meta({
      description: 'Cron expression for this project while it is idle, instead of the default.',
    })
    .optional(),
  timezone: timezone()
    .meta({ description: 'Time zone for this project instead of the default.' })
    .optional(),
  ...keySource,
  datasets: flag(false, "Also watch the project's datasets."),
  paused: flag(false, 'Do not poll the project, and raise no alert and send no message about it.'),
  maintenance: maintenance('Further times of maintenance of this project.'),
  team: shortName('the name of a team')
    .meta({ description: 'Team that is told: a label of every alert about the project.' })
    .optional(),
  expect: mapping(projectExpect)
    .meta({ description: 'Options of `expect` that are different for this project.' })
    .optional(),
};

/** A database address, as URL or as `key=value` pairs, in the place of the path of its file. */
const ADDRESS = /:\/\/|\b(?:host|hostaddr|user|password|dbname)\s*=|:[^/@]*@/i;

const isNoAddress = (value: string) => !ADDRESS.test(value);
const NOT_A_PATH = 'must be the path of a file that contains the address, not the address itself';

const store = {
  path: path('SQLite database.')
    .refine((value) => !/(^|\/)postgres(ql)?:\//i.test(value), {
      error:
        'must be the path of a SQLite file; for PostgreSQL use postgres_url_file or postgres_url_env',
    })
    .prefault('data/evalwatch.db'),
  postgres_url_file: path(
    'File with the postgres:// address of a database and its login, instead of path, for several workers.',
  )
    .refine(isNoAddress, { error: NOT_A_PATH })
    .optional(),
  postgres_url_env: variableName('Environment variable with this address, instead of a file.'),
  lease: duration(
    ['10s', '5s', '5m'],
    'PostgreSQL only: time after which other workers take over the projects of a silent one.',
  ),
  retention: duration(
    ['90d', '1s', '3650d'],
    'How long transitions, settled failures and removed projects are kept. Totals are kept longer.',
  ),
};

const web = {
  listen: parsedText(`host:port, such as ${DEFAULT_LISTEN}`, parseListen)
    .prefault(DEFAULT_LISTEN)
    .meta({
      description: 'Address and port to serve HTTP on, such as 0.0.0.0:10570 or [::1]:10570.',
      pattern: '^(\\[[^\\]]+\\]|[^:\\[\\]]+):\\d{1,5}$',
    }),
  allowed_hosts: z
    .array(
      parsedText('a host name', parseHostName).meta({
        pattern: '^[\\w-]+(\\.[\\w-]+)*$',
        maxLength: 253,
      }),
      { error: wrongType('a list of host names') },
    )
    .prefault([])
    .meta({
      description: 'Further host names that browsers may use if there is neither TLS nor a login.',
    }),
  external_url: parsedText(
    'the address at which people open evalwatch, such as https://evalwatch.example.com',
    parseExternalUrl,
  )
    .meta({
      description:
        'Address at which people open evalwatch, for links in alerts and messages. Its host is one of allowed_hosts.',
      pattern: HTTP_ADDRESS,
    })
    .optional(),
  enable_lifecycle: flag(false, 'Allow POST /-/reload and POST /-/poll.'),
  config_file: path(
    "File with TLS and logins, in the format of Prometheus' exporter-toolkit.",
  ).optional(),
};

const metrics = {
  experiments: wholeNumber(
    [0, 0, 100],
    'How many experiments of each project have series of their own, the newest ones that have not finished.',
  ),
};

const log = {
  level: choice(LOG_LEVELS)
    .prefault('info')
    .meta({ description: 'Lines below this level are not written.' }),
};

/** An address without login and fragment. */
const URL_PATTERN = '^[hH][tT][tT][pP][sS]?://[^\\s\\\\?#/@]+([/?][^\\s\\\\#]*)?$';

const heartbeat = {
  url: parsedText('an address', parseHeartbeatUrl)
    .meta({
      description:
        'Address that is requested after each minute in which every due poll was made. It is a secret.',
      pattern: URL_PATTERN,
    })
    .optional(),
  url_file: path('File with the address instead, read before each request.')
    .refine(isNoAddress, { error: NOT_A_PATH })
    .optional(),
};

/** An e-mail address with or without a name before it. */
const BARE_ADDRESS = '[^\\s<>@,;:/]+@[^\\s<>@,;:/]+';
const MAIL_ADDRESS = `^([^<>@\\r\\n]*<${BARE_ADDRESS}>|${BARE_ADDRESS})$`;
const mailAddress = () =>
  text('an e-mail address such as evalwatch@example.com').regex(new RegExp(MAIL_ADDRESS), {
    error: 'must be one e-mail address such as evalwatch@example.com',
  });

const listOf = <Item extends z.ZodType>(item: Item, what: string) =>
  z
    .array(item, { error: wrongType(`a list of ${what}`) })
    .min(1, { error: `must be a list of ${what}, not empty` });

const addressFile = (description: string) =>
  path(description).refine(isNoAddress, { error: NOT_A_PATH }).optional();

const receiver = {
  name: shortName('the name of the receiver').meta({
    description: 'Unique name: it stands in log lines, metrics and the store.',
  }),
  type: choice(RECEIVER_TYPES).meta({
    description:
      '`slack` is also for Mattermost, Rocket.Chat and Discord; `teams` for a workflow of Microsoft Teams.',
  }),
  url: parsedText('an address', parseHeartbeatUrl)
    .meta({
      description: '`webhook`: address that messages are posted to, if it contains no secret.',
      pattern: URL_PATTERN,
    })
    .optional(),
  url_file: addressFile('`webhook`, `slack`, `teams`: file with the address, which is a secret.'),
  url_env: variableName('Environment variable with this address, instead of a file.'),
  secret_file: path(
    '`webhook`: file with the secret that signs messages: `whsec_` and 24 to 64 bytes in Base64.',
  )
    .refine((value) => !value.startsWith('whsec_'), {
      error: 'must be the path of a file that contains the secret, not the secret itself',
    })
    .optional(),
  secret_env: variableName('Environment variable with this secret, instead of a file.'),
  smtp_url_file: addressFile(
    '`email`: file with the address of the mail server, such as smtps://user:password@mail.example.com.',
  ),
  smtp_url_env: variableName('Environment variable with this address, instead of a file.'),
  from: mailAddress()
    .meta({
      description: '`email`: address of the sender, such as `evalwatch <evalwatch@example.com>`.',
      pattern: MAIL_ADDRESS,
    })
    .optional(),
  to: listOf(mailAddress().meta({ pattern: MAIL_ADDRESS }), 'e-mail addresses')
    .max(100, { error: 'must have at most 100 addresses' })
    .meta({ description: '`email`: addresses of the recipients.' })
    .optional(),
  on: listOf(choice(NOTIFY_KINDS), NOTIFY_KINDS.join(', '))
    .prefault(['failed', 'stuck', 'down'])
    .meta({
      description:
        'What to tell: prompts that `failed`, `completed` or are `stuck`, experiments that `finished`, projects that are `down`.',
    }),
  teams: listOf(shortName('the name of a team'), 'names of teams')
    .meta({
      description:
        'Tell only of projects of these teams, and of those in projects; without both, of all.',
    })
    .optional(),
  projects: listOf(text('the id of a project', wrongValue), 'ids of projects')
    .meta({ description: 'Tell only of these projects, and of those of teams.' })
    .optional(),
};

const A_PROJECT = 'a list of at least one project';
const describeProjects = wrongType('a list of projects');
const describeNoProjects = wrongType(A_PROJECT);

/** Returns how to write a project that is given in another form, such as its id alone. */
function writeProject(input: unknown): string {
  if (input === undefined || input === null) return '';
  const id = typeof input === 'string' && PLAIN_ID.test(input) ? input : 'ID';
  return `: write \`- id: ${id}\``;
}

const PLAIN_ID = /^[a-z][\w-]{0,39}$/i;

const root = {
  service: mapping(service).meta({
    description: 'The Evaluation Service, and how to send requests to it.',
  }),
  schedule: schedule().prefault('*/30 * * * * *').meta({
    description:
      'When projects are polled: a cron expression of 5 fields, or 6 with seconds first.',
  }),
  idle_schedule: schedule()
    .meta({
      description:
        'When projects without a prompt that is PENDING or RUNNING are polled instead, to send fewer requests.',
    })
    .optional(),
  timezone: timezone().prefault('UTC').meta({ description: 'IANA time zone of the schedules.' }),
  jitter: duration(
    ['0s', '0s', '1h'],
    'Maximum delay of the start of a poll. Each project has its own delay, which stays the same.',
  ),
  maintenance: maintenance(
    'Times in which no alert is raised and no message is sent about any project, and by default none is polled.',
  ),
  missing_after: wholeNumber(
    [3, 1, 1000],
    'Number of complete listings in a row that lack a prompt before it counts as gone.',
  ),
  expect: mapping(expect).prefault({}).meta({
    description: 'What is normal for the prompts of every project; the alerts compare with it.',
  }),
  projects: z
    .array(mapping(project, writeProject), {
      error: ({ input }) =>
        input === undefined || input === null
          ? describeNoProjects({ input })
          : `${describeProjects({ input })}${writeProject(input)}`,
    })
    .min(1, { error: `must be ${A_PROJECT}` })
    .meta({ description: 'The projects to watch.' }),
  projects_files: z
    .array(
      path('').refine(isPattern, {
        error: 'can have * in the name of the file only, and no other wildcards',
      }),
      { error: wrongType('a list of paths') },
    )
    .prefault([])
    .meta({
      description:
        'Files with further projects, each a list such as `projects`: paths, or patterns such as `projects.d/*.yaml`.',
    }),
  store: mapping(store).prefault({}).meta({ description: 'Where statuses are stored.' }),
  web: mapping(web).prefault({}).meta({ description: 'Metrics, health and the status page.' }),
  metrics: mapping(metrics).prefault({}).meta({
    description: 'What /metrics has beside the series that it always has.',
  }),
  log: mapping(log).prefault({}).meta({ description: 'Log lines on stdout.' }),
  heartbeat: mapping(heartbeat).prefault({}).meta({
    description:
      'A sign of life for a monitor outside, which reports when it stops. Set at most one option; without one, nothing is requested.',
  }),
  notify: z
    .array(mapping(receiver), { error: wrongType('a list of receivers') })
    .prefault([])
    .meta({
      description:
        'Who is told by messages, with or without Prometheus: in a chat, by e-mail or by a webhook.',
    }),
};

/**
 * Strict schema of the configuration file (docs/specification.md#configuration-file), with its defaults. Durations are
 * parsed to ms, sizes to bytes. The caller replaces an empty section by an empty mapping before parsing.
 */
export const fileSchema = mapping(root);

/** The parsed content of the file. */
export type ConfigFile = z.output<typeof fileSchema>;

export const OPTIONS: Options = {
  keys: {
    '': Object.keys(root),
    service: Object.keys(service),
    expect: Object.keys(expect),
    projects: Object.keys(project),
    maintenance: Object.keys(timeOfMaintenance),
    'projects.maintenance': Object.keys(timeOfMaintenance),
    'projects.expect': Object.keys(projectExpect),
    store: Object.keys(store),
    web: Object.keys(web),
    metrics: Object.keys(metrics),
    log: Object.keys(log),
    heartbeat: Object.keys(heartbeat),
    notify: Object.keys(receiver),
  },
  unsupported: {
    'heartbeat.url_env': 'use url_file, the file that contains the address, or url',
  },
};
