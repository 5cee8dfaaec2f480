import { z } from 'zod';
import { OPTIONS_OF_SOME, optionsOf, RECEIVER_OPTIONS } from './rules.ts';
import { fileSchema } from './schema.ts';

const POSTGRES_URL = ['postgres_url_file', 'postgres_url_env'];
const API_KEY = ['api_key_file', 'api_key_env'].map((name) => ({ required: [name] }));
const POSTGRES = POSTGRES_URL.map((name) => ({ required: [name] }));
const TWO_STORES = [{ required: POSTGRES_URL }, { required: ['path'], anyOf: POSTGRES }];

/**
 * Returns the JSON Schema (draft 2020-12) of the configuration file, for editors. It describes shape, defaults, ranges
 * and key sources. Time zones, cron expressions, files and plain HTTP are checked only by the program.
 */
export function configJsonSchema(): object {
  const {
    properties = {},
    required = [],
    ...schema
  } = z.toJSONSchema(fileSchema, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ jsonSchema }) => {
      const { properties: options = {} } = jsonSchema;
      if ('api_key_env' in options) {
        jsonSchema.not = { required: ['api_key_file', 'api_key_env'] };
      }
      if ('postgres_url_env' in options) {
        // An empty section is null, which has every required key.
        jsonSchema.not = { type: 'object', anyOf: TWO_STORES };
        jsonSchema.dependentSchemas = { lease: { anyOf: POSTGRES } };
      }
      if ('smtp_url_file' in options) jsonSchema.anyOf = receiverTypes(Object.keys(options));
      else if ('url_file' in options) jsonSchema.maxProperties = 1;
    },
  });
  return {
    ...schema,
    title: 'evalwatch configuration',
    required: required.filter((name) => name !== 'projects'),
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, section]) => [name, allowEmpty(section)]),
    ),
    anyOf: [
      { required: ['projects_files'] },
      {
        required: ['projects'],
        anyOf: [
          { properties: { service: { anyOf: API_KEY } } },
          { properties: { projects: { items: { anyOf: API_KEY } } } },
        ],
      },
    ],
  };
}

/** Returns what a receiver of each type needs; it has no options of the others. */
function receiverTypes(options: readonly string[]): z.core.JSONSchema.JSONSchema[] {
  return Object.entries(RECEIVER_OPTIONS).map(([type, each]) => {
    const { needs, may } = each;
    const own = optionsOf(each);
    const others = options.filter((name) => OPTIONS_OF_SOME.has(name) && !own.includes(name));
    return {
      properties: {
        type: { const: type },
        ...Object.fromEntries(others.map((option) => [option, false])),
      },
      allOf: [
        ...needs.map((group) => ({ oneOf: group.map((name) => ({ required: [name] })) })),
        ...may.map((group) => ({ not: { required: [...group] } })),
      ],
    };
  });
}

/** Lets a section be empty if all of its options have defaults, or if it is a list that can be empty. */
function allowEmpty(
  section: z.core.JSONSchema._JSONSchema,
): z.core.JSONSchema._JSONSchema | object {
  const isOptional =
    typeof section === 'object' &&
    (section.type === 'object' ? section.required === undefined : section.default !== undefined);
  if (!isOptional || (section.type !== 'object' && section.type !== 'array')) return section;
  return { ...section, type: [section.type, 'null'] };
}
