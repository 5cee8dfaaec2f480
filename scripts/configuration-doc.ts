import { DURATION_PATTERN } from '../src/domain/options.ts';
import { configJsonSchema } from '../src/config/json-schema.ts';
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

evalwatch reads one YAML file. \`evalwatch init\` writes [one](../config/evalwatch.yaml) that has every option with a comment; or start with the required ones:

\`\`\`yaml
service:
  base_url: https://evaluation.example.com
  api_key_file: ../secrets/evaluation_api_key
projects:
  - id: checkout-bot
\`\`\`

\`evalwatch check\` validates a file and prints the schedule and the limits of each project, with \`--verbose\` also when it is polled next; with \`--connect\` it also tries each project once at the service. Editors can use [config/evalwatch.schema.json](../config/evalwatch.schema.json).

- **Required** are \`service.base_url\`, at least one project, and one source of the API key for each project: \`api_key_file\` or \`api_key_env\`, in the project or in \`service\`, and not both in one place.
- **Errors**: an unknown key, a wrong type, a duplicate project and a bad cron expression are errors. All errors are reported at once, with \`file:line:column\`.
- **Values**: write durations as \`500ms\`, \`10s\`, \`5m\`, \`1h\`, \`90d\` or \`1h30m\`, and sizes as \`512KiB\` or \`64MiB\`. Relative paths are resolved against the directory of the file. An empty section has its defaults.
- **Schedules** are [cron expressions](specification.md#cron-expressions); daylight saving affects them [as specified](specification.md#schedules).
- **Store**: a SQLite file (\`path\`), or a PostgreSQL database for several workers ([scaling.md](scaling.md)), not both.
- **Heartbeat**: the address of a [dead man's switch](alerting.md#the-heartbeat-of-evalwatch), in this file or in a file of its own.
- **Messages**: whom evalwatch tells by itself, in a chat, by e-mail or by a webhook ([notifications.md](notifications.md)). Addresses and secrets are in files, which are read before each attempt, or in environment variables.
- **Expectations**: the alerts compare each project with its \`expect\`; the rules file of Prometheus needs no change. [Learned limits](specification.md#learned-limits) follow the durations of the project's own prompts.
- **Reload**: send SIGHUP to the process, or \`POST /-/reload\` if \`web.enable_lifecycle\` is on. \`evalwatch run --watch-config\` reloads by itself when the file changes. \`store\`, \`web.listen\`, \`web.config_file\`, and turning TLS on or off need a restart: a reload that changes one of them is rejected and changes nothing ([rules](specification.md#reload)).

## Top level

${table(schema, hasOptions)}
${sections.join('')}
## Environment

These environment variables override options of the file. An empty variable counts as unset. \`EVALWATCH_STORE_PATH\` has no effect if the file names a PostgreSQL database. \`EVALWATCH_CONFIG\` names the file if \`--config\` does not.

| variable | overrides |
| --- | --- |
${overrides.join('\n')}
`;
}
