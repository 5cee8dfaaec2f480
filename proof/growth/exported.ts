import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SOURCE } from '../row.ts';

/** Folders of src/ whose functions read untrusted text. */
const ROOMS = [
  'cli',
  'config',
  'domain',
  'evaluation-api',
  'log',
  'metrics',
  'rows',
  'schedule',
  'simulator',
  'store/postgres',
  'web',
];

const FUNCTION =
  /^export (?:async )?function\*? (?<name>\w+)(?:<[^(]*>)?\(\s*(?<first>[^,)]*(?:\{[^}]*\}[^,)]*)?)/gm;
/** Types of a first parameter that may hold text. */
const TEXT = /\b(?:string|Buffer|unknown)\b/;

/** Returns every exported function whose first parameter may hold text, as `config/values/size.ts parseSize`. */
export async function functionsOfText(): Promise<readonly string[]> {
  const found = new Set<string>();
  for await (const file of glob(`{${ROOMS.join(',')}}/**/*.ts`, { cwd: SOURCE })) {
    const source = await readFile(join(SOURCE, file), 'utf8');
    for (const { groups } of source.matchAll(FUNCTION)) {
      if (TEXT.test(groups?.['first'] ?? '')) found.add(`${file} ${groups?.['name']}`);
    }
  }
  return [...found].toSorted();
}

/** Functions of {@link functionsOfText} that are left out, by reason. */
export const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  'takes the words of a command line, which the shell bounds': [
    'cli/cli.ts main',
    'cli/configuration.ts describeFile',
    'cli/configuration.ts loadConfiguration',
    'cli/options.ts interval',
    'cli/options.ts portNumber',
    'cli/options.ts positiveInteger',
    'cli/query.ts assertKnownProject',
    'config/environment.ts configFile',
    'config/environment.ts resolveFromUser',
  ],
  'looks at nothing but the type or the code': [
    'cli/outcome.ts toOutcome',
    'config/values/option-types.ts wrongType',
    'config/document/tree.ts isMapping',
    'evaluation-api/errors.ts codeOf',
    'evaluation-api/listing/json.ts isObject',
    'store/postgres/errors.ts isCollision',
    'store/postgres/errors.ts isNoPrimary',
    'store/postgres/errors.ts isOutcomeUnknown',
  ],
  'takes texts that stand in the source': [
    'cli/options.ts limitOption',
    'config/values/option-types.ts parsedText',
    'config/values/option-types.ts path',
    'config/values/option-types.ts text',
    'config/values/option-types.ts variableName',
    'config/values/option-types.ts wrongValue',
    'metrics/exposition.ts renderGauge',
    'store/postgres/sql/built-statement.ts builtStatement',
    'store/postgres/sql/error-totals.ts countError',
    'web/page/text/words.ts capitalized',
  ],
  'is a part of what loadConfig and loadWebConfig do, or made of such parts': [
    'config/listen-address.ts localAddresses',
    'config/listen-address.ts readListenAddress',
    'config/document/read-document.ts readDocument',
    'config/document/text-file.ts readTextFile',
    'config/source.ts toSource',
  ],
  'is a part of what readYaml does': [
    'config/document/yaml-parser.ts parseYaml',
    'config/document/yaml-values.ts keyName',
    'config/document/yaml-values.ts startOf',
  ],
  'puts the id of a project of the configuration into a text': [
    'store/postgres/sql/known.ts knownQuery',
    'web/page/parts/lists.ts projectLink',
    'web/page/project.ts unknownProjectPage',
  ],
  'takes what this program made': [
    'store/postgres/postgres-reader.ts openPostgresReader',
    'store/postgres/sql/projects.ts flushInput',
    'evaluation-api/listing/json.ts notJson',
    'simulator/answer.ts validationAnswer',
    'simulator/encoding.ts gzip',
    'simulator/faults/item-damage.ts damageItems',
    'simulator/faults/item-damage.ts statusesOf',
    'simulator/world/key-ring.ts createKeyRing',
    'simulator/world/status-changes.ts nextDatasetStatus',
    'simulator/world/status-changes.ts nextStatus',
    'simulator/world/records.ts makePrompt',
  ],
  'is a part of what causeOf does, on at most 8 KiB': [
    'domain/causes/error-answer.ts readErrorAnswer',
    'domain/causes/error-answer.ts unescapeText',
    'domain/causes/masking.ts maskText',
    'domain/causes/quotes.ts endOfQuote',
    'domain/causes/quotes.ts isQuoteAt',
    'domain/causes/quotes.ts isWordCharacter',
    'domain/causes/quotes.ts markAt',
    'domain/causes/shape.ts shapeOf',
    'domain/causes/talk.ts isFailureAt',
    'domain/causes/talk.ts isOfOthersAt',
    'domain/causes/talk.ts isSentenceAt',
    'domain/causes/talk.ts isTalkAt',
    'domain/causes/telling-part.ts markupTitle',
    'domain/causes/telling-part.ts tellingPart',
    'domain/causes/words.ts endOfWord',
    'domain/causes/words.ts hasDigit',
    'domain/causes/words.ts isStatus',
    'domain/causes/words.ts isVariable',
  ],
  'takes the address of a socket': ['web/limits/client.ts clientOf'],
  'is a part of what parseFaults does': [
    'simulator/faults/garbage.ts isGarbage',
    'simulator/faults/item-damage.ts isItemDamage',
  ],
};
