import { DURATION_PATTERN } from '../src/domain/options.ts';
import { configJsonSchema } from './configuration-schema.ts';
import { OVERRIDES } from '../src/config/load.ts';
import { SIZE_PATTERN } from '../src/config/options.ts';

interface Option {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: string | number | boolean | readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly anyOf?: readonly Option[];
  readonly properties?: Readonly<Record<string, Option>>;
  readonly items?: Option;
  readonly required?: readonly string[];
}

const schema = configJsonSchema() as Option;

function typeOf(option: Option): string {
  if (option.enum !== undefined) return option.enum.map((value) => `\`${value}\``).join(', ');
  if (option.properties !== undefined) return 'mapping';
  if (option.anyOf !== undefined) return option.anyOf.map(typeOf).join(' or ');
  if (option.const !== undefined) return `\`${option.const}\``;
  if (option.pattern === DURATION_PATTERN) return 'duration';
  const words = /^\^\(([a-z|]+)\)\$\|/.exec(option.pattern ?? '')?.[1];
  if (words !== undefined)
    return `${words
      .split('|')
      .map((word) => `\`${word}\``)
      .join(', ')} or duration`;
  if (option.pattern === SIZE_PATTERN) return 'size';
  const range = option.minimum === undefined ? '' : `, ${option.minimum} to ${option.maximum}`;
  if (option.type === 'integer') return `whole number${range}`;
  if (option.type === 'number') return `number${range}`;
  if ([option.type].flat().includes('array')) return 'list';
  if (option.type === 'boolean') return '`true` or `false`';
  return 'text';
}

function row(name: string, option: Option, isRequired: boolean): string {
  const preset = isRequired
    ? 'required'
    : option.default === undefined
      ? ''
      : `\`${typeof option.default === 'object' ? JSON.stringify(option.default) : option.default}\``;
  const cells = [`\`${name}\``, typeOf(option), preset, option.description ?? ''];
  return `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
}

function table(section: Option, isNested: (option: Option) => boolean): string {
  const options = Object.entries(section.properties ?? {}).filter(([, each]) => !isNested(each));
  const rows = options.map(([name, each]) =>
    row(name, each, section.required?.includes(name) ?? false),
  );
  return ['| option | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

const hasOptions = (option: Option) => (option.items ?? option).properties !== undefined;
const sections = Object.entries(schema.properties ?? {})
  .filter(([, each]) => hasOptions(each))
  .map(
    ([name, each]) =>
      `\n## ${name}\n\n${each.description}${each.items ? ' Each has:' : ''}\n\n${table(each.items ?? each, () => false)}\n`,
  );
const overrides = OVERRIDES.map(
  ({ name, section, key }) => `| \`${name}\` | \`${section}.${key}\` |`,
);

/** Returns docs/configuration.md, made from the JSON Schema. */
export function configurationDocument(): string {
  return `# Configuration

<!-- Made from the schema by npm run generate. -->

Start with the required options:

\`\`\`yaml
service:
  base_url: https://evaluation.example.com # the address in front of /v2
  api_key_file: ../secrets/evaluation_api_key
projects:
  - id: checkout-bot
\`\`\`

Then check the file. This names each error with its line, tries each project once at the service, and says what is in force:

\`\`\`sh
export EVALWATCH_CONFIG=$PWD/etc/evalwatch.yaml
evalwatch check --connect
\`\`\`

**Which file?** The daemon and each command read the one that \`--config\` names; without it, the one that the variable \`EVALWATCH_CONFIG\` names; without both, \`config/evalwatch.yaml\` below the current directory. The image sets the variable to \`/etc/evalwatch/evalwatch.yaml\`.

**Which option?** To

- poll more or less often: \`schedule\` and \`idle_schedule\`, which are [cron expressions](specification.md#cron-expressions);
- stop polls, alerts and messages: \`paused\` until you remove it, \`maintenance\` at set times: \`0 18 * * 5\` begins each Friday at 18:00, \`0 18 4 12 *\` on 4 December ([rules](specification.md#pauses)); \`check\` prints the next one;
- be told without Prometheus: \`notify\` ([set it up](notifications.md)), \`heartbeat\` for evalwatch itself ([set it up](alerting.md#the-heartbeat-of-evalwatch));
- say what is normal: \`expect\`; limits are [learned](specification.md#learned-limits) until you set them;
- open it to other machines: \`web.listen\`, with [TLS and a login](web-configuration.md);
- tell each team of its own projects: \`team\`, for [messages](notifications.md#what-is-told) and [alerts](alerting.md#teams);
- keep projects in files of their own: \`projects_files\` ([rules](specification.md#projects-files));
- run several workers: \`store.postgres_url_file\` instead of \`store.path\` ([scaling](scaling.md)).

For example:

\`\`\`yaml
timezone: Europe/Berlin
idle_schedule: '*/5 * * * *' # every 5 minutes while no prompt waits or runs
maintenance: [{ cron: '0 2 * * 0', duration: 4h }] # no polls and alerts early on Sunday
projects:
  - id: checkout-bot
    team: search
    schedule: '*/10 * * * * *' # every 10 seconds
    expect: { max_running: 30m, max_failure_ratio: 0.05 }
\`\`\`

For all options:

- **Keys**: each project needs one of \`api_key_file\` and \`api_key_env\`, its own or that of \`service\`.
- **Values**: write durations as \`500ms\`, \`10s\`, \`5m\`, \`90d\` or \`1h30m\`, and sizes as \`512KiB\` or \`64MiB\`. Relative paths begin at the directory of the file. An empty section has its defaults; an unknown key is an error.
- **Reload**: SIGHUP applies the file as a whole or changes nothing, and \`run --watch-config\` does so when the file changes ([how](operations.md#change-the-configuration)). \`store\`, \`web.listen\`, \`web.config_file\`, and turning TLS on or off need a restart.
- **In force**: \`evalwatch check --print\` prints the file with all defaults. [config/evalwatch.yaml](../config/evalwatch.yaml), which \`evalwatch init FILE\` writes, has every option with a comment. Editors can use [its schema](../config/evalwatch.schema.json).

## Top level

${table(schema, hasOptions)}
${sections.join('')}
## Environment

These variables override options of the file. An empty one counts as unset. \`EVALWATCH_STORE_PATH\` has no effect if the file names a PostgreSQL database.

| variable | overrides |
| --- | --- |
${overrides.join('\n')}
`;
}
