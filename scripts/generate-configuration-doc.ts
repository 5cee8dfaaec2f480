/** Writes docs/configuration.md from the JSON Schema; with --check only tells, by its exit code, whether it is current. */
import { DURATION_PATTERN } from '../src/config/values/duration.ts';
import { configJsonSchema } from '../src/config/json-schema.ts';
import { OVERRIDES } from '../src/config/overrides.ts';
import { SIZE_PATTERN } from '../src/config/values/size.ts';
import { writeOrCheck } from './generated-file.ts';

interface Option {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: string | number | boolean | readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Option>>;
  readonly items?: Option;
  readonly required?: readonly string[];
}

const schema = configJsonSchema() as Option;

function typeOf(option: Option): string {
  if (option.enum !== undefined) return option.enum.map((value) => `\`${value}\``).join(', ');
  if (option.pattern === DURATION_PATTERN) return 'duration';
  if (option.pattern === SIZE_PATTERN) return 'size';
  const range = option.minimum === undefined ? '' : `, ${option.minimum} to ${option.maximum}`;
  if (option.type === 'integer') return `whole number${range}`;
  if (option.type === 'number') return `number${range}`;
  if (option.type === 'array') return 'list';
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

await writeOrCheck(
  'docs/configuration.md',
  `# Configuration

<!-- Made from the schema by npm run generate. -->

One YAML file, strict: an unknown key, a wrong type, a project twice or a bad cron expression is an error with its \`file:line:column\`, all of them at once. [config/evalwatch.yaml](../config/evalwatch.yaml) is a file with everything in it, commented; [config/evalwatch.schema.json](../config/evalwatch.schema.json) is for editors. \`evalwatch check\` validates a file and shows when each project will be polled.

Needed are \`service.base_url\`, a source of the API key (\`api_key_file\` or \`api_key_env\`, of the service or of each project, never both in one place) and at least one project. Durations are written \`500ms\`, \`10s\`, \`5m\`, \`1h\`, \`90d\` or \`1h30m\`, sizes \`512KiB\` or \`64MiB\`. The store is a SQLite file, or a PostgreSQL for several workers ([scaling.md](scaling.md)), never both. A relative path starts from the directory of the file. A section left empty is its defaults.

Schedules are cron expressions: [specification.md](specification.md#cron-expressions) has their syntax, and [what daylight saving does to them](specification.md#schedules).

A reload (SIGHUP to the pid in the log line \`daemon.started\`, or \`POST /-/reload\` where \`web.enable_lifecycle\` allows it) takes over everything but \`store\`, \`web.listen\`, \`web.config_file\` and whether there is TLS: those need a restart, and a reload that changes them is refused whole. [specification.md](specification.md#reload) has the rules.

## Top level

${table(schema, hasOptions)}
${sections.join('')}
## Environment

A variable that is empty counts as unset. Where the file names a PostgreSQL, \`EVALWATCH_STORE_PATH\` is not looked at. \`EVALWATCH_CONFIG\` names the file where \`--config\` does not.

| variable | overrides |
| --- | --- |
${overrides.join('\n')}
`,
);
